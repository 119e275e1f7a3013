"""Slurm's TaskEpilog: the last task of a k8s job deletes its cluster; never fails a job.

Called by the sh gate with: settings file, parent's process id, node_state_dir, directory of the users' run
directories.
"""

import os
import sys

from ksi_hooks import gate


def main(argv: list[str]) -> int:
    """Return 0: what could not be done is left to the node's epilog and ksi-gc."""
    config_file, parent, state_dir, run_root = argv[1:5]
    job_id = os.environ.get("SLURM_JOB_ID") or os.environ.get("SLURM_JOBID") or ""
    # The prolog notes every holder here before it does anything else.
    if not job_id.isdecimal() or not os.path.isdir(f"{run_root}/{os.getuid()}/jobs/{job_id}"):
        return 0
    from ksi_hooks.hooks import boundary

    until_job_end = os.path.isfile(os.path.join(state_dir, gate.MARKER_DIR, job_id))
    boundary.take_stdout()
    report = boundary.Report("task-epilog", job=job_id, uid=os.getuid())
    boundary.guard(lambda: _release(config_file, int(parent), until_job_end, report), report)
    report.send()
    return 0


def _release(config_file: str, parent: int, until_job_end: bool, report: object) -> None:
    from pathlib import Path

    from ksi_hooks import config
    from ksi_hooks.hooks.boundary import Report
    from ksi_hooks.lifecycle.context import Context
    from ksi_hooks.lifecycle.release import release
    from ksi_hooks.slurm import job as jobs

    assert isinstance(report, Report)
    environ = dict(os.environ)
    settings = config.load(Path(config_file))
    job = jobs.from_environ(environ)
    context = Context.make(settings, job.node, environ)
    done = release(context, job, jobs.step_of_epilog(parent, environ), until_job_end=until_job_end)
    report.facts |= {
        "node": job.node,
        "kept": str(done.needed).lower(),
        "deleted": ",".join(done.deleted) or "-",
    }
    if done.remains:
        report.result, report.detail = "incomplete", "; ".join(done.remains)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
