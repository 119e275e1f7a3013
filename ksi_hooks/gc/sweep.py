"""Decides what is stale; pure: facts in, decisions out, no clock and no commands."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from ksi_hooks.proc import Process
from ksi_hooks.registry import record as records
from ksi_hooks.registry.record import Record, State
from ksi_hooks.slurm.query import JobFacts, JobState

CLOCK_SLACK_SECONDS = 5.0
UNKNOWN = JobFacts(JobState.UNKNOWN)


class Verdict(StrEnum):
    """What happens to a cluster in this round."""

    DELETE = "delete"
    KEEP = "keep"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Decision:
    """A cluster, what to do with it, and why in a few words."""

    cluster: str
    uid: int
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Found:
    """A node container that no record knows; created in epoch seconds."""

    cluster: str
    uid: int
    created: float


@dataclass(frozen=True)
class Facts:
    """What is known on this node at one moment; times in epoch seconds."""

    now: float
    boot_id: str
    grace: float
    hook_seconds: float  # a hook's deletion has ended, one way or the other, after this
    jobs: Mapping[int, JobFacts]
    jobs_with_stepd: frozenset[int] = frozenset()
    alive: frozenset[Process] = field(default_factory=frozenset)  # creators that run
    requested: frozenset[str] = frozenset()  # clusters that somebody entitled wants deleted


def judge(record: Record, facts: Facts) -> Decision:
    """Decide about a recorded cluster of this node."""
    verdict, reason = _judge(record, facts)
    return Decision(record.cluster, record.uid, verdict, reason)


def judge_unrecorded(found: Found, facts: Facts) -> Decision:
    """Decide about a cluster that only Podman knows; only names that ksi gives are looked at."""
    job_id = records.job_of(found.cluster)
    verdict, reason = Verdict.DELETE, "no record"
    if _age(facts.now, found.created) < facts.grace:
        verdict, reason = Verdict.KEEP, "no record, within gc_grace"
    elif job_id is not None:
        state = facts.jobs.get(job_id, UNKNOWN).state
        if state is JobState.UNKNOWN:
            verdict, reason = Verdict.UNKNOWN, "Slurm does not tell"
        elif state is JobState.ALIVE or job_id in facts.jobs_with_stepd:
            verdict, reason = Verdict.KEEP, "no record, but the job lives"
    return Decision(found.cluster, found.uid, verdict, reason)


def unrecorded(found: Iterable[Found], recorded: Iterable[Record]) -> list[Found]:
    """Return ksi's clusters that their owner has no record of; another tenant's record does not count."""
    known = {(record.uid, record.cluster) for record in recorded}
    return [f for f in found if (f.uid, f.cluster) not in known and records.CLUSTER_NAME.fullmatch(f.cluster)]


def _judge(record: Record, facts: Facts) -> tuple[Verdict, str]:
    if record.cluster in facts.requested:
        return Verdict.DELETE, "its deletion was requested"
    age = _age(facts.now, record.changed)
    creator_lives = record.boot_id == facts.boot_id and record.creator in facts.alive
    if record.held_by_creator:
        if creator_lives:
            return Verdict.KEEP, "its ksi run lives"
        return _after_grace(age, facts.grace, "its ksi run has ended")
    if record.job_id is None:
        return _after_grace(age, facts.grace, "belongs to no job")
    if record.state is State.CREATING and creator_lives and record.job_id in facts.jobs_with_stepd:
        return Verdict.KEEP, "is being made"
    job = facts.jobs.get(record.job_id, UNKNOWN)
    if job.state is JobState.UNKNOWN:
        return Verdict.UNKNOWN, "Slurm does not tell"
    if job.state is JobState.ALIVE:
        return _judge_of_living_job(record, facts, job, age)
    if record.job_id in facts.jobs_with_stepd:
        return Verdict.KEEP, "the job has ended, but a step of it lives here"
    if record.state is State.DELETING:
        return _after_grace(age, min(facts.grace, facts.hook_seconds), "a hook could not finish")
    return _after_grace(age, facts.grace, "the job has ended")


def _judge_of_living_job(record: Record, facts: Facts, job: JobFacts, age: float) -> tuple[Verdict, str]:
    has_stepd = record.job_id in facts.jobs_with_stepd
    if record.boot_id != facts.boot_id:
        return _after_grace(age, facts.grace, "the node has booted since")
    if records.is_earlier_run(record, job.start) and not has_stepd:
        return _after_grace(age, facts.grace, "belongs to an earlier run of the job")
    if record.state is State.DELETING:
        return _after_grace(age, min(facts.grace, facts.hook_seconds), "a hook could not finish")
    if record.state is State.CREATING and record.creator not in facts.alive:
        return _after_grace(age, facts.grace, "its creator has died")
    return Verdict.KEEP, "the job lives"


def _age(now: float, moment: float) -> float:
    """Return the seconds since a moment; one that lies ahead buys nobody a longer grace."""
    return now - moment if moment <= now + CLOCK_SLACK_SECONDS else math.inf


def _after_grace(age: float, grace: float, reason: str) -> tuple[Verdict, str]:
    return (Verdict.DELETE, reason) if age >= grace else (Verdict.KEEP, f"{reason}, within its grace")
