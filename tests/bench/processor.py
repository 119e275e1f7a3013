"""Processor seconds, where cgroup v1's cpuacct tells them: of a job's whole tree, and of a node container."""

import contextlib
import os
from pathlib import Path

ROOT = Path("/sys/fs/cgroup/cpuacct")
CONTAINER = "libpod-"  # how the part of the path begins that is the container's own


class Group:
    """A cgroup of our own; what is started from the processes put into it is counted, unless it moves away.

    Podman moves containers and their conmon away. Without cpuacct nothing is counted.
    """

    def __init__(self) -> None:
        self.path = ROOT / f"ksi-bench-{os.getpid()}"
        self.exists = False
        with contextlib.suppress(OSError):
            self.path.mkdir()
            self.exists = True

    def add(self, pid: int) -> None:
        """Count this process and what it starts from now on."""
        if self.exists:
            (self.path / "cgroup.procs").write_text(str(pid))

    def seconds(self) -> float | None:
        """Processor seconds used up to now; None where they cannot be had."""
        return seconds_of(self.path) if self.exists else None

    def remove(self) -> None:
        """Remove the cgroup; what is left in it is shared, such as Podman's name server, and lives on."""
        if self.exists:
            for pid in (self.path / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (ROOT / "cgroup.procs").write_text(pid)
            with contextlib.suppress(OSError):
                self.path.rmdir()


def seconds_of(group: Path) -> float | None:
    """Processor seconds of a cgroup and those below; None when it is gone."""
    try:
        return int((group / "cpuacct.usage").read_text()) / 1e9
    except OSError:
        return None


def container_group(pid: int) -> Path | None:
    """The container's cgroup that a process is in; None without one."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        parts = path.strip("/").split("/")
        if controllers == "cpuacct" and any(part.startswith(CONTAINER) for part in parts):
            own = next(i for i, part in enumerate(parts) if part.startswith(CONTAINER))
            return ROOT.joinpath(*parts[: own + 1])
    return None
