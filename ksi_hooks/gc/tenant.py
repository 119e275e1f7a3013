"""The part of ksi-gc that runs as the owner of clusters: lists his store, deletes what he is told to.

Root starts this file as the tenant with: settings file, `list` or `delete`, seconds, node, cluster names; the
answer is JSON.
"""

import contextlib
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from ksi_hooks import config, proc
from ksi_hooks.checks import NODE_PORTS
from ksi_hooks.config import Settings
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import KsiError
from ksi_hooks.lifecycle import delete as deletion
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.lifecycle.userdir import UserDir
from ksi_hooks.proc import Process
from ksi_hooks.registry import record as records
from ksi_hooks.registry import remains
from ksi_hooks.registry.record import Record, State
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Deadline, Tools
from ksi_hooks.tools import podman

LIST_SECONDS = 30.0


def clusters(settings: Settings, node: str) -> list[tuple[str, float]]:
    """Return names and times (epoch seconds) of the kind clusters in this user's store, and of claims that
    were torn when their maker was killed.
    """
    tools = Tools(settings.tools_path, base_environment(settings.tools_path, os.getuid(), os.environ))
    limit = min(LIST_SECONDS, settings.gc_tenant_timeout)
    found = dict(remains.torn_records(Registry.of(settings), node, os.getuid()))
    found |= {c.cluster: c.created for c in podman.containers(tools, timeout=limit)}
    return list(found.items())


def tidy(settings: Settings, node: str) -> None:
    """Remove notes about jobs that nothing holds any more, old answers of Slurm's, old logs, and files of
    writers that were killed. What cannot be tidied keeps nobody from deleting clusters.
    """
    remains.remove_unfinished(Registry.of(settings), node, os.getuid())
    with contextlib.suppress(OSError, KsiError):
        if settings.user_run_dir(os.getuid()).is_dir():
            user_dir = UserDir.make(settings, os.getuid())
            user_dir.prune(settings.log_keep_days)
            user_dir.forget_unheld(older_than=0)


def delete(settings: Settings, node: str, names: list[str]) -> dict[str, list[str]]:
    """Delete own clusters by name, recorded or not; returns what is left of each."""
    context = Context.make(settings, node, os.environ)
    deadline = Deadline(settings.gc_tenant_timeout)
    outcome: dict[str, list[str]] = {}
    for position, name in enumerate(names):
        if not records.CLUSTER_NAME.fullmatch(name):
            outcome[name] = ["not a cluster of ksi"]
            continue
        record = _own_record(context, name)
        share = Deadline(deadline.left() / (len(names) - position))  # one that stays must not cost the others
        outcome[name] = ["no time left"] if deadline.passed else deletion.delete(context, record, share)
        job_id = records.job_of(name)
        if job_id is not None and not outcome[name]:
            context.user_dir.forget_if_unheld(job_id)
    return outcome


def _own_record(context: Context, name: str) -> Record:
    """Return the user's own record, or one made up for a cluster that only Podman knows."""
    try:
        record = context.registry.read(context.node, name)
    except KsiError:
        record = None
    if record and record.uid == context.uid:
        return record
    return Record(
        cluster=name,
        node=context.node,
        boot_id=proc.boot_id(),
        job_id=records.job_of(name),
        restart=0,
        port=NODE_PORTS[0],
        run_dir=context.user_dir.cluster_dir(name),
        creator=Process(0, 0),
        held_by_creator=False,
        state=State.DELETING,
        created=0,
        changed=0,
        uid=context.uid,
    )


def main(argv: list[str]) -> int:
    """Answer root in JSON; an error is one sentence on stderr and status 1."""
    config_file, action, seconds, node, *names = argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what we have started, too
    try:
        settings = replace(config.load(Path(config_file)), gc_tenant_timeout=float(seconds))
        if action == "tidy":
            tidy(settings, node)
        answer: object = delete(settings, node, names) if action == "delete" else clusters(settings, node)
    except KsiError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
