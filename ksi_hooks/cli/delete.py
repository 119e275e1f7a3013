"""`ksi delete`: ends clusters of this node, says what is left when something is, and asks other nodes."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ksi_hooks.cli import choose, site
from ksi_hooks.cli.output import user_name
from ksi_hooks.cli.parsing import Parser, Subparsers, add
from ksi_hooks.config import Settings
from ksi_hooks.errors import KsiError
from ksi_hooks.lifecycle import delete as deletion
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.registry import requests
from ksi_hooks.registry.record import Record
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Deadline
from ksi_hooks.slurm import job as jobs

EXAMPLES = """
ksi delete ksi-4711-0a1b2          one cluster of mine on this node
ksi delete 4711 4712               all clusters of these jobs
sudo ksi delete ksi-4711-0a1b2     as root: a cluster of another user

A cluster of another node is deleted there by the next round of ksi-gc.
"""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Describe the subcommand."""
    parser = add(subparsers, "delete", "delete clusters with all that is theirs", EXAMPLES)
    parser.add_argument("names", metavar="CLUSTER|JOB", nargs="+", help="a cluster's name or a job id")


def main(args: argparse.Namespace) -> int:
    """Delete and return 0 when all are proven to be gone, else 1; a wrong name stops it before the first."""
    used = site.of(args)
    registry = Registry.of(used.settings)
    node, uid = jobs.node_name(os.environ), os.getuid()
    everywhere = chosen(choose.everywhere(registry).records, args.names, uid=uid)
    wanted = [r for r in everywhere if r.node == node]
    _ask_other_nodes(registry, [r for r in everywhere if r.node != node])
    outcome: dict[str, list[str]] = {}
    for owner in sorted({r.uid for r in wanted}):
        theirs = [r for r in wanted if r.uid == owner]
        if owner == uid:
            outcome |= _delete_own(used.settings, node, theirs)
        else:
            outcome |= _delete_theirs(used.file, used.settings, node, theirs)
    for cluster, left in outcome.items():
        if left:
            print(f"ksi: error: not deleted: {cluster}: {', '.join(left)}", file=sys.stderr)
        else:
            print(f"deleted {cluster}")
    if any(outcome.values()):
        print("ksi: hint: what is left stays recorded; try again, or ksi-gc will", file=sys.stderr)
    return int(any(outcome.values()))


def chosen(records: Sequence[Record], names: Sequence[str], *, uid: int) -> list[Record]:
    """Return the clusters to delete, each once; raises KsiError for one that this user may not delete."""
    found = {r.cluster: r for name in names for r in choose.clusters(records, name, uid=uid)}
    for record in found.values():
        if record.uid != uid and uid != 0:
            raise KsiError(
                f"cluster {record.cluster} belongs to {user_name(record.uid)}",
                hint="only the owner or root may delete it",
                blame="user",
            )
    return list(found.values())


def _ask_other_nodes(registry: Registry, records: Sequence[Record]) -> None:
    for record in records:
        requests.request(registry, record)
        print(f"requested the deletion of {record.cluster}: ksi-gc on {record.node} carries it out")


def _delete_own(settings: Settings, node: str, records: list[Record]) -> dict[str, list[str]]:
    context = Context.make(settings, node, os.environ)
    outcome = {}
    for record in records:
        outcome[record.cluster] = deletion.delete(context, record, Deadline(settings.epilog_timeout))
        job_id = record.job_id
        if job_id is not None and not outcome[record.cluster]:
            context.user_dir.forget_if_unheld(job_id)
    return outcome


def _delete_theirs(
    file: Path | None, settings: Settings, node: str, records: list[Record]
) -> dict[str, list[str]]:
    from ksi_hooks.gc import tenants

    if file is None:
        raise KsiError("clusters of other users need a site's settings file", hint="--config FILE")
    return tenants.delete(file, settings, node, records[0].uid, [r.cluster for r in records])
