"""What a task of a k8s job does before it starts: make the cluster or wait for it, get its values."""

import socket
import time
from dataclasses import dataclass

from ksi_hooks.errors import KsiError
from ksi_hooks.lifecycle import claim, create, delete
from ksi_hooks.lifecycle.claim import Turn
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.lifecycle.create import Wanted
from ksi_hooks.registry.record import Record, State
from ksi_hooks.run import Deadline
from ksi_hooks.slurm.job import Job, Step

POLL_SECONDS = 0.2
POLL_REMOTE_SECONDS = 1.0
ANSWER_SECONDS = 5.0
LOOKS_BEFORE_GONE = 3  # a network file system may show nothing for a moment while a record is replaced


@dataclass(frozen=True)
class Provided:
    """A ready cluster, and whether this task made it."""

    record: Record
    created: bool
    seconds: float


def provide(context: Context, job: Job, step: Step) -> Provided:
    """Return the job's ready cluster; raises KsiError when there is none and cannot be one."""
    started = time.monotonic()
    if not job.is_home:
        record = _wait_for_home_node(context, job)
        return Provided(record, created=False, seconds=time.monotonic() - started)
    deadline = Deadline(context.settings.attach_timeout)
    while True:
        turn = _take_turn(context, job, step)
        if turn.turn is Turn.CREATE:
            record = _create(context, job, step, turn)
            return Provided(record, created=True, seconds=time.monotonic() - started)
        record = turn.record
        if turn.turn is Turn.ATTACH:
            _require_answer(record)
            return Provided(record, created=False, seconds=time.monotonic() - started)
        if deadline.passed:
            raise _not_ready(record, deadline)
        time.sleep(POLL_SECONDS)


def _take_turn(context: Context, job: Job, step: Step) -> claim.Claim:
    with context.user_dir.locked():
        others = bool(context.user_dir.holders(job.id))
        context.user_dir.add_holder(job.id, step)
        failure = context.user_dir.failure(job.id, step)
        if failure:
            raise failure
        return claim.take_turn(context, job, others_hold=others)


def _create(context: Context, job: Job, step: Step, turn: claim.Claim) -> Record:
    wanted = Wanted(job.work_dir, job.asked_dir, job.end, spans_nodes=job.nodes > 1)
    for leftover in turn.leftovers:
        delete.delete(context, leftover, Deadline(context.settings.epilog_timeout))
    # The other tasks have to know before the claim is gone, else one of them tries again.
    return create.create(
        context,
        turn.record,
        wanted,
        failed=lambda error: context.user_dir.note_failure(job.id, step, error),
    )


def _wait_for_home_node(context: Context, job: Job) -> Record:
    """Wait for the record that the job's first node publishes; one that appears and vanishes means that it
    failed.
    """
    deadline = Deadline(context.settings.attach_timeout)
    seen: Record | None = None
    missed = 0
    while True:
        found = context.registry.of_job(job.home_node, job.id, context.uid)
        usable = [r for r in found if r.state is not State.DELETING and not r.held_by_creator]
        if usable and usable[0].state is State.READY:
            _require_answer(usable[0])
            return usable[0]
        missed = 0 if usable else missed + 1
        if seen and missed >= LOOKS_BEFORE_GONE:
            raise KsiError(
                f"the job's cluster could not be made on its first node: {job.home_node}",
                hint="the output of the first task tells why",
            )
        seen = usable[0] if usable else seen
        if deadline.passed:
            raise _not_ready(seen, deadline, job.home_node)
        time.sleep(POLL_REMOTE_SECONDS)


def _not_ready(record: Record | None, deadline: Deadline, node: str = "") -> KsiError:
    if record:
        what = f"cluster {record.cluster} is not ready after attach_timeout ({deadline.seconds:g} s)"
    else:
        what = (
            f"no cluster of this job on its first node {node} after attach_timeout ({deadline.seconds:g} s)"
        )
    return KsiError(what, hint="the output of the job's first task tells why")


def _require_answer(record: Record) -> None:
    """Raise KsiError unless the recorded API listens: a step must not be handed a dead cluster."""
    host, _, port = record.api.partition("://")[2].rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
    except (OSError, ValueError) as error:
        raise KsiError(
            f"the job's cluster does not answer any more: {record.cluster} at {record.api} ({error})",
            hint="ask for a new cluster by submitting the job again",
        ) from error
