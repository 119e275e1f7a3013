"""What a measurement ran on: processor, memory, kernel, versions; nothing that names the machine."""

import contextlib
import os
import platform
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from testbed import cache, command, podman, versions

import ksi_hooks

QUIET_SECONDS = 2.0
QUIET_SHARE = 0.3  # of one processor


def facts() -> dict[str, str]:
    """Describe this machine for the head of a result."""
    tools = podman.bin_dir(cache.default_root())
    cpus = os.sysconf("SC_NPROCESSORS_ONLN")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "processor": f"{cpus} x {_field(Path('/proc/cpuinfo'), 'model name')}",
        "memory": f"{memory:.0f} GiB",
        "kernel": platform.release(),
        "system": _field(Path("/etc/os-release"), "PRETTY_NAME").strip('"'),
        "cgroups": "v2" if Path("/sys/fs/cgroup/cgroup.controllers").exists() else "v1",
        "python": platform.python_version(),
        "ksi_hooks": ksi_hooks.__version__,
        "podman": _version([tools / "podman", "--version"]),
        "runc": _version(["runc", "--version"]),
        "kind": _version([tools / "kind", "version"]),
        "kubernetes": versions.KUBERNETES,
        "slurm": _version(["/usr/sbin/slurmd", "-V"]),
    }


def load() -> float:
    """The load average of the last minute."""
    return os.getloadavg()[0]


def busy_seconds() -> float:
    """Processor seconds that all of the machine has spent on work since it started."""
    user, nice, system, _idle, _iowait, *rest = map(int, _first_line(Path("/proc/stat")).split()[1:9])
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")


def await_quiet(seconds: float) -> None:
    """Wait until nobody keeps the processors busy, for as long at most."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = busy_seconds()
        time.sleep(QUIET_SECONDS)
        if busy_seconds() - before < QUIET_SHARE * QUIET_SECONDS:
            return


def shown(found: dict[str, str]) -> str:
    """One line for the head of a table."""
    return "; ".join(f"{name} {value}" for name, value in found.items())


def _first_line(path: Path) -> str:
    return path.read_text(encoding="ascii").partition("\n")[0]


def _field(path: Path, name: str) -> str:
    with contextlib.suppress(OSError):
        for line in path.read_text(encoding="utf-8").splitlines():
            key, _, value = line.replace("=", ":", 1).partition(":")
            if key.strip() == name:
                return value.strip()
    return "unknown"


def _version(argv: Sequence[str | Path]) -> str:
    if not shutil.which(argv[0]):
        return "not installed"
    found = re.search(r"v?\d+(\.\d+)+", command.capture(argv))
    return found.group() if found else "unknown"
