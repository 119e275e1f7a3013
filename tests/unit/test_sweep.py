"""What ksi-gc decides from what is known."""

import dataclasses

import pytest
from unit.test_record import GOOD

from ksi_hooks.gc.sweep import Facts, Found, Verdict, judge, judge_unrecorded, unrecorded
from ksi_hooks.registry.record import State
from ksi_hooks.slurm.query import JobFacts, JobState

NOW, DAY = 1.6e9, 86400.0
ALIVE, GONE, UNKNOWN = (JobFacts(state) for state in (JobState.ALIVE, JobState.GONE, JobState.UNKNOWN))
DELETE, KEEP, ASK = Verdict.DELETE, Verdict.KEEP, Verdict.UNKNOWN


def facts(job=ALIVE, **changes):
    known = Facts(now=NOW, boot_id=GOOD.boot_id, grace=600, hook_seconds=50, jobs={7: job})
    return dataclasses.replace(known, **changes)


def record(age=DAY, **changes):
    return dataclasses.replace(GOOD, created=NOW - age, changed=NOW - age, **changes)


@pytest.mark.parametrize(
    ("what", "job", "known", "verdict"),
    [
        (record(40 * DAY), ALIVE, {}, KEEP),
        (record(40 * DAY), UNKNOWN, {}, ASK),
        (record(), GONE, {}, DELETE),
        (record(599), GONE, {}, KEEP),
        (record(601), GONE, {}, DELETE),
        (record(), GONE, {"jobs_with_stepd": frozenset({7})}, KEEP),
        (record(10, state=State.CREATING), ALIVE, {"alive": frozenset({GOOD.creator})}, KEEP),
        (record(DAY, state=State.CREATING), ALIVE, {"alive": frozenset({GOOD.creator})}, KEEP),
        (record(DAY, state=State.CREATING), ALIVE, {}, DELETE),
        (record(10, state=State.CREATING), ALIVE, {}, KEEP),
        (record(DAY, state=State.CREATING), GONE, {}, DELETE),
        (record(30, state=State.DELETING), GONE, {}, KEEP),
        (record(60, state=State.DELETING), GONE, {}, DELETE),
        (record(), JobFacts(JobState.ALIVE, int(NOW - 1000)), {}, DELETE),
        (record(), JobFacts(JobState.ALIVE, int(NOW - DAY + 3)), {}, KEEP),
        (record(), JobFacts(JobState.ALIVE, int(NOW - 1000)), {"jobs_with_stepd": frozenset({7})}, KEEP),
        (record(boot_id="0"), ALIVE, {}, DELETE),
        (record(boot_id="0"), UNKNOWN, {}, ASK),
        (record(cluster="ksi-local-0af3c", job_id=None), GONE, {}, DELETE),
        (record(held_by_creator=True), GONE, {"alive": frozenset({GOOD.creator})}, KEEP),
        (record(held_by_creator=True), ALIVE, {}, DELETE),
        (record(held_by_creator=True, boot_id="0"), ALIVE, {"alive": frozenset({GOOD.creator})}, DELETE),
    ],
)
def test_kb_38_recorded_clusters(what, job, known, verdict):
    decision = judge(what, facts(job, **known))
    assert decision.verdict is verdict, decision
    assert decision.reason


def test_job_that_slurm_was_not_asked_about_is_unknown():
    assert judge(record(), facts(jobs={})).verdict is ASK


@pytest.mark.parametrize(
    ("name", "age", "job", "known", "verdict"),
    [
        ("ksi-7-00000", DAY, GONE, {}, DELETE),
        ("ksi-7-00000", 10, GONE, {}, KEEP),
        ("ksi-7-00000", DAY, ALIVE, {}, KEEP),
        ("ksi-7-00000", DAY, UNKNOWN, {}, ASK),
        ("ksi-7-00000", DAY, GONE, {"jobs_with_stepd": frozenset({7})}, KEEP),
        ("ksi-8-00000", DAY, GONE, {}, ASK),
        ("ksi-local-00000", DAY, GONE, {}, DELETE),
    ],
)
def test_clusters_without_a_record(name, age, job, known, verdict):
    assert judge_unrecorded(Found(name, 1000, NOW - age), facts(job, **known)).verdict is verdict


def test_only_ksis_own_names_are_looked_at_and_strangers_records_do_not_count():
    found = [Found(name, 1000, 0) for name in ("kind", "dev", GOOD.cluster, "ksi-8-00000", "--all")]
    assert [f.cluster for f in unrecorded(found, [GOOD])] == ["ksi-8-00000"]
    stranger = dataclasses.replace(GOOD, uid=1001)
    assert [f.cluster for f in unrecorded(found, [stranger])] == [GOOD.cluster, "ksi-8-00000"]
