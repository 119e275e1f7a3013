"""Asking Slurm's controller, with the three answers that exist: yes, no, could not be had.

Only fields without free text are asked for, by `squeue --format`, so that nothing a user wrote (job name,
comment, path) can be taken for an answer.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from ksi_hooks.errors import CommandFailed, ProgramMissing
from ksi_hooks.run import Deadline, Tools
from ksi_hooks.slurm.features import wanted
from ksi_hooks.slurm.job import hosts

# From job_state_string() in slurm_protocol_defs.c. COMPLETING is alive: its processes may still run.
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "TIMEOUT",
    }
)
BATCH = 1000  # a list of ids is one argument, which the kernel limits to 128 KiB
INVALID_ID = "Invalid job id specified"


class Answer(Enum):
    """What is known about a yes-or-no question to Slurm."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class JobState(Enum):
    """What Slurm says about a job; only GONE allows to delete."""

    GONE = "gone"
    ALIVE = "alive"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class JobFacts:
    """A job's state and the start of its present run (epoch seconds, 0 when unknown or not started)."""

    state: JobState
    start: int = 0


def asks_for_cluster(tools: Tools, *, job_id: int, node: str, feature: str, timeout: float) -> Answer:
    """Ask once whether the job (or a component of it on this node) has the feature in its constraint."""
    deadline = Deadline(timeout)

    def node_features() -> str:
        return tools.capture(["sinfo", "-h", "-n", node, "-o", "%f"], timeout=deadline.left()).strip()

    try:
        rows = tools.capture(
            ["squeue", "-h", "-j", str(job_id), "-t", "all", "-o", "%A|%N|%f"], timeout=deadline.left()
        )
        expressions = _expressions(rows, job_id, node)
        if not expressions:
            return Answer.UNKNOWN
        found = any(wanted(expression, feature, node_features) for expression in expressions)
    except (CommandFailed, ProgramMissing):
        return Answer.UNKNOWN
    return Answer.YES if found else Answer.NO


def job_facts(tools: Tools, job_ids: Iterable[int], *, timeout: float) -> dict[int, JobFacts]:
    """Return what Slurm says about each job: asked in batches, absent ids one by one in the given order."""
    wanted_ids = list(dict.fromkeys(job_ids))
    facts = dict.fromkeys(wanted_ids, JobFacts(JobState.UNKNOWN))
    if not wanted_ids:
        return facts
    deadline = Deadline(timeout)
    for batch in _batches(sorted(wanted_ids)):
        facts |= _ask(tools, batch, deadline)
    for number in wanted_ids:
        if facts[number].state is JobState.UNKNOWN and not deadline.passed:
            facts |= _ask(tools, [number], deadline)
    return facts


def _batches(numbers: list[int]) -> list[list[int]]:
    return [numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH)]


def _ask(tools: Tools, job_ids: list[int], deadline: Deadline) -> dict[int, JobFacts]:
    asker = tools.extended(SLURM_TIME_FORMAT="%s")  # squeue then prints epoch seconds
    listing = ",".join(map(str, job_ids))
    try:
        status, answer = asker.status(
            ["squeue", "-h", "-j", listing, "-t", "all", "-o", "%A|%T|%S"], timeout=deadline.left()
        )
    except (CommandFailed, ProgramMissing):
        return {}
    if status != 0:
        # Slurm's own word that no such job exists; anything else (no controller, time-out) is no answer.
        single_gone = len(job_ids) == 1 and INVALID_ID in answer
        return {job_ids[0]: JobFacts(JobState.GONE)} if single_gone else {}
    return _facts(answer, set(job_ids))


def _facts(answer: str, job_ids: set[int]) -> dict[int, JobFacts]:
    facts: dict[int, JobFacts] = {}
    for line in answer.splitlines():
        number, _, rest = line.strip().partition("|")
        state, _, start = rest.partition("|")
        if number.isdecimal() and int(number) in job_ids and state.isupper():
            verdict = JobState.GONE if state in ENDED else JobState.ALIVE
            began = int(start) if start.isdecimal() and int(start) <= time.time() + 1 else 0
            facts[int(number)] = JobFacts(verdict, began)
    return facts


def _expressions(rows: str, job_id: int, node: str) -> list[str]:
    """Return the constraints of the components on this node, else of the job itself.

    Tasks of every component of a heterogeneous job see the leader's id; squeue lists all components for it.
    """
    here, own = [], []
    for row in rows.splitlines():
        number, _, rest = row.strip().partition("|")
        nodes, _, expression = rest.partition("|")
        if not number.isdecimal():
            continue
        if node in hosts(nodes):
            here.append(expression)
        elif int(number) == job_id:
            own.append(expression)
    return here or own
