"""Jobs with real clusters: two at once, one inside another, without a batch script; their status is kept."""

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

# The cluster answers with the job's own kubeconfig, and with the exported values alone.
USE = """kubectl get nodes --no-headers
token="Authorization: Bearer $K8S_CLUSTER_API_TOKEN"
curl -sS --cacert "$K8S_CLUSTER_CA" -H "$token" "$K8S_CLUSTER_API/readyz"
echo " port=$K8S_PORT context=$K8S_CLUSTER_NAME"
[ "$(kubectl config current-context)" = "$K8S_CLUSTER_NAME" ] && echo good
"""


def values(output, name):
    return [word.split("=")[1] for word in output.split() if word.startswith(f"{name}=")]


def test_two_jobs_at_once_have_two_clusters(site):
    jobs = [
        site.jobs.submit(f"{USE}\nsleep 12\nkubectl get nodes -o name && echo last", "-n1") for _ in range(2)
    ]
    for job in jobs:
        job.wait_output("good", 150)
    assert len(site.containers()) == 2
    ports = [values(job.output, "port") for job in jobs]
    contexts = [values(job.output, "context") for job in jobs]
    assert ports[0] != ports[1] and contexts[0] != contexts[1]
    for job in jobs:
        job.wait_end()
        assert job.state == "COMPLETED" and job.output.splitlines()[-1] == "last", job.output


def test_job_submitted_from_inside_a_k8s_job_has_its_own_cluster(site):
    """Its status reaches the outer script, and the outer cluster outlives it."""
    (site.jobs.work_dir / "inner.sh").write_text(f"#!/bin/bash\n{USE}exit 3\n")
    submit = "sbatch --wait --constraint=k8s -n1 --output=inner.out inner.sh; status=$?"
    job = site.jobs.submit(f"{USE}{submit}\ncat inner.out; kubectl get nodes -o name && exit $status", "-n1")
    job.wait_end(200)
    assert job.exit_status == 3, job.output
    assert job.output.count("good") == 2, job.output
    assert len(set(values(job.output, "context"))) == 2, job.output
    assert len(set(values(job.output, "port"))) == 2, job.output


def test_salloc_with_srun_inside(site):
    result = site.jobs.command("salloc", "-n1", "--constraint=k8s", "srun", "bash", "-ec", USE, timeout=200)
    assert result.status == 0, result
    assert "good" in result.out and "ok port=" in result.out, result


def test_srun_of_two_tasks_ends_with_the_worse_status(site):
    script = USE + "exit $((3 * SLURM_PROCID))"
    result = site.jobs.command("srun", "-n2", "--constraint=k8s", "bash", "-ec", script, timeout=200)
    assert result.status == 3, result
    assert result.out.count("good") == 2 and result.out.count("is ready after") == 1, result
    assert len(set(values(result.out, "context"))) == 1, result
