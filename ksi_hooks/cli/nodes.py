"""Which nodes get a directory in the registry."""

import socket

from ksi_hooks.errors import CommandFailed, ProgramMissing, UsageError
from ksi_hooks.registry.record import NODE_NAME
from ksi_hooks.run import Tools
from ksi_hooks.slurm import job as jobs

SINFO_SECONDS = 3.0


def nodes_of(host_list: str | None, tools: Tools) -> list[str]:
    """Return the nodes asked for, else those that Slurm knows, else this one; raises UsageError."""
    if host_list is not None:
        names = list(jobs.hosts(host_list))
        whole = host_list.count("[") == host_list.count("]")
        if not whole or not names or not all(NODE_NAME.fullmatch(name) for name in names):
            raise UsageError(f"--nodes: not a list of nodes: {host_list!r}", hint="--nodes 'n[01-16],login1'")
        return list(dict.fromkeys(names))
    try:
        listing = tools.capture(["sinfo", "-h", "-N", "-o", "%N"], timeout=SINFO_SECONDS)
    except (CommandFailed, ProgramMissing):
        listing = ""
    names = [name for line in listing.splitlines() if NODE_NAME.fullmatch(name := line.strip())]
    return sorted(set(names)) or [socket.gethostname().split(".")[0]]
