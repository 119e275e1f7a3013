"""Checks of single setting values: each returns the typed value or raises ValueError with what it wants."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

NODE_PORTS = range(30000, 32768)  # Kubernetes' default range of node ports
USER_ID = "%u"  # in run_dir: the numeric user id, which needs no name service

Check = Callable[[Any], Any]


def text(value: object) -> str:
    """One line of printable text."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError(f"wants a line of text, got {value!r}")
    return value


def flag(value: object) -> bool:
    """True or false, nothing that merely looks like it."""
    if not isinstance(value, bool):
        raise ValueError(f"wants true or false, got {value!r}")
    return value


def seconds(value: object) -> float:
    """A time of at most ten days."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 864000:
        raise ValueError(f"wants seconds between 0 and 864000, got {value!r}")
    return float(value)


def count(value: object) -> int:
    """A whole number, not negative."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 100000:
        raise ValueError(f"wants a whole number between 0 and 100000, got {value!r}")
    return value


def absolute_path(value: object) -> Path:
    """An absolute path that does not climb."""
    line = text(value)
    if not line.startswith("/") or ".." in Path(line).parts:
        raise ValueError(f"wants an absolute path, got {value!r}")
    return Path(line)


def user_path(value: object) -> Path:
    """An absolute path that ends in the place for the user."""
    path = absolute_path(value)
    if path.name != USER_ID or USER_ID in str(path.parent):
        raise ValueError(f"wants an absolute path that ends in /{USER_ID}, got {value!r}")
    return path


def optional(check: Check) -> Check:
    """The check, or nothing."""
    return lambda value: None if value is None else check(value)


def list_of(check: Check) -> Check:
    """A list whose items pass the check."""

    def checked(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"wants a list, got {value!r}")
        return tuple(check(item) for item in value)

    return checked


def one_of(*choices: str) -> Check:
    """One of a closed set of words."""

    def checked(value: object) -> str:
        if value not in choices:
            raise ValueError(f"wants one of {', '.join(choices)}, got {value!r}")
        return str(value)

    return checked


def feature(value: object) -> str:
    """A feature's name as slurm.conf allows it."""
    line = text(value)
    if not all(c.isalnum() or c in "_.-" for c in line):
        raise ValueError(f"wants a feature of slurm.conf (letters, digits, _ . -), got {value!r}")
    return line


def port_range(value: object) -> tuple[int, int]:
    """LOW-HIGH within Kubernetes' node ports."""
    low, dash, high = str(value).partition("-")
    if not (dash and low.isdecimal() and high.isdecimal()):
        raise ValueError(f"wants LOW-HIGH, got {value!r}")
    if int(low) > int(high) or int(low) not in NODE_PORTS or int(high) not in NODE_PORTS:
        raise ValueError(f"wants ports between {NODE_PORTS[0]} and {NODE_PORTS[-1]}, got {value!r}")
    return int(low), int(high)


def ipv4_address(value: object) -> str:
    """An IPv4 address."""
    line = text(value)
    parts = line.split(".")
    if len(parts) != 4 or not all(p.isdecimal() and int(p) < 256 for p in parts):
        raise ValueError(f"wants an IPv4 address, got {value!r}")
    return line
