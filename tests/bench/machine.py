"""What a measurement ran on: processor, memory, kernel, versions; nothing that names the machine."""

import contextlib
import os
import platform
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from testbed import cache, command, podman, versions

import ksi_hooks


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


def shown(found: dict[str, str]) -> str:
    """One line for the head of a table."""
    return "; ".join(f"{name} {value}" for name, value in found.items())


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
