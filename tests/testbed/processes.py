"""Processes of the testbed: remembered by id and start time, ended one by one, and seen gone."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process id that a later process with the same number cannot be taken for."""

    pid: int
    start_time: str

    def alive(self) -> bool:
        """True while the process runs; a zombie has ended."""
        fields = stat_fields(self.pid)
        return fields is not None and fields[0] != "Z" and fields[19] == self.start_time

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if the process is still the one that is meant."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def stat_fields(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on; None when there is no such process."""
    try:
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return None


def identify(pid: int) -> Process | None:
    """The process that has an id now."""
    fields = stat_fields(pid)
    return Process(pid, fields[19]) if fields else None


def remember(process: Process, file: Path) -> None:
    """Write a process down for a later `recall`."""
    file.write_text(f"{process.pid} {process.start_time}\n", encoding="utf-8")


def recall(file: Path) -> Process | None:
    """The process a file names; None without such a file."""
    try:
        pid, start_time = file.read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return None
    return Process(int(pid), start_time)


def everyone() -> list[int]:
    """All process ids of the machine."""
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal()]


def named_with_file_below(name: str, directory: Path) -> list[Process]:
    """Processes of a command name that hold a file below a directory open."""
    found = []
    for pid in everyone():
        try:
            if (PROC / str(pid) / "comm").read_text(encoding="utf-8").strip() != name:
                continue
            links = [entry.readlink() for entry in (PROC / str(pid) / "fd").iterdir()]
        except OSError:
            continue
        process = identify(pid)
        if process and any(link.is_relative_to(directory) for link in links):
            found.append(process)
    return found


def with_title(start: str) -> list[Process]:
    """Processes whose command line begins so."""
    return [
        p for pid in everyone() if read(pid, "cmdline").startswith(start.encode()) and (p := identify(pid))
    ]


def with_variable(name: str, value: str) -> list[Process]:
    """Processes that have a variable in their environment."""
    wanted = f"{name}={value}".encode()
    return [p for pid in everyone() if wanted in read(pid, "environ").split(b"\0") and (p := identify(pid))]


def read(pid: int, name: str) -> bytes:
    """A file of a process in /proc; empty when the process has gone."""
    try:
        return (PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def kill(processes: list[Process]) -> None:
    """Kill processes and see them gone."""
    for process in processes:
        process.signal(signal.SIGKILL)
    wait_gone(processes, 5)


def descendants(roots: list[Process]) -> list[Process]:
    """All children of some processes, and theirs."""
    children: dict[int, list[int]] = {}
    for pid in everyone():
        if fields := stat_fields(pid):
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[Process] = []
    waiting = [root.pid for root in roots]
    while waiting:
        for pid in children.get(waiting.pop(), []):
            waiting.append(pid)
            if process := identify(pid):
                found.append(process)
    return found


def end(processes: list[Process], *, grace: float) -> list[Process]:
    """Terminate processes, kill them after `grace` seconds; return those that live on even so."""
    for process in processes:
        process.signal(signal.SIGTERM)
    if not wait_gone(processes, grace):
        for process in processes:
            process.signal(signal.SIGKILL)
        wait_gone(processes, 5)
    return [process for process in processes if process.alive()]


def wait_gone(processes: list[Process], timeout: float) -> bool:
    """Wait until all have ended; False when the time was up first."""
    deadline = time.monotonic() + timeout
    while not (gone := not any(process.alive() for process in processes)):
        if time.monotonic() > deadline:
            break
        time.sleep(0.02)
    for process in processes:  # those that are our own children leave the process table
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
    return gone
