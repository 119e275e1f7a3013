"""What is done when a task of a k8s job has ended: the last holder deletes the cluster."""

from dataclasses import dataclass, field

from ksi_hooks import proc
from ksi_hooks.lifecycle import delete, holding
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.registry.record import Record
from ksi_hooks.run import Deadline
from ksi_hooks.slurm.job import Job, Step

# A forked task that has not yet run its prolog is still called like its parent.
STEPD_NAME = "slurmstepd"


@dataclass(frozen=True)
class Released:
    """What an epilog did: clusters deleted, and what is left of those that could not be finished in time."""

    needed: bool
    deleted: list[str] = field(default_factory=list)
    remains: list[str] = field(default_factory=list)


def release(context: Context, job: Job, step: Step, *, until_job_end: bool) -> Released:
    """Give up this task's hold; delete the job's clusters on this node when nobody needs them any more."""
    if not job.is_home:
        return Released(needed=False)
    deadline = Deadline(context.settings.epilog_timeout)
    with context.user_dir.locked(at_most=deadline.left()):
        holders = context.user_dir.holders(job.id)
        siblings = _siblings_live(holders_tasks=[h.task for h in holders if h.stepd == step.stepd], step=step)
        records = [] if siblings else context.registry.of_job(context.node, job.id, context.uid)
        if not siblings:  # slurmstepd lives on for a moment, which must not keep the cluster
            context.user_dir.drop_holder(job.id, step)
        if holding.is_needed(
            holders,
            leaving=step.stepd,
            owns_job=step.owns_job,
            siblings=siblings,
            until_job_end=until_job_end and bool(records),
        ):
            return Released(needed=True)
        for record in records:  # under the lock; the state before tells the deleter what to expect
            delete.mark(context, record)
    return delete_all(context, job.id, records, deadline)


def delete_all(context: Context, job_id: int, records: list[Record], deadline: Deadline) -> Released:
    """Delete the clusters of a job and forget who held them."""
    deleted, remains = [], []
    for position, record in enumerate(records):
        share = Deadline(
            deadline.left() / (len(records) - position)
        )  # one that stays must not cost the others
        left = delete.delete(context, record, share)
        remains += [f"{record.cluster}: {part}" for part in left]
        deleted += [] if left else [record.cluster]
    context.user_dir.forget_if_unheld(job_id)
    return Released(False, deleted, remains)


def _siblings_live(*, holders_tasks: list[proc.Process], step: Step) -> bool:
    if any(proc.is_alive(task) for task in holders_tasks):
        return True
    waiting = proc.children_of(step.stepd.pid) if step.stepd.pid else []
    return any(proc.name_of(pid) == STEPD_NAME for pid in waiting)
