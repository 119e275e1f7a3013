"""Facts about processes, read from /proc: who is alive, whose child, started with which mark."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with the same number.

    `start` is the start time in clock ticks after boot (field 22 of /proc/PID/stat); 0 when /proc hides it.
    """

    pid: int
    start: int


def boot_id() -> str:
    """Return the kernel's id of the current boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def find(pid: int) -> Process | None:
    """Return the running process with this number, or None (also for a zombie)."""
    fields = _stat_fields(pid)
    if fields is None:
        return Process(pid, 0) if _exists(pid) else None  # /proc mounted with hidepid
    return None if fields[0] in "ZX" else Process(pid, int(fields[19]))


def parent_of(pid: int) -> Process | None:
    """Return the parent of a process, or None when either is gone or hidden."""
    fields = _stat_fields(pid)
    return find(int(fields[1])) if fields else None


def is_alive(process: Process) -> bool:
    """True when exactly this process still runs; with /proc hidden the number has to do."""
    found = find(process.pid)
    return found is not None and (process.start == found.start or 0 in (process.start, found.start))


def children_of(pid: int) -> list[int]:
    """Return the process ids whose parent is pid, zombies left out."""
    return [
        child
        for child in pids()
        if (fields := _stat_fields(child)) and int(fields[1]) == pid and fields[0] not in "ZX"
    ]


def name_of(pid: int) -> str:
    """Return the kernel's short name of a process, or an empty string."""
    try:
        return (PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def title_of(pid: int) -> str:
    """Return the command line as one string, or an empty string."""
    try:
        raw = (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ""
    return raw.replace(b"\0", b" ").decode("utf-8", "replace").strip()


def initial_environment(pid: int) -> dict[str, str]:
    """Return the variables a process was started with, or none when it has gone or is not ours to read."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (os.fsdecode(entry).partition("=") for entry in raw.split(b"\0"))
    return {name: value for name, equals, value in pairs if equals}


def owner_of(pid: int) -> int | None:
    """Return the user a process runs as, or None when it has gone."""
    try:
        return (PROC / str(pid)).stat().st_uid
    except OSError:
        return None


def real_owner_of(pid: int) -> int | None:
    """Return the user who started a process, also where it runs with another one's rights."""
    try:
        status = (PROC / str(pid) / "status").read_text(errors="replace")
    except OSError:
        return None
    uids = next((line.split()[1:] for line in status.splitlines() if line.startswith("Uid:")), [])
    return int(uids[0]) if uids else None


def marked(variable: str, value: str, *, uid: int | None = None) -> list[Process]:
    """Return the processes (of a user) whose environment has variable=value, this one left out.

    A mark in the environment is inherited by everything a program starts, whatever sessions and groups it
    makes; only processes whose environment we may read are seen, so another user's are not.
    """
    wanted = f"{variable}={value}".encode()
    found = []
    for pid in pids():
        if pid == os.getpid() or (uid is not None and owner_of(pid) != uid):
            continue
        try:
            environment = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in environment and (process := find(pid)):
            found.append(process)
    return found


def with_argument(name: str, argument: str, *, uid: int) -> list[Process]:
    """Return a user's processes of this short name that have exactly this word among their arguments."""
    found = []
    for pid in pids():
        if name_of(pid) == name and owner_of(pid) == uid:
            with contextlib.suppress(OSError):
                words = (PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
                if argument.encode() in words and (process := find(pid)):
                    found.append(process)
    return found


def send(process: Process, signal_number: int) -> None:
    """Signal exactly this process; no error when it has gone or belongs to another user."""
    if is_alive(process):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal_number)


def wait_gone(processes: list[Process], timeout: float) -> list[Process]:
    """Wait until none of these runs, at most timeout seconds; return those that still do."""
    end = time.monotonic() + timeout
    alive = [p for p in processes if is_alive(p)]
    while alive and time.monotonic() < end:
        time.sleep(0.02)
        alive = [p for p in alive if is_alive(p)]
    return alive


def pids() -> Iterator[int]:
    """Return the numbers of all processes that /proc shows."""
    return (int(entry) for entry in os.listdir(PROC) if entry.isdecimal())  # noqa: PTH208 - names only


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields after the name: state, parent, ...; the name may contain blanks and brackets."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _exists(pid: int) -> bool:
    if pid <= 0:  # these numbers mean groups of processes
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
