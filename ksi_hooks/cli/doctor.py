"""`ksi doctor`: what is missing on this node for clusters, what that means, and what to do."""

import argparse
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from ksi_hooks.cli import site
from ksi_hooks.cli.output import clean, show_json
from ksi_hooks.cli.parsing import Parser, Subparsers, add
from ksi_hooks.doctor import lock_trial, storage
from ksi_hooks.doctor.examine import Examination
from ksi_hooks.doctor.finding import Finding, Level
from ksi_hooks.registry.store import Registry

EXAMPLES = """
ksi doctor                    on the node that shall run clusters, as the user who shall have them
sudo ksi doctor               the same for root: what the node's hooks need
ksi doctor --lock             does the registry's file system have locks that exclude?
ksi doctor --json             for programs
"""
STATUS = "exit status: 0 no errors (warnings do not count), 1 errors\n"


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Describe the subcommand."""
    parser = add(subparsers, "doctor", "check what clusters need on this node", EXAMPLES)
    parser.epilog = f"{parser.epilog}\n{STATUS}"
    parser.add_argument(
        "--lock", action="store_true", help="only try every kind of lock on the registry's mount"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")


def main(args: argparse.Namespace) -> int:
    """Examine, print, and return 1 when there are errors."""
    used = site.of(args)
    if args.lock:
        findings = lock_findings(Registry.of(used.settings))
    else:
        findings = Examination(used.settings, used.file, os.getuid(), os.environ).run()
    if args.json:
        show_json({"findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        print(text(findings), end="")
    return int(any(finding.level is Level.ERROR for finding in findings))


def lock_findings(registry: Registry) -> list[Finding]:
    """Try every kind of lock where the registry is; raises KsiError when it is not prepared."""
    registry.require_usable()
    trials = [lock_trial.attempt(registry.top, kind) for kind in lock_trial.KINDS]
    risky = storage.risky_options(registry.top.resolve(), Path("/proc/self/mounts").read_text())
    return storage.locks(trials, used=registry.lock_kind, risky=risky)


def text(findings: Sequence[Finding]) -> str:
    """Return a line for each finding, effect and remedy below what is not well, and the sum."""
    width = max((len(f.name) for f in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<8} {finding.name:<{width}}  {clean(finding.seen)}")
        if finding.level is not Level.OK:
            lines.append(f"{'':<8}   effect: {clean(finding.effect)}")
            lines.append(f"{'':<8}   remedy: {clean(finding.remedy)}")
    count = {level: sum(f.level is level for f in findings) for level in Level}
    errors, warnings = count[Level.ERROR], count[Level.WARNING]
    lines.append(f"{errors} errors, {warnings} warnings, {count[Level.OK]} in order")
    return "".join(f"{line}\n" for line in lines)
