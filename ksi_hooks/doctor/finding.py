"""What a check found: how bad, what was seen, what it means, what to do."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """The result of one check; effect and remedy are empty when all is well."""

    name: str
    level: Level
    seen: str
    effect: str = ""
    remedy: str = ""


def ok(name: str, seen: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(name, Level.OK, seen)


def warning(name: str, seen: str, effect: str, remedy: str) -> Finding:
    """Return a finding that someone should look at."""
    return Finding(name, Level.WARNING, seen, effect, remedy)


def error(name: str, seen: str, effect: str, remedy: str) -> Finding:
    """Return a finding that keeps clusters from being made or deleted."""
    return Finding(name, Level.ERROR, seen, effect, remedy)
