"""`ksi list`: the clusters that the registry knows."""

import argparse
import os
import time

from ksi_hooks.cli import choose, site
from ksi_hooks.cli.output import age, show_json, table, user_name, warn
from ksi_hooks.cli.parsing import Parser, Subparsers, add
from ksi_hooks.registry.record import Record
from ksi_hooks.registry.store import Registry

EXAMPLES = """
ksi list              my clusters, on all nodes
ksi list --all        everybody's
ksi list --json       for programs
"""
HEAD = ("CLUSTER", "JOB", "NODE", "PORT", "STATE", "AGE")
MAX_PROBLEMS = 5


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Describe the subcommand."""
    parser = add(subparsers, "list", "list clusters", EXAMPLES)
    parser.add_argument("--all", action="store_true", help="everybody's clusters, not only mine")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def main(args: argparse.Namespace) -> int:
    """Print the clusters."""
    registry = Registry.of(site.of(args).settings)
    listing = choose.everywhere(registry)
    uid = os.getuid()
    shown = [
        r
        for r in sorted(listing.records, key=lambda r: (r.uid != uid, r.created))
        if args.all or r.uid == uid
    ]
    if args.json:
        show_json({"clusters": [as_dict(r) for r in shown], "problems": listing.problems})
        return 0
    if shown:
        print(text(shown, owners=args.all, now=time.time()), end="")
    else:
        others = len(listing.records)
        print(f"No clusters of yours; ksi list --all shows {others}." if others else "No clusters.")
    _tell_problems(listing.problems, full=args.all)
    return 0


def text(records: list[Record], *, owners: bool, now: float) -> str:
    """Return the table."""
    rows = [
        [
            r.cluster,
            "-" if r.job_id is None else str(r.job_id),
            r.node,
            str(r.port),
            str(r.state),
            age(now - r.created),
            *([user_name(r.uid)] if owners else []),
        ]
        for r in records
    ]
    return table((*HEAD, "USER") if owners else HEAD, rows)


def as_dict(record: Record) -> dict[str, object]:
    """Return what programs get to know about a cluster; times in epoch seconds."""
    return {
        "cluster": record.cluster,
        "context": record.context,
        "job_id": record.job_id,
        "restart": record.restart,
        "node": record.node,
        "uid": record.uid,
        "user": user_name(record.uid),
        "port": record.port,
        "state": str(record.state),
        "api": record.api,
        "created": record.created,
        "changed": record.changed,
        "run_dir": str(record.run_dir),
        "kubeconfig": str((record.secrets_dir or record.run_dir) / "kubeconfig"),
    }


def _tell_problems(problems: list[str], *, full: bool) -> None:
    if problems and not full:
        warn(f"{len(problems)} files in the registry cannot be trusted; ksi list --all tells which")
        return
    for problem in problems[:MAX_PROBLEMS]:
        warn(problem)
    if len(problems) > MAX_PROBLEMS:
        warn(f"and {len(problems) - MAX_PROBLEMS} more; ksi list --all --json tells all")
