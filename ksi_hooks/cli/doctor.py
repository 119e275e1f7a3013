"""`ksi doctor`: what is missing on this node for clusters, what that means, and what to do."""

import argparse
import dataclasses
import os
from collections.abc import Sequence

from ksi_hooks.cli import site
from ksi_hooks.cli.output import clean, show_json
from ksi_hooks.cli.parsing import Parser, Subparsers, add
from ksi_hooks.doctor.examine import Examination
from ksi_hooks.doctor.finding import Finding, Level

EXAMPLES = """
ksi doctor                    on the node that shall run clusters, as the user who shall have them
sudo ksi doctor               the same for root: what the node's hooks need
ksi doctor --json             for programs
"""
STATUS = "exit status: 0 no errors (warnings do not count), 1 errors\n"


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Describe the subcommand."""
    parser = add(subparsers, "doctor", "check what clusters need on this node", EXAMPLES)
    parser.epilog = f"{parser.epilog}\n{STATUS}"
    parser.add_argument("--json", action="store_true", help="one JSON document")


def main(args: argparse.Namespace) -> int:
    """Examine, print, and return 1 when there are errors."""
    used = site.of(args)
    findings = Examination(used.settings, used.file, os.getuid(), os.environ).run()
    if args.json:
        show_json({"findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        print(text(findings), end="")
    return int(any(finding.level is Level.ERROR for finding in findings))


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
