"""Debian packages: install those that are missing, and find the mirror this machine uses."""

from pathlib import Path

from testbed import command

BUILD = ("debootstrap", "pigz")
PODMAN = ("podman", "runc", "netavark", "aardvark-dns", "conntrack", "iptables")
SLURM = ("munge", "slurmctld", "slurmd", "slurm-client")
GO = ("golang-go",)
QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


def missing(names: tuple[str, ...]) -> list[str]:
    """Those packages that are not installed."""
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}"]
    return [name for name in names if not command.succeeds([*query, name]) or not installed(name)]


def installed(name: str) -> bool:
    """True when dpkg has the package unpacked and configured."""
    status = command.capture(["dpkg-query", "--show", "--showformat=${db:Status-Status}", name])
    return status == "installed"


def install(names: list[str], log: Path) -> None:
    """Install packages; the package lists are fetched only when the ones at hand do not do."""
    argv = ["apt-get", "install", "--yes", "--no-install-recommends", *names]
    try:
        command.run(argv, log=log, env=QUIET)
    except command.TestbedError:
        command.run(["apt-get", "update"], log=log, env=QUIET)
        command.run(argv, log=log, env=QUIET)


def mirror() -> str:
    """The Debian mirror of this machine's apt; empty when it has none, and debootstrap then knows one."""
    form = "$(ORIGIN) $(CODENAME) $(REPO_URI)"
    for line in command.capture(["apt-get", "indextargets", "--format", form]).splitlines():
        words = line.split()
        if len(words) == 3 and words[0] == "Debian" and "-" not in words[1]:
            return words[2]
    return ""
