"""The job as slurmd's variables describe it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksi_hooks.errors import KsiError
from ksi_hooks.slurm import job as jobs


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n1", ["n1"]),
        ("n1,n2", ["n1", "n2"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[01-03,07]", ["n01", "n02", "n03", "n07"]),
        ("n[9-11]", ["n9", "n10", "n11"]),
        ("rack[1-2]n[07,09],login", ["rack1n07", "rack1n09", "rack2n07", "rack2n09", "login"]),
        ("n[1-2]-ib", ["n1-ib", "n2-ib"]),
        ("", []),
        ("n[x-y]", ["nx-y"]),
    ],
)
def test_host_lists(text, names):
    assert list(jobs.hosts(text)) == names


def test_host_list_that_asks_for_too_much_is_cut():
    assert len(list(jobs.hosts("n[1-999999999]"))) <= jobs.MAX_HOSTS + 1


@given(st.text("n[]-,0123a", max_size=30))
def test_any_host_list_has_an_answer(text):
    first = next(jobs.hosts(text), None)
    assert first is None or isinstance(first, str)


@pytest.mark.parametrize(
    ("environ", "number"),
    [
        ({"SLURM_JOB_ID": "123"}, 123),
        ({"SLURM_JOBID": "123"}, 123),
        ({"SLURM_JOB_ID": "123+1"}, 123),
        ({"SLURM_JOB_ID": "123_4"}, 123),
        ({"SLURM_JOB_ID": "", "SLURM_JOBID": "9"}, 9),
        ({"SLURM_JOB_ID": "x1"}, None),
        ({}, None),
    ],
)
def test_kb_13d_job_ids(environ, number):
    assert jobs.job_id(environ) == number


def test_job_from_a_full_environment():
    job = jobs.from_environ(
        {
            "SLURM_JOB_ID": "7",
            "SLURMD_NODENAME": "n3",
            "SLURM_JOB_NODELIST": "n[2-5]",
            "SLURM_JOB_NUM_NODES": "4",
            "SLURM_RESTART_COUNT": "2",
            "SLURM_JOB_START_TIME": "1000",
            "SLURM_JOB_END_TIME": "2000",
            "SLURM_JOB_PARTITION": "main",
        }
    )
    assert (job.id, job.node, job.home_node, job.nodes, job.is_home) == (7, "n3", "n2", 4, False)
    assert (job.restart, job.start, job.end, job.partition) == (2, 1000, 2000, "main")


def test_kb_05_job_from_nothing_but_its_id():
    job = jobs.from_environ({"SLURM_JOBID": "7"})
    assert job.is_home
    assert (job.nodes, job.restart, job.start, job.end) == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("node", "home", "nodes"), [("n1", "n1", 1), ("n2", "n2", 2), ("n3", "n2", 2), ("n9", "n1", 3)]
)
def test_component_of_a_heterogeneous_job_has_a_home_node_of_its_own(node, home, nodes):
    """A step over several components shows the nodes of all of them."""
    job = jobs.from_environ(
        {
            "SLURM_JOB_ID": "7",
            "SLURMD_NODENAME": node,
            "SLURM_JOB_NODELIST": "n[1-3]",
            "SLURM_JOB_NUM_NODES": "3",
            "SLURM_JOB_ID_HET_GROUP_0": "7",
            "SLURM_JOB_NODELIST_HET_GROUP_0": "n1",
            "SLURM_JOB_NODELIST_HET_GROUP_1": "n[2-3]",
        }
    )
    assert (job.home_node, job.nodes) == (home, nodes)


def test_components_of_another_job_count_for_nothing():
    """A job submitted from inside a heterogeneous job inherits its variables."""
    environ = {"SLURM_JOB_ID": "9", "SLURMD_NODENAME": "n2", "SLURM_JOB_NODELIST": "n[1-2]"}
    stale = {"SLURM_JOB_ID_HET_GROUP_0": "7", "SLURM_JOB_NODELIST_HET_GROUP_0": "n[2-3]"}
    assert jobs.from_environ(environ | stale).home_node == "n1"


def test_no_job():
    with pytest.raises(KsiError, match="SLURM_JOB_ID is not set"):
        jobs.from_environ({})


@pytest.mark.parametrize(
    ("step_id", "owns"),
    [
        (None, True),
        ("batch", True),
        ("-5", True),
        ("4294967291", True),
        ("interactive", True),
        ("-6", True),
        ("4294967290", True),
        ("0", False),
        ("12", False),
        ("extern", False),
    ],
)
def test_kb_08_steps_without_a_readable_slurmstepd(step_id, owns):
    environ = {} if step_id is None else {"SLURM_STEP_ID": step_id}
    assert jobs.step_of_epilog(2**22 + 1, environ).owns_job is owns
