"""Tries kinds of locks on the real mount: several processes take turns and note when they held the lock."""

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import files, locks
from ksi_hooks.errors import KsiError

KINDS = ("flock", "strict", "soft")  # in the order of preference
PROCESSES = 4
TURNS = 15
HOLD_SECONDS = 0.002
WAIT_SECONDS = 20.0


@dataclass(frozen=True)
class Trial:
    """What became of one kind: holds, how many of them overlapped another, the longest wait in seconds."""

    kind: str
    holds: int
    overlaps: int
    longest_wait: float
    problem: str = ""

    @property
    def excludes(self) -> bool:
        """True when the lock could be had every time, and never by two at once."""
        return not self.problem and self.overlaps == 0 and self.holds == PROCESSES * TURNS


def attempt(directory: Path, kind: str) -> Trial:
    """Try one kind of lock in a new directory below this one; raises KsiError when it cannot be made."""
    with _room(directory) as room:
        started = [_start(room / ".lock", kind) for _ in range(PROCESSES)]
        answers = [json.loads(_answer(*each)) for each in started]
    problem = next((a["problem"] for a in answers if a["problem"]), "")
    holds = [(start, end) for answer in answers for _, start, end in answer["holds"]]
    waits = [start - asked for answer in answers for asked, start, _ in answer["holds"]]
    return Trial(kind, len(holds), overlapping(holds), max(waits, default=0.0), problem)


def overlapping(holds: list[tuple[float, float]]) -> int:
    """Return how many holds began before an earlier one had ended."""
    count, latest = 0, 0.0
    for start, end in sorted(holds):
        count += start < latest
        latest = max(latest, end)
    return count


def resolve(directory: Path, *, risky: list[str]) -> Trial | None:
    """Return the first kind that works below a directory, None when none does.

    risky: options of the mount that keep flock on one node, where no trial on one node shows it.
    """
    for kind in KINDS:
        if kind == "flock" and risky:
            continue
        trial = attempt(directory, kind)
        if trial.excludes:
            return trial
    return None


@contextlib.contextmanager
def _room(directory: Path) -> Iterator[Path]:
    room = files.private_dir(directory / f".lock-trial-{secrets.token_hex(4)}")
    try:
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)


def _start(path: Path, kind: str) -> tuple[int, int]:
    """Start a process that takes turns; returns its number, and where its answer can be read."""
    reader, writer = os.pipe()
    if child := os.fork():
        os.close(writer)
        return child, reader
    try:
        os.close(reader)
        os.write(writer, json.dumps(_take_turns(path, kind)).encode())
    finally:
        os._exit(0)


def _take_turns(path: Path, kind: str) -> dict[str, object]:
    holds, problem = [], ""
    try:
        for _ in range(TURNS):
            asked = time.monotonic()
            with locks.hold(path, timeout=WAIT_SECONDS, kind=kind):
                start = time.monotonic()
                time.sleep(HOLD_SECONDS)
                holds.append((asked, start, time.monotonic()))
    except (KsiError, OSError) as error:
        problem = str(error)
    return {"holds": holds, "problem": problem}


def _answer(child: int, reader: int) -> bytes:
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return data or json.dumps({"holds": [], "problem": "the trying process died"}).encode()
