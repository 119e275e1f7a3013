"""Steps of every kind: a job has one cluster, all its tasks see it, and it ends with the job."""

import pytest

from slurm.acting import SHOW, TELL, shown

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


def test_batch_script_and_its_steps_see_one_cluster(site):
    job = site.jobs.submit(
        f"{SHOW}\nsrun -n1 {TELL}\nsrun -n2 {TELL}\n{SHOW}\ntest -s $KUBECONFIG\n", "-n2", "-N1"
    ).wait_end()
    lines = shown(job.output)
    assert len(lines) == 5, job.output
    assert len(set(lines)) == 1, job.output
    assert f"cluster=kind-ksi-{job.id}-" in lines[0]
    assert job.state == "COMPLETED"
    assert job.output.count("is ready after") == 1


def test_parallel_steps_see_one_cluster(site):
    steps = "".join(f"srun --exact -n2 -c1 --mem=100 {TELL} &\n" for _ in range(3))
    job = site.jobs.submit(f"{steps}wait\n{SHOW}", "-n8").wait_end()
    assert len(shown(job.output)) == 7, job.output
    assert len(set(shown(job.output))) == 1, job.output


def test_script_without_any_step_has_a_cluster_to_its_last_line(site):
    job = site.jobs.submit(
        "sleep 1; test -s $KUBECONFIG && test -s $K8S_CLUSTER_API_TOKEN_FILE && echo last"
    ).wait_end()
    assert job.output.splitlines()[-1] == "last", job.output


def test_srun_of_eight_tasks_makes_one_cluster(site):
    result = site.jobs.command("srun", "-n8", "-N1", "--constraint=k8s", "bash", "-c", SHOW)
    assert result.status == 0, result
    assert len(shown(result.out)) == 8, result
    assert len(set(shown(result.out))) == 1, result
    assert result.out.count("is ready after") == 1, result


def test_srun_without_a_batch_script(site):
    result = site.jobs.command("srun", "-n1", "--constraint=k8s", "bash", "-c", f"{SHOW}; exit 5")
    assert result.status == 5, result
    assert len(shown(result.out)) == 1, result


def test_only_the_creating_task_prints(site):
    """`x=$(srun hostname)` in a script stays what it was."""
    job = site.jobs.submit(
        'x=$(srun -n1 hostname)\n[ "$x" = "$(hostname)" ] && echo same || echo "differs: $x"'
    ).wait_end()
    assert job.output.splitlines()[-1] == "same", job.output


def test_salloc_with_a_command(site):
    result = site.jobs.command("salloc", "-n2", "-N1", "--constraint=k8s", "srun", "-n2", "bash", "-c", SHOW)
    assert result.status == 0, result
    assert len(shown(result.out)) == 2, result
    assert len(set(shown(result.out))) == 1, result


def test_salloc_with_several_steps_keeps_one_cluster_with_the_root_pair(paired):
    command = f"srun -n1 {TELL}; srun -n1 {TELL}"
    result = paired.jobs.command("salloc", "-n1", "--constraint=k8s", "bash", "-c", command)
    assert len(shown(result.out)) == 2, result
    assert len(set(shown(result.out))) == 1, result


def test_salloc_with_several_steps_has_a_cluster_for_each_without_the_root_pair(plain):
    command = f"srun -n1 {TELL}; srun -n1 {TELL}"
    result = plain.jobs.command("salloc", "-n1", "--constraint=k8s", "bash", "-c", command)
    assert len(set(shown(result.out))) == 2, result


def test_salloc_whose_steps_overlap_in_time_shares_one_cluster(plain):
    """The step that ends first leaves the cluster to the other."""
    long_step = f"{SHOW}; sleep 4; test -s $KUBECONFIG && echo still"
    command = f"srun --exact -n1 bash -c '{long_step}' & sleep 1; srun --exact -n1 {TELL}; wait"
    result = plain.jobs.command("salloc", "-n2", "-N1", "--constraint=k8s", "bash", "-c", command)
    assert len(shown(result.out)) == 2, result
    assert len(set(shown(result.out))) == 1, result
    assert "still" in result.out, result


def test_environment_that_is_not_exported(site):
    script = f". {site.tools.witness}\n{SHOW}\nsrun -n1 {TELL}"
    job = site.jobs.submit(script, "--export=NONE").wait_end()
    assert len(shown(job.output)) == 2, job.output
    assert f"kind-ksi-{job.id}-" in job.output


@pytest.mark.parametrize("status", [0, 3, 77])
def test_exit_status_of_the_script_is_kept(site, status):
    job = site.jobs.submit(f"exit {status}").wait_end()
    assert job.exit_status == status
    assert job.state == ("FAILED" if status else "COMPLETED")


def test_step_on_the_other_node_gets_the_same_values(site):
    job = site.jobs.submit(
        f"srun -N2 -n2 {TELL}\nsrun -N2 -n2 bash -c 'test -s $KUBECONFIG && echo readable'", "-N2"
    )
    job.wait_end()
    assert len(shown(job.output)) == 2, job.output
    names = {line.split()[0] for line in shown(job.output)}
    assert len(names) == 1 and f"kind-ksi-{job.id}-" in names.pop(), job.output
    assert job.output.count("readable") == 2, job.output


def test_step_without_the_home_node_attaches(site):
    job = site.jobs.submit(f"{SHOW}\nsrun -N1 -n1 -w n2 {TELL}", "-N2").wait_end()
    assert len({line.split()[0] for line in shown(job.output)}) == 1, job.output
    assert len(shown(job.output)) == 2, job.output
