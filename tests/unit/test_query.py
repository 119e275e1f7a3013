"""Slurm's answers told apart: yes, no, could not be had; gone, alive, unknown."""

import time

import pytest

from ksi_hooks.errors import CommandFailed, ProgramMissing
from ksi_hooks.slurm import query
from ksi_hooks.slurm.query import Answer, JobFacts, JobState


class Slurm:
    """Stands for Tools: answers in turn, and keeps the calls."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []

    def extended(self, **_variables):
        return self

    def status(self, argv, *, timeout):
        self.calls.append(argv)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def capture(self, argv, *, timeout):
        status, text = self.status(argv, timeout=timeout)
        if status:
            raise CommandFailed(argv, status, text)
        return text


TIME_OUT = CommandFailed(["squeue"], None, "")
MISSING = ProgramMissing("program not found: squeue")


def facts(*answers, ids=(7,)):
    return query.job_facts(Slurm(*answers), ids, timeout=5)


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (
            (1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"),
            JobState.UNKNOWN,
        ),
        ((1, "slurm_load_jobs error: Socket timed out on send/recv operation"), JobState.UNKNOWN),
        ((1, "slurm_load_jobs error: Invalid job id specified"), JobState.GONE),
        ((0, ""), JobState.UNKNOWN),
        ((0, "7|COMPLETED|1000\n"), JobState.GONE),
        ((0, "7|RUNNING|1000\n"), JobState.ALIVE),
        ((0, "7|COMPLETING|1000\n"), JobState.ALIVE),
        ((0, "7|REQUEUED|N/A\n"), JobState.ALIVE),
        ((0, "7|A_STATE_OF_LATER|1000\n"), JobState.ALIVE),
        ((0, "8|COMPLETED|1000\n"), JobState.UNKNOWN),
        ((0, "slurm_load_jobs error: Invalid job id specified\n"), JobState.UNKNOWN),
        ((0, "7|completed|1000\n"), JobState.UNKNOWN),
        ((0, "7\n"), JobState.UNKNOWN),
        ((139, ""), JobState.UNKNOWN),
        (TIME_OUT, JobState.UNKNOWN),
        (MISSING, JobState.UNKNOWN),
    ],
)
def test_kb_35_only_slurms_own_word_means_gone(answer, state):
    assert facts(answer, answer)[7].state is state


def test_every_ended_state_of_slurm_is_gone():
    for state in query.ENDED:
        assert facts((0, f"7|{state}|1000\n"))[7] == JobFacts(JobState.GONE, 1000)


def test_one_batched_query_and_absent_ids_one_by_one():
    slurm = Slurm((0, "7|RUNNING|1000\n9|COMPLETED|900\n"), (1, "Invalid job id specified"))
    found = query.job_facts(slurm, [9, 7, 8, 7], timeout=5)
    assert [c[3] for c in slurm.calls] == ["7,8,9", "8"]
    states = {number: fact.state for number, fact in found.items()}
    assert states == {7: JobState.ALIVE, 8: JobState.GONE, 9: JobState.GONE}


def test_invalid_id_among_several_says_nothing_about_each():
    slurm = Slurm((1, "Invalid job id specified"), (0, "7|RUNNING|1\n"), (1, "Invalid job id specified"))
    found = query.job_facts(slurm, [7, 8], timeout=5)
    assert (found[7].state, found[8].state) == (JobState.ALIVE, JobState.GONE)


def test_no_ids_no_call():
    slurm = Slurm()
    assert query.job_facts(slurm, [], timeout=5) == {}
    assert slurm.calls == []


def test_start_in_the_future_is_no_start():
    assert facts((0, f"7|PENDING|{int(time.time()) + 3600}\n"))[7] == JobFacts(JobState.ALIVE, 0)


def asks(*answers, node="n1"):
    return query.asks_for_cluster(Slurm(*answers), job_id=7, node=node, feature="k8s", timeout=3)


@pytest.mark.parametrize(
    ("answers", "answer"),
    [
        ([(0, "7|n1|k8s\n")], Answer.YES),
        ([(0, "7|n1|(null)\n")], Answer.NO),
        ([(0, "7|n1|\n")], Answer.NO),
        ([(0, "")], Answer.UNKNOWN),
        ([(1, "")], Answer.UNKNOWN),
        ([TIME_OUT], Answer.UNKNOWN),
        ([MISSING], Answer.UNKNOWN),
        ([(0, "slurm_load_jobs error: x\n")], Answer.UNKNOWN),
        ([(0, "7|n9|k8s\n8|n1|(null)\n")], Answer.NO),
        ([(0, "7|n9|(null)\n8|n[0-3]|k8s\n")], Answer.YES),
        ([(0, "7|n9|k8s\n8|n8|(null)\n")], Answer.YES),
        ([(0, "7|n1|k8s|gpu\n"), (0, "gpu\n")], Answer.NO),
        ([(0, "7|n1|k8s|gpu\n"), (0, "gpu,k8s\n")], Answer.YES),
        ([(0, "7|n1|k8s|gpu\n"), (1, "")], Answer.UNKNOWN),
    ],
)
def test_kb_10_three_answers(answers, answer):
    assert asks(*answers) is answer


def test_kb_10_no_field_that_a_user_can_write_is_asked_for():
    slurm = Slurm((0, "7|n1|k8s\n"))
    query.asks_for_cluster(slurm, job_id=7, node="n1", feature="k8s", timeout=3)
    (call,) = slurm.calls
    assert call == ["squeue", "-h", "-j", "7", "-t", "all", "-o", "%A|%N|%f"]
