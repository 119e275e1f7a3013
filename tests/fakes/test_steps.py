"""Tasks and steps of one job: one cluster, whoever comes first, and until nobody needs it."""

import os

import pytest

from fakes.waiting import wait_until


def clusters(site):
    return [c["Names"][0] for c in site.state("container")]


def test_kb_08a_four_tasks_at_once_make_one_cluster(site):
    site.mark(300)
    site.script("kind create", delay=0.5)
    with site.step(300, "0", tasks=4) as step:
        prologs = step.prologs()
        assert [p.status for p in prologs] == [0] * 4, prologs
        assert all(p.exports == prologs[0].exports for p in prologs)
        assert sorted(len(p.prints) for p in prologs)[:3] == [0, 0, 0]
        assert sum(bool(p.prints) for p in prologs) == 1
        assert len(site.calls("kind create")) == 1
        (site.node_state_dir / "jobs" / "300").unlink()  # as without the root pair
        for number in range(3):
            step.end_task(number)
            assert len(clusters(site)) == 1
        step.end_task(3)
    assert site.leftovers() == []


@pytest.mark.parametrize("spelling", [None, "4294967291"])
def test_kb_08b_batch_job_keeps_its_cluster_whatever_steps_come_and_go(site, spelling):
    site.mark(301)
    environment = {"SLURM_STEP_ID": spelling} if spelling else {}
    with site.step(301, env=environment) as batch:
        exports = batch.prolog().exports
        with site.step(301, "0", tasks=2, env=exports) as srun:
            prologs = srun.prologs()
            assert [(p.status, p.exports, p.prints) for p in prologs] == [(0, exports, [])] * 2
            srun.end()
        assert len(clusters(site)) == 1
        batch.end()
    assert site.leftovers() == []


def test_kb_08_stale_step_id_of_the_submitter_is_not_trusted(site):
    """A batch script submitted inside a step inherits its SLURM_STEP_ID; slurmstepd's title is the truth."""
    site.mark(301)
    with site.step(301, env={"SLURM_STEP_ID": "3"}) as batch:
        exports = batch.prolog().exports
        with site.step(301, "3", env={**exports, "SLURM_STEP_ID": "-5"}) as srun:
            assert srun.prolog().exports == exports
            srun.end()
        assert len(clusters(site)) == 1
        batch.end()
    assert site.leftovers() == []


def test_interactive_step_owns_the_cluster(site):
    site.mark(301)
    with site.step(301, "interactive", env={"SLURM_STEP_ID": "4294967290"}) as shell:
        exports = shell.prolog().exports
        with site.step(301, "0", env=exports) as srun:
            srun.prolog()
            srun.end()
        assert len(clusters(site)) == 1
        shell.end()
    assert site.leftovers() == []


def test_plain_steps_without_root_pair_last_holder_deletes(site):
    site.slurm_says({"A": 301, "N": "n1", "f": "k8s"})
    with site.step(301, "0") as first, site.step(301, "1") as second:
        assert first.prolog().exports == second.prolog().exports
        first.end()
        assert len(clusters(site)) == 1
        second.end()
    assert site.leftovers() == []


def test_plain_steps_with_root_pair_keep_the_cluster_to_the_jobs_end(site):
    site.mark(301)
    with site.step(301, "0") as first:
        exports = first.prolog().exports
        first.end()
    assert len(clusters(site)) == 1
    with site.step(301, "1") as second:
        assert second.prolog().exports == exports
        second.end()
    assert len(clusters(site)) == 1


def test_dead_holder_does_not_count(site):
    site.slurm_says({"A": 301, "N": "n1", "f": "k8s"})
    with site.step(301, "0") as dead, site.step(301, "1") as living:
        dead.prolog()
        living.prolog()
        dead.kill()
        living.end()
    assert site.leftovers() == []


def test_task_that_has_not_started_yet_holds_the_cluster(site):
    """One task ends before another of its step has run its prolog."""
    site.slurm_says({"A": 301, "N": "n1", "f": "k8s"})
    with site.step(301, "0", tasks=2) as step:
        step.prolog(0)
        step.start(1)
        step.hook_pid(1)
        os.kill(step.hook_pid(1), 19)  # SIGSTOP: the second task waits for a prolog that has done nothing yet
        step.end_task(0)
        assert len(clusters(site)) == 1
        os.kill(step.hook_pid(1), 18)
        second = step.finish(1)
        assert second.status == 0, second
        step.end_task(1)
    assert site.leftovers() == []


def test_kb_08c_step_is_not_handed_a_dead_cluster(site):
    site.mark(301)
    with site.step(301) as batch:
        exports = batch.prolog().exports
        os.kill(site.state("container")[0]["helper"], 9)
        with site.step(301, "0", env=exports) as srun:
            prolog = srun.prolog()
    assert (prolog.status, prolog.exports) == (1, {})
    assert exports["K8S_CLUSTER_NAME"].removeprefix("kind-") in prolog.said
    assert exports["K8S_CLUSTER_API"] in prolog.said


def test_kb_05_epilog_needs_only_the_job_id(site):
    site.mark(201)
    site.mark(202)
    with site.step(201) as first, site.step(202) as second:
        first.prolog()
        other = second.prolog().exports
        first.environment = {"SLURM_JOB_ID": "201", "SLURMD_NODENAME": "n1", **other}  # the user can set them
        first.end()
        assert [r.job_id for r in site.records()] == [202]
        assert len(clusters(site)) == 1
        second.environment = {"SLURM_JOBID": "202", "SLURMD_NODENAME": "n1"}
        second.end()
    assert site.leftovers() == []


def test_kb_05c_epilog_without_any_job_id(site):
    site.mark(201)
    with site.step(201) as step:
        step.prolog()
        step.environment = {"SLURMD_NODENAME": "n1"}
        assert step.end_task().status == 0
    assert [r.job_id for r in site.records()] == [201]


def test_kb_05d_epilog_on_another_node_deletes_nothing(site):
    site.mark(201)
    with site.step(201) as step, site.step(201, node="n2") as elsewhere:
        step.prolog()
        elsewhere.start(0)
        elsewhere.finish()
        assert len(site.records("n2")) == 1
        elsewhere.end()
        assert [r.job_id for r in site.records()] == [201]
        assert site.records("n2") == []


def test_kb_13a_requeued_job_replaces_the_earlier_runs_cluster(site):
    site.mark(400)
    with site.step(400, start_time=1_700_000_000) as step:
        first = step.prolog().exports["K8S_CLUSTER_NAME"]
        step.kill()
    with site.step(400, env={"SLURM_RESTART_COUNT": "1"}, start_time=1_700_000_500) as step:
        second = step.prolog()
        assert second.status == 0, second
        assert second.exports["K8S_CLUSTER_NAME"] != first
        assert clusters(site) == [second.exports["K8S_CLUSTER_NAME"].removeprefix("kind-") + "-control-plane"]
        assert [r.restart for r in site.records()] == [1]
        step.end()
    assert site.leftovers() == []


def test_kb_13c_components_on_two_nodes_have_a_cluster_each(site):
    site.mark(500)
    with site.step(500, node="n1") as one, site.step(500, node="n2") as two:
        one.start(0)
        two.start(0)
        prologs = [one.finish(), two.finish()]
    assert [p.status for p in prologs] == [0, 0], prologs
    assert len({p.exports["K8S_CLUSTER_NAME"] for p in prologs}) == 2


@pytest.mark.parametrize("job_id", ["123+1", "123_4"])
def test_kb_13d_odd_job_ids(site, job_id):
    (site.node_state_dir / "jobs").mkdir(parents=True)
    (site.node_state_dir / "jobs" / job_id).touch()
    with site.step(123, env={"SLURM_JOB_ID": job_id}) as step:
        prolog = step.prolog()
        assert "internal error" not in prolog.said
        assert step.end_task().status == 0


def test_failure_is_told_to_every_task_and_tried_once(site):
    site.slurm_says({"A": 301, "N": "n1", "f": "k8s"})
    site.script("kind create", status=1, stderr="xyzzy\n", delay=0.3)
    with site.step(301, "0", tasks=4) as step:
        prologs = step.prologs()
        assert [(p.status, p.exports) for p in prologs] == [(1, {})] * 4
        assert all("xyzzy" in p.said for p in prologs)
        step.end()
    assert len(site.calls("kind create")) == 1
    assert site.leftovers() == []


def test_failed_creation_is_deleted_in_peace_while_another_step_comes(site):
    """The second step finds a claim that is being given up; it waits for its end, and then makes its own."""
    site.slurm_says({"A": 301, "N": "n1", "f": "k8s"})
    site.script("kind create", status=1, stderr="xyzzy\n", at="container", times=1)
    site.script("podman rm", delay=1, times=1)
    with site.step(301, "0") as first, site.step(301, "1") as second:
        first.start(0)
        wait_until(lambda: site.calls("podman rm"))
        other = second.prolog()
        failed = first.finish()
        assert (failed.status, other.status) == (1, 0), (failed, other)
        assert "xyzzy" in failed.said
        first.end()
        second.end()
    assert site.leftovers() == []
