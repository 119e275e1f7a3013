"""The journal of one trial: who started what and when; hooks, shims and scripts append to it.

Times are seconds of the boot clock with two decimals, from /proc/uptime, which a shell reads without a fork.
"""

import re
import time
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"(\d+\.\d\d) (stamp|call|note) (\S.*)")
# for shell scripts; `say stamp usable`
SAY = 'say() { read -r now rest < /proc/uptime && echo "$now $*" >> "{journal}"; }\n'


@dataclass(frozen=True)
class Entry:
    """One line: a moment that was reached (stamp), a program that was started (call), or a fact (note)."""

    at: float
    kind: str
    text: str


class Journal:
    """The file, and what it says."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def say(self) -> str:
        """The shell function that appends to this journal."""
        return SAY.replace("{journal}", str(self.path))

    def begin(self) -> None:
        """Forget the trial before."""
        self.path.write_text("", encoding="utf-8")

    def stamp(self, name: str) -> None:
        """Note that a moment is reached now."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{now():.2f} stamp {name}\n")

    def entries(self) -> list[Entry]:
        """All lines up to now; those that are none of ours are left out."""
        found = map(LINE.fullmatch, self.path.read_text(encoding="utf-8", errors="replace").splitlines())
        return [Entry(float(m[1]), m[2], m[3]) for m in found if m]


def now() -> float:
    """The clock of the journal."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def stamps(entries: list[Entry]) -> dict[str, float]:
    """When each moment was reached first."""
    found: dict[str, float] = {}
    for entry in entries:
        if entry.kind == "stamp":
            found.setdefault(entry.text, entry.at)
    return found


def note(entries: list[Entry], name: str) -> str:
    """The fact of that name, or an empty text."""
    texts = (e.text.partition(" ") for e in entries if e.kind == "note")
    return next((value for key, _, value in texts if key == name), "")


def calls(entries: list[Entry], program: str, first: str = "") -> list[float]:
    """When a program was started, with these words first in its arguments."""
    wanted = f"{program} {first}".rstrip()
    return [e.at for e in entries if e.kind == "call" and f"{e.text} ".startswith(f"{wanted} ")]


def count(entries: list[Entry], begin: float, end: float) -> int:
    """How many programs were started between two moments."""
    return sum(e.kind == "call" and begin <= e.at < end for e in entries)
