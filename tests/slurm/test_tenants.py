"""Several jobs and several users at once: each has its own cluster, and none sees another's."""

import pwd
from pathlib import Path

import pytest
from testbed.jobs import free_node_port, listening

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

# Users that every Debian has; none is root, none can reach another's files.
FIRST, SECOND = "games", "www-data"
SHOW = 'echo "cluster=$K8S_CLUSTER_NAME port=$K8S_PORT config=$KUBECONFIG uid=$(id -u)"'


def values(output):
    line = next(line for line in output.splitlines() if line.startswith("cluster="))
    return dict(word.split("=", 1) for word in line.split())


def submit(site, user, lines, *options):
    return site.jobs.submit(lines, *options, user=user, env=site.tools.session_of(user))


def script(site, lines):
    path = site.jobs.work_dir / "inner.sh"
    path.write_text(f"#!/bin/bash\n{lines}\n")
    return path.name


def test_two_users_at_once_have_two_clusters(site):
    lines = f"{SHOW}\nsleep 3; test -s $KUBECONFIG && echo last"
    jobs = {user: submit(site, user, lines, "-n1") for user in (FIRST, SECOND)}
    for job in jobs.values():
        job.wait_output("cluster=")
    seen = {user: values(job.output) for user, job in jobs.items()}
    assert seen[FIRST]["cluster"] != seen[SECOND]["cluster"]
    assert seen[FIRST]["port"] != seen[SECOND]["port"]
    for user, value in seen.items():
        uid = pwd.getpwnam(user).pw_uid
        assert value["uid"] == str(uid)
        status = Path(value["config"]).stat()
        assert (status.st_uid, status.st_mode & 0o777) == (uid, 0o600)
    for job in jobs.values():
        assert job.wait_end().output.splitlines()[-1] == "last", job.output


def test_secrets_of_one_user_are_hidden_from_another(site):
    job = submit(site, FIRST, f"{SHOW}\necho token=$K8S_CLUSTER_API_TOKEN\nsleep 20").wait_output("token=")
    secret = job.output.partition("token=")[2].split()[0]
    run_dir = Path(values(job.output)["config"]).parent
    for name in ("", "kubeconfig", "token", "ca.crt", "../logs"):
        result = site.jobs.command("ls", "-l", run_dir / name, user=SECOND)
        assert result.status != 0 and "Permission denied" in result.err, result
    files = site.jobs.command("grep", "-rsl", secret, site.ksi.run_root, site.ksi.registry, user=SECOND)
    assert files.out == ""
    shown = site.jobs.command("sh", "-c", "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ", user=SECOND)
    assert "SLURM_CONF" in shown.out and secret not in shown.out
    job.cancel().wait_end()


def test_two_jobs_of_one_user_at_once(site):
    jobs = [site.jobs.submit(f"{SHOW}\nsleep 2; test -s $KUBECONFIG && echo last", "-n1") for _ in range(2)]
    seen = [values(job.wait_output("cluster=").output) for job in jobs]
    assert len({value["cluster"] for value in seen}) == 2
    assert len({value["port"] for value in seen}) == 2
    for job in jobs:
        assert job.wait_end().output.splitlines()[-1] == "last", job.output


def test_array_has_a_cluster_for_each_element(site):
    array = site.jobs.submit(f"{SHOW}\nsleep 1; test -s $KUBECONFIG && echo last", "--array=1-3", "-n1")
    elements = [array.element_of(number) for number in (1, 2, 3)]
    for job in elements:
        job.wait_end()
        assert job.output.splitlines()[-1] == "last", job.output
    assert len({values(job.output)["cluster"] for job in elements}) == 3


def test_job_submitted_from_inside_a_k8s_job_has_its_own_cluster(site):
    inner = "echo inner=$K8S_CLUSTER_NAME=$K8S_PORT; test -s $KUBECONFIG && echo good"
    submit_inner = f"sbatch -Ck8s -n1 --wait -o inner-$SLURM_JOB_ID.out {script(site, inner)}"
    outer = f"echo outer=$K8S_CLUSTER_NAME=$K8S_PORT\n{submit_inner}"
    job = site.jobs.submit(f"{outer}\ncat inner-$SLURM_JOB_ID.out; test -s $KUBECONFIG && echo last", "-n1")
    job.wait_end()
    words = dict(
        line.split("=", 1) for line in job.output.splitlines() if line.startswith(("outer=", "inner="))
    )
    assert "good" in job.output and job.output.splitlines()[-1] == "last", job.output
    clusters, ports = zip(*(words[name].split("=") for name in ("outer", "inner")), strict=True)
    assert len(set(clusters)) == 2 and all(clusters), job.output
    assert len(set(ports)) == 2, job.output


def test_ordinary_job_submitted_from_inside_a_k8s_job_makes_nothing(site):
    inner = script(site, "echo done")
    outer = f"sbatch -n1 --wait -o inner-$SLURM_JOB_ID.out {inner}\ncat inner-$SLURM_JOB_ID.out"
    before = site.tools.called("kind", "create")
    job = site.jobs.submit(f"{outer}; test -s $KUBECONFIG && echo last", "-n1").wait_end()
    assert job.output.splitlines()[-2:] == ["done", "last"], job.output
    assert site.tools.called("kind", "create") == before + 1


def test_preset_port_is_used_and_a_taken_one_refused(site):
    port = free_node_port()
    job = site.jobs.submit(SHOW, env={"K8S_PORT": str(port)}).wait_end()
    assert values(job.output)["port"] == str(port)
    with listening(port):
        job = site.jobs.submit(SHOW, env={"K8S_PORT": str(port)}).wait_end()
    assert job.state == "FAILED"
    assert f"K8S_PORT is in use on this node: {port}" in job.output, job.output
