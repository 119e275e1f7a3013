"""Decides who still needs a job's cluster when one task has ended; pure."""

from collections.abc import Iterable

from ksi_hooks.lifecycle.userdir import Holder
from ksi_hooks.proc import Process


def is_needed(
    holders: Iterable[Holder], *, leaving: Process, owns_job: bool, siblings: bool, until_job_end: bool
) -> bool:
    """True when the cluster has to stay after a task of the step of slurmstepd `leaving` has ended.

    holders: those with a living slurmstepd. owns_job: the step is the batch script or interactive shell,
    which the job stands and falls with. siblings: another task of the same step still lives or is about to
    start. until_job_end: the node's epilog will delete it, so a job of several `srun` commands keeps one
    cluster.
    """
    if siblings:
        return True
    if owns_job:
        return False
    others = [holder for holder in holders if holder.stepd != leaving]
    return bool(others) or until_job_end
