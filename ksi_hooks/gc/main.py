"""The command ksi-gc, for cron or a systemd timer as root, and for a user by hand."""

import argparse
import json
import math
import os
import pwd
import sys
import syslog
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import __version__, config
from ksi_hooks.errors import KsiError, UsageError
from ksi_hooks.gc.round import Action, Outcome, Round
from ksi_hooks.gc.sweep import Verdict
from ksi_hooks.slurm.job import node_name

EXAMPLES = """\
examples:
  ksi-gc --dry-run          what would be deleted on this node, and why
  ksi-gc                    as root: for all users; as a user: your own clusters
  ksi-gc --user alice --older-than 0

exit status: 0 nothing failed, 1 something failed, 2 usage, 3 Slurm could not be asked, 78 bad configuration
"""
SLURM_UNKNOWN = 3


def entry() -> None:
    """Run the command and leave with its status."""
    sys.exit(main(sys.argv[1:]))


def main(arguments: list[str]) -> int:
    """Do one round; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        gc_round = _round(options)
        teller = _Teller(options.json, options.dry_run, options.verbose)
        outcome = gc_round.run(teller.tell)
        teller.finish(outcome)
    except KsiError as error:
        print(f"ksi-gc: error: {error}", file=sys.stderr)
        if error.hint:
            print(f"ksi-gc: hint: {error.hint}", file=sys.stderr)
        return error.exit_status
    for problem in outcome.problems:
        print(f"ksi-gc: error: {problem}", file=sys.stderr)
    if outcome.failed:
        return 1
    return SLURM_UNKNOWN if outcome.slurm_unknown else 0


def _round(options: argparse.Namespace) -> Round:
    own = os.getuid()
    found = config.find(options.config, os.environ)
    config_file = found or config.DEFAULT_FILE
    # Without a site's settings a user can still have clusters of his own, made by ksi run.
    settings = config.load(config_file) if found or own == 0 else config.personal(os.environ)
    uid = None if own == 0 else own
    if options.user is not None:
        uid = _uid(options.user)
        if own not in (0, uid):
            raise UsageError(f"only root can clean up after another user: {options.user}")
    grace = settings.gc_grace if options.older_than is None else options.older_than
    return Round(config_file, settings, options.node or node_name(os.environ), grace, uid, options.dry_run)


def _uid(user: str) -> int:
    if user.isdecimal():
        return int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError as error:
        raise UsageError(f"no such user: {user}") from error


@dataclass
class _Teller:
    """Tells each action at once: a line, or JSON at the end, and an audit line in syslog for what was
    deleted.
    """

    as_json: bool
    dry_run: bool
    verbose: bool

    def tell(self, action: Action) -> None:
        decision = action.decision
        if decision.verdict is Verdict.DELETE and not self.dry_run:
            result = "deleted" if action.done else f"left: {', '.join(action.left)}"
            syslog.syslog(
                syslog.LOG_NOTICE,
                f"ksi-gc: cluster={decision.cluster} uid={decision.uid} reason={decision.reason!r} {result}",
            )
        if not self.as_json and (decision.verdict is not Verdict.KEEP or self.verbose or self.dry_run):
            print(self._line(action))

    def finish(self, outcome: Outcome) -> None:
        if self.as_json:
            rows = [
                {
                    "cluster": a.decision.cluster,
                    "uid": a.decision.uid,
                    "verdict": str(a.decision.verdict),
                    "reason": a.decision.reason,
                    "deleted": a.done,
                    "left": a.left,
                }
                for a in outcome.actions
            ]
            print(json.dumps({"actions": rows, "problems": outcome.problems}, indent=2))
        elif self.dry_run and not outcome.actions:
            print("nothing to delete: no clusters of ksi on this node")

    def _line(self, action: Action) -> str:
        decision = action.decision
        word = str(decision.verdict)
        if decision.verdict is Verdict.DELETE:
            word = "would delete" if self.dry_run else "deleted" if action.done else "could not delete"
        left = f": {', '.join(action.left)}" if action.left else ""
        return f"{word} {decision.cluster} of user {decision.uid} ({decision.reason}){left}"


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"wants seconds, got {text!r}")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ksi-gc",
        description="Delete the clusters on this node whose job has ended and that no hook deleted.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings file (default: as ksi finds it)"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of lines")
    parser.add_argument("--verbose", action="store_true", help="tell about kept clusters as well")
    parser.add_argument("--user", help="only this user's clusters (name or number)")
    parser.add_argument("--older-than", type=_seconds, metavar="SECONDS", help="instead of gc_grace")
    parser.add_argument(
        "--node", help="Slurm's name of this node (default: SLURMD_NODENAME or the host name)"
    )
    parser.add_argument("--version", action="version", version=f"ksi-gc {__version__}")
    return parser


if __name__ == "__main__":  # as ksi-gc.service starts it
    entry()
