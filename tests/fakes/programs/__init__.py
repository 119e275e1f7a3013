"""One program behind the names kind, podman, kubectl, squeue, sinfo, systemd-run and systemctl.

Stateful through the directory `state` beside the one it is called in; logs every call; fails, hangs or is
slow as state/script.json says; refuses (97) what it does not know. Runs without site packages and with plain
os calls, so that a call costs little.
"""

import importlib
import os
import sys
import time

from programs.play import Play
from programs.state import NAME, STORE, log

REFUSED = 97
HANDLERS = {
    "kind": "kind.kind",
    "podman": "podman.podman",
    "kubectl": "kubectl.kubectl",
    "squeue": "slurm.squeue",
    "sinfo": "slurm.sinfo",
    "systemd-run": "systemd.systemd_run",
    "systemctl": "systemd.systemctl",
}


def main():
    arguments = sys.argv[1:]
    os.umask(0o022)
    os.makedirs(STORE, exist_ok=True)
    log({"program": NAME, "argv": arguments, "env": dict(os.environ), "time": time.time()})
    play = Play([NAME, *(a for a in arguments if not a.startswith("-"))])
    play.at("start")
    module, _, function = HANDLERS.get(NAME, "").partition(".")
    handler = getattr(importlib.import_module(f"programs.{module}"), function) if function else None
    status = handler(arguments, play) if handler else None
    if status is None:
        log({"refused": NAME, "argv": arguments}, "refused.jsonl")
        sys.stderr.write(f"fake {NAME}: unknown call: {arguments}\n")
        status = REFUSED
    sys.stdout.flush()
    sys.exit(status)
