"""Who still needs a job's cluster when a task has ended."""

import pytest

from ksi_hooks.lifecycle.holding import is_needed
from ksi_hooks.lifecycle.userdir import Holder
from ksi_hooks.proc import Process

BATCH, STEP, OTHER = Process(100, 1), Process(200, 2), Process(300, 3)


def holder(stepd, own=False):
    return Holder(stepd, Process(stepd.pid + 1, 1), own)


@pytest.mark.parametrize(
    ("holders", "leaving", "owns", "siblings", "until_end", "needed"),
    [
        ([holder(BATCH, True)], BATCH, True, False, False, False),
        ([holder(BATCH, True)], BATCH, True, False, True, False),
        ([holder(BATCH, True), holder(STEP)], BATCH, True, False, False, False),
        ([holder(BATCH, True), holder(STEP)], STEP, False, False, False, True),
        ([holder(STEP)], STEP, False, False, False, False),
        ([holder(STEP)], STEP, False, False, True, True),
        ([holder(STEP)], STEP, False, True, False, True),
        ([holder(BATCH, True)], BATCH, True, True, False, True),
        ([holder(STEP), holder(OTHER)], STEP, False, False, False, True),
        ([], STEP, False, False, False, False),
        ([], BATCH, True, False, False, False),
    ],
)
def test_kb_08_who_needs_it(holders, leaving, owns, siblings, until_end, needed):
    answer = is_needed(holders, leaving=leaving, owns_job=owns, siblings=siblings, until_job_end=until_end)
    assert answer is needed


def test_same_number_but_another_process_is_another_holder():
    again = Process(STEP.pid, STEP.start + 1)
    assert is_needed([holder(again)], leaving=STEP, owns_job=False, siblings=False, until_job_end=False)
