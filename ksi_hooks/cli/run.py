"""`ksi run`: make a cluster, run a script in it, delete it; with or without Slurm."""

import argparse
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ksi_hooks.config import Settings
from ksi_hooks.errors import KsiError, ProgramMissing
from ksi_hooks.hooks.boundary import interruptible
from ksi_hooks.lifecycle import claim, create, delete, exports
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.lifecycle.create import Wanted
from ksi_hooks.registry.record import Record
from ksi_hooks.run import Deadline, replace_process
from ksi_hooks.slurm import job as jobs

EXAMPLES = """\
examples:
  ksi run ./workload.sh --size 10        a cluster for one script, then gone
  srun -N1 -n1 ksi run ./workload.sh     inside a job of a node with kind and Podman

exit status: 1 no script named or no cluster made, 2 script not found, 3 no cgroup v2,
4 kind, podman or kubectl missing, 78 bad configuration, otherwise the script's own (128 + signal when
a signal ended it)
"""
PROGRAMS = ("podman", "kubectl", "kind")


class _Refused(KsiError):
    """A reason that has an exit status of its own, as in the predecessor."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.exit_status = status


def add_parser(subparsers: "argparse._SubParsersAction[Any]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "run",
        usage="ksi run [-h] [--config FILE] [--debug] SCRIPT [ARGS ...]",
        help="run a script in a cluster of its own",
        description="Make a cluster, run SCRIPT with it and delete it. The current directory is /app there.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def main(options: argparse.Namespace, settings: Settings) -> int:
    """Run the script and return its status; raises KsiError when there is no cluster for it."""
    words = options.command[1:] if options.command[:1] == ["--"] else options.command
    command = _command(words)
    environ = dict(os.environ)
    if _has_cluster(environ):
        _tell(f"using the job's cluster {environ['K8S_CLUSTER_NAME'].removeprefix('kind-')}")
        return replace_process(command, environ)
    context = Context.make(settings, jobs.node_name(environ), environ)
    _require_machine(context)
    started = time.monotonic()
    with interruptible():
        record = _create(context)
        seconds = time.monotonic() - started
        _tell(f"cluster {record.cluster} is ready after {seconds:.1f} s (K8S_PORT {record.port})")
    try:
        return replace_process(command, environ | _variables(context, record))
    finally:
        _delete(context, record)


def _create(context: Context) -> Record:
    job_id = jobs.job_id(context.environ)
    with context.user_dir.locked():
        record = claim.new_record(context, job_id=job_id, held_by_creator=True)
    _tell(f"making cluster {record.cluster} (log: {context.user_dir.log_file(record.cluster)})")
    end = context.environ.get("SLURM_JOB_END_TIME", "")
    wanted = Wanted(
        jobs.work_dir(context.environ),
        context.environ.get("PWD", ""),
        int(end) if end.isdecimal() else 0,
        spans_nodes=False,
    )
    return create.create(context, record, wanted)


def _variables(context: Context, record: Record) -> dict[str, str]:
    no_proxy = exports.job_no_proxy(dict(context.environ))
    return exports.variables(record, context.settings, secrets_dir=record.run_dir, no_proxy=no_proxy)


def _delete(context: Context, record: Record) -> None:
    left = delete.delete(context, record, Deadline(context.settings.epilog_timeout))
    if left:
        _tell(f"warning: not deleted yet, ksi-gc will go on: {', '.join(left)}")
    else:
        _tell(f"cluster {record.cluster} is deleted")


def _command(words: list[str]) -> list[str]:
    if not words:
        raise _Refused(1, "no script named", "ksi run SCRIPT [ARGS]")
    script = Path(words[0])
    if not script.is_file():
        raise _Refused(2, f"script not found: {script}", "give its path, as in ksi run ./workload.sh")
    if os.access(script, os.X_OK):
        return [str(script.absolute()), *words[1:]]
    return ["/bin/bash", str(script), *words[1:]]


def _has_cluster(environ: Mapping[str, str]) -> bool:
    """True inside a job whose hooks have made a cluster; another job's variables do not count."""
    own = environ.get("SLURM_JOB_ID")
    return bool(own and environ.get("KSI_JOB_ID") == own and environ.get("K8S_CLUSTER_NAME"))


def _require_machine(context: Context) -> None:
    if context.uid != 0 and not Path("/sys/fs/cgroup/cgroup.controllers").exists():
        raise _Refused(3, "this machine has no cgroup v2", "boot with systemd.unified_cgroup_hierarchy=1")
    tools = context.tools()
    missing = []
    for program in PROGRAMS:
        try:
            tools.find(program)
        except ProgramMissing:
            missing.append(program)
    if missing:
        searched = ":".join(map(str, context.settings.tools_path))
        raise _Refused(
            4,
            f"missing programs: {', '.join(missing)} (searched {searched})",
            "install them, or set tools_path",
        )


def _tell(text: str) -> None:
    print(f"ksi: {text}", file=sys.stderr, flush=True)
