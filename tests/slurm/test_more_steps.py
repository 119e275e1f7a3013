"""Rarer jobs and steps: many tasks, interactive, heterogeneous, suspended, jobs from inside a job."""

import pytest
from testbed.jobs import Job, wait_for

from slurm.acting import SHOW, TELL, WAIT, let_go, shown

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

INNER = "echo inner=$K8S_CLUSTER_NAME=$K8S_PORT; test -s $KUBECONFIG && echo good"
# As a command typed into a shell that knows nothing of the job around it.
OUTSIDE = "env $(compgen -e | grep ^SLURM_ | grep -v ^SLURM_CONF | sed 's/^/-u /')"


def test_srun_of_64_tasks_makes_one_cluster(site):
    """All tasks are told the same, and one of them made it."""
    before = site.tools.called("kind", "create")
    result = site.jobs.command(
        "srun", "-n64", "-N1", "--overcommit", "--constraint=k8s", "bash", "-c", SHOW, timeout=280
    )
    assert result.status == 0, result
    assert len(shown(result.out)) == 64, result
    assert len(set(shown(result.out))) == 1, result
    assert site.tools.called("kind", "create") == before + 1


def test_step_from_outside_that_overlaps(site):
    job = site.jobs.submit(f"{SHOW}\n{WAIT}").wait_output("there")
    result = site.jobs.command("srun", f"--jobid={job.id}", "--overlap", "-n1", "bash", "-c", SHOW)
    let_go(job)
    job.wait_end()
    assert shown(result.out) == shown(job.output), (result, job.output)


def test_salloc_with_an_interactive_step(site):
    """The interactive shell owns the cluster, whatever steps come and go."""
    tell = "srun -n1 bash tell.sh < /dev/null"  # else it takes what is typed next
    lines = " ".join(f'"{line}"' for line in (tell, tell, "exit"))
    (site.jobs.work_dir / "tell.sh").write_text(SHOW + "\n")
    salloc = "script --quiet --return --command 'salloc -n1 -Ck8s' /dev/null"
    result = site.jobs.command(
        "bash", "-c", f"printf '%s\\n' {lines} | {salloc}", env={"SHELL": "/bin/bash", "TERM": "dumb"}
    )
    assert result.status == 0, result
    assert len(shown(result.out)) == 2, result
    assert len(set(shown(result.out))) == 1, result


def test_salloc_whose_only_step_is_not_on_the_home_node(site):
    """Nobody makes a cluster on the first node; the step ends with the reason after attach_timeout."""
    site.ksi.configure(attach_timeout=3)
    try:
        step = ("srun", "-N1", "-n1", "-w", "n2", "bash", "-c", SHOW)
        result = site.jobs.command("salloc", "-N2", "-n2", "-Ck8s", *step)
    finally:
        site.ksi.configure(attach_timeout=60)
    assert result.status != 0 and not shown(result.out), result
    assert "no cluster of this job on its first node n1" in result.out, result


def of_two_components(site, first, second):
    """What script, step of the first and step of the second component of a heterogeneous job see."""
    options = [word for word in (first, "-n1", "-wn1", ":", second, "-n1", "-wn2") if word]
    tell = "bash -c 'echo $SLURMD_NODENAME ${K8S_CLUSTER_NAME:-none}'"
    script = f"{tell}\nunset K8S_CLUSTER_NAME\nsrun --label --het-group=0,1 -n1 {tell} | sort"
    job = site.jobs.submit(script, *options, constraint=None)
    job.wait_end(240)
    Job(site.jobs, job.id + 1).wait_end()
    lines = [line.split() for line in job.output.splitlines() if line.split()[-2:-1] in (["n1"], ["n2"])]
    assert [line[-2] for line in lines] == ["n1", "n1", "n2"], job.output
    return [line[-1] for line in lines]


def test_heterogeneous_job_whose_first_component_wants_a_cluster(site):
    script, first, second = of_two_components(site, "-Ck8s", "")
    assert script == first != second == "none"


def test_heterogeneous_job_whose_second_component_wants_a_cluster(site):
    script, first, second = of_two_components(site, "", "-Ck8s")
    assert script == first == "none" != second


def test_heterogeneous_job_whose_components_both_want_a_cluster(site):
    """Each has its own, on its own first node, also in a step that spans both."""
    script, first, second = of_two_components(site, "-Ck8s", "-Ck8s")
    assert script == first != second
    assert "none" not in (first, second)


def test_suspend_and_resume(site):
    job = site.jobs.submit(f"{SHOW}\n{WAIT}\nsrun -n1 {TELL}").wait_output("there")
    site.jobs.command("scontrol", "suspend", job.name)
    wait_for(lambda: job.state == "SUSPENDED", 60, "suspended", lambda: job.state)
    assert site.gc("--older-than=0")[0] == 0
    assert len(site.records()) == 1, "a suspended job lives"
    site.jobs.command("scontrol", "resume", job.name)
    let_go(job)
    job.wait_end()
    assert len(shown(job.output)) == 2 and len(set(shown(job.output))) == 1, job.output


def test_cancel_while_suspended(site):
    job = site.jobs.submit(WAIT).wait_output("there")
    site.jobs.command("scontrol", "suspend", job.name)
    wait_for(lambda: job.state == "SUSPENDED", 60, "suspended", lambda: job.state)
    job.cancel().wait_end()
    assert job.state == "CANCELLED"


def test_chain_of_jobs_on_one_node(site):
    jobs = []
    for _ in range(3):
        after = [f"--dependency=afterany:{jobs[-1].id}"] if jobs else []
        jobs.append(site.jobs.submit(f"{SHOW}; test -s $KUBECONFIG", "-w", "n1", *after))
    assert [job.wait_end().state for job in jobs] == ["COMPLETED"] * 3, [job.output for job in jobs]
    assert len({shown(job.output)[0].split()[0] for job in jobs}) == 3


@pytest.mark.parametrize(
    "command", ["salloc -n1 -Ck8s srun -n1", "srun -n1 -N1 -Ck8s"], ids=["salloc", "srun"]
)
def test_job_inside_a_job(site, command):
    """The inner job inherits the outer one's variables; it has its own cluster all the same."""
    outside = OUTSIDE if command.startswith("srun") else ""
    script = f"echo outer=$K8S_CLUSTER_NAME=$K8S_PORT\n{outside} {command} bash -c '{INNER}'"
    job = site.jobs.submit(f"{script}\ntest -s $KUBECONFIG && echo last", "-n1").wait_end()
    told = [line.split("=")[1:] for line in job.output.splitlines() if line.startswith(("outer=", "inner="))]
    assert "good" in job.output and job.output.splitlines()[-1] == "last", job.output
    assert len(told) == 2 and all(map(all, told)), job.output
    assert told[0][0] != told[1][0] and told[0][1] != told[1][1], job.output
