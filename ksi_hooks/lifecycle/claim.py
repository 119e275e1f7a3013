"""Claiming: under the user's lock, decide whether this task makes the cluster, uses it or waits."""

import dataclasses
import os
import secrets
import time
from dataclasses import dataclass
from enum import Enum

from ksi_hooks import proc
from ksi_hooks.errors import KsiError
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.proc import Process
from ksi_hooks.registry import ports
from ksi_hooks.registry.record import Record, State, cluster_name, is_earlier_run
from ksi_hooks.slurm.job import Job

NAME_TRIES = 20
# Other ports are hints (a port is proven by bind), so thousands of made-up records need not be read.
HINTS_READ = 500


class Turn(Enum):
    """What a task has to do next."""

    CREATE = "create"
    ATTACH = "attach"
    WAIT = "wait"


@dataclass(frozen=True)
class Claim:
    """The decision, the record it is about, and what an earlier run left behind."""

    turn: Turn
    record: Record
    leftovers: list[Record]


def take_turn(context: Context, job: Job, *, others_hold: bool) -> Claim:
    """Decide for a task on the home node, and write the claim when it is this task's turn to create.

    Call with the user's lock held. others_hold: another task of a living step already uses the job's
    cluster, so whatever is recorded belongs to this run of the job.
    """
    known = [r for r in context.registry.of_job(context.node, job.id, context.uid) if not r.held_by_creator]
    current = [r for r in known if _is_current(r, job, others_hold)]
    leftovers = [r for r in known if r not in current]
    for record in current:
        if record.state is State.READY:
            return Claim(Turn.ATTACH, record, leftovers)
        if proc.is_alive(record.creator):  # it makes the cluster, or deletes what it could not make
            return Claim(Turn.WAIT, record, leftovers)
        leftovers.append(record)  # its creator died, or a deletion did not come to its end
    return Claim(
        Turn.CREATE, new_record(context, job_id=job.id, restart=job.restart, job_start=job.start), leftovers
    )


def new_record(
    context: Context,
    *,
    job_id: int | None,
    restart: int = 0,
    job_start: int = 0,
    held_by_creator: bool = False,
) -> Record:
    """Choose name and port and write the claim; raises KsiError when no port is free or the registry cannot
    be written.
    """
    creator = proc.find(os.getpid()) or Process(os.getpid(), 0)
    with context.registry.locked(context.node):
        listing = context.registry.of_node(context.node, at_most=HINTS_READ).records
        port = _port(context, listing, seed=job_id or creator.pid)
        for _ in range(NAME_TRIES):
            cluster = cluster_name(job_id, secrets.token_hex(3)[:5])
            now = time.time()
            record = Record(
                cluster=cluster,
                node=context.node,
                boot_id=proc.boot_id(),
                job_id=job_id,
                restart=restart,
                job_start=job_start,
                port=port,
                run_dir=context.user_dir.cluster_dir(cluster),
                creator=creator,
                held_by_creator=held_by_creator,
                state=State.CREATING,
                created=now,
                changed=now,
                uid=context.uid,
            )
            try:
                context.registry.claim(record)
            except FileExistsError:
                continue
            return record
    raise KsiError(f"no free name for a cluster in {context.registry.top} after {NAME_TRIES} tries")


def other_port(context: Context, record: Record, tried: set[int]) -> Record:
    """Claim another port after kind found the first one in use; a port is proven by bind, not by looking."""
    if _preset(context):
        raise KsiError(f"K8S_PORT is in use on this node: {record.port}", hint="unset K8S_PORT", blame="user")
    with context.registry.locked(context.node):
        listing = context.registry.of_node(context.node, at_most=HINTS_READ).records
        port = _free_port(context, listing, record.port + 1, tried)
        return context.registry.update(dataclasses.replace(record, port=port))


def _is_current(record: Record, job: Job, others_hold: bool) -> bool:
    """False for what an earlier run of the job (requeue, restart, reboot) left: the id repeats, the run does
    not.
    """
    if record.boot_id != proc.boot_id():
        return False
    if others_hold:
        return True
    return record.restart == job.restart and not is_earlier_run(record, job.start)


def _port(context: Context, listing: list[Record], seed: int) -> int:
    settings = context.settings
    if wish := _preset(context):
        # Only the user's own claims refuse a preset port: a stranger's may be made up, and binding tells the
        # truth.
        return ports.preset(wish, {r.port for r in listing if r.uid == context.uid}, settings.listen_address)
    return _free_port(context, listing, seed, set())


def _free_port(context: Context, listing: list[Record], seed: int, tried: set[int]) -> int:
    settings = context.settings
    own = {r.port for r in listing if r.uid == context.uid}
    others = ports.claims(r for r in listing if r.uid != context.uid)
    return ports.choose(
        own | tried, settings.port_range, settings.listen_address, seed, hints=frozenset(others)
    )


def _preset(context: Context) -> str:
    """Return the K8S_PORT that the user set; one that came with KSI_JOB_ID was exported by a hook and is no
    wish.
    """
    return "" if "KSI_JOB_ID" in context.environ else context.environ.get("K8S_PORT", "")
