"""The table of outcomes itself."""

from slurm.outcomes import REMEDY, Outcomes, cases, seen_by_tasks


def test_every_row_is_a_test_of_this_layer():
    rows = {case.partition(",")[0] for case, _ in Outcomes().rows}
    assert rows <= cases(), f"to drop them: {REMEDY}"


def test_what_tasks_have_seen_in_words():
    assert seen_by_tasks([]) == "no task ran"
    assert seen_by_tasks(["7 none", "7 none"]) == "no clusters in 1 job"
    assert seen_by_tasks(["7 a", "7 a", "8 none"]) == "1 cluster in 2 jobs (some tasks none)"
