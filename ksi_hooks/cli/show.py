"""`ksi show`: everything about one cluster, and how to use it."""

import argparse
import os
import time
from pathlib import Path

from ksi_hooks import proc
from ksi_hooks.cli import choose, site
from ksi_hooks.cli.list import as_dict
from ksi_hooks.cli.output import age, pairs, show_json, user_name
from ksi_hooks.cli.parsing import Parser, Subparsers, add
from ksi_hooks.config import Settings
from ksi_hooks.registry.record import Record, State
from ksi_hooks.registry.store import Registry
from ksi_hooks.slurm import job as jobs

EXAMPLES = """
ksi show 4711                 the cluster of job 4711
ksi show ksi-4711-0a1b2       the cluster with this name
ksi show 4711 --json          for programs
"""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Describe the subcommand."""
    parser = add(subparsers, "show", "show one cluster, and how to use it", EXAMPLES)
    parser.add_argument("name", metavar="CLUSTER|JOB", help="a cluster's name or a job id")
    parser.add_argument("--json", action="store_true", help="one JSON document: a list")


def main(args: argparse.Namespace) -> int:
    """Print one block for each cluster of that name or job."""
    settings = site.of(args).settings
    registry = Registry.of(settings)
    found = choose.clusters(choose.everywhere(registry).records, args.name, uid=os.getuid())
    if args.json:
        show_json([as_dict(r) for r in found])
        return 0
    here = jobs.node_name(os.environ)
    blocks = [pairs(lines(r, settings, here=here, now=time.time())) for r in found]
    print("\n".join(blocks), end="")
    return 0


def lines(record: Record, settings: Settings, *, here: str, now: float) -> list[tuple[str, str]]:
    """Return name and value of everything worth knowing."""
    rows = [
        ("cluster", record.cluster),
        ("state", _state(record, here)),
        ("job", "none (ksi run)" if record.job_id is None else str(record.job_id)),
        ("owner", user_name(record.uid)),
        ("node", record.node + (" (this node)" if record.node == here else "")),
        ("age", f"{age(now - record.created)}, last change {age(now - record.changed)} ago"),
        ("K8S_PORT", str(record.port)),
        ("API", record.api or "-"),
        ("context", record.context),
    ]
    if record.uid == os.getuid():
        secrets = record.secrets_dir or (record.run_dir if record.node == here else None)
        log = settings.user_run_dir(record.uid) / "logs" / f"{record.cluster}.log"
        rows.append(("log", str(log) if record.node == here else f"{log} on {record.node}"))
        if secrets and record.state is State.READY:
            rows.append(("use it", f"export KUBECONFIG={Path(secrets) / 'kubeconfig'}"))
    return rows


def _state(record: Record, here: str) -> str:
    if record.node != here:
        return str(record.state)
    if record.boot_id != proc.boot_id():
        return f"{record.state}, but the node has been started anew since: ksi delete {record.cluster}"
    if record.state is State.CREATING and not proc.is_alive(record.creator):
        return f"{record.state}, but its creator has ended: ksi delete {record.cluster}"
    return str(record.state)
