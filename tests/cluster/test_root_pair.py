"""With Prolog and Epilog of the node: a cluster lasts to the end of its job, whatever its own hooks do."""

import json
import os
import signal

import pytest
from testbed.jobs import wait_for

from cluster.conftest import counted, real_site

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

TELL = "kubectl get nodes -o name && echo context=$K8S_CLUSTER_NAME"


@pytest.fixture(scope="module")
def paired_site():
    with real_site(root_pair=True) as made:
        yield made


@pytest.fixture
def site(paired_site):
    yield from counted(paired_site)


def test_two_steps_of_salloc_share_a_cluster_that_the_node_epilog_deletes(site):
    steps = f"srun bash -c '{TELL}'; srun bash -c '{TELL}'"
    result = site.jobs.command("salloc", "-n1", "--constraint=k8s", "bash", "-c", steps, timeout=200)
    contexts = [line for line in result.out.splitlines() if line.startswith("context=kind-ksi-")]
    assert len(contexts) == 2 and len(set(contexts)) == 1, result


def test_node_epilog_cleans_when_slurmstepd_and_hook_were_killed_during_creation(site):
    job = site.jobs.submit("echo never")
    wait_for(lambda: any(t.kind == "container" for t in site.things_of(job)), 60, "a container", pause=0.02)
    creator = json.loads(site.records()[0].read_text())["creator"]["pid"]
    job.kill_stepds()
    os.kill(creator, signal.SIGKILL)
    job.cancel().wait_end()
    wait_for(lambda: not site.records(), 30, "the node's epilog has cleaned")


def test_ordinary_job_is_left_alone(site):
    job = site.jobs.submit("echo ${K8S_CLUSTER_NAME:-none}", constraint=None).wait_end()
    assert job.output == "none\n"
