"""Slurm's TaskProlog: gives the tasks of a k8s job their cluster, and lets all others pass in silence.

Called by the sh gate with: settings file, parent's process id, node_state_dir, directory of the users' run
directories.
"""

import os
import sys

from ksi_hooks import gate


def main(argv: list[str]) -> int:
    """Return 0 for a job that is not ours whatever happens; for one of ours, 0 only with a cluster."""
    config_file, parent, state_dir, run_root = argv[1:5]
    try:
        ours = _is_ours(config_file, state_dir, f"{run_root}/{os.getuid()}")
    except Exception:
        return 0
    if not ours:
        return 0
    return _provide(config_file, int(parent))


def _is_ours(config_file: str, state_dir: str, user_dir: str) -> bool:
    verdict = gate.decide(dict(os.environ), state_dir, user_dir)
    if verdict in (gate.NO, gate.YES):
        return bool(verdict == gate.YES)
    from pathlib import Path

    from ksi_hooks.hooks import trigger

    settings = trigger.settings_or_defaults(Path(config_file))
    if verdict == gate.REQUESTED:
        refusal = trigger.refusal(settings, os.environ)
        if refusal and os.environ.get("SLURM_PROCID", "0") == "0":
            sys.stdout.write(f"print ksi: KSI=1 is ignored: {refusal}\n")
        return not refusal
    return trigger.wants_cluster(settings, os.environ, Path(user_dir))


def _provide(config_file: str, parent: int) -> int:
    from ksi_hooks import proc
    from ksi_hooks.hooks import boundary
    from ksi_hooks.hooks.prolog_work import PrologWork

    directives = boundary.take_stdout()
    # The sh gate has put the directory it is in into PWD; Slurm's word is in what the gate was started with.
    wanted_dir = proc.initial_environment(os.getppid()).get("PWD", "")
    work = PrologWork(config_file, parent, {**os.environ, "PWD": wanted_dir})
    with boundary.interruptible():
        error = boundary.guard(work.run, work.report)
    boundary.say(directives, work.lines(error))
    work.report.send()
    return work.status(error)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
