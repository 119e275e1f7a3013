"""Jobs that start again: on another node, after a boot of their node; and a controller that is down."""

import pytest
from testbed.jobs import wait_for

from slurm.acting import SHOW, WAIT, let_go, reboot, requeue, shown

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

RUN = 'n=${SLURM_RESTART_COUNT:-0}; echo "run $n $SLURMD_NODENAME $K8S_CLUSTER_NAME"; [ $n = 1 ] || sleep 300'
OPTIONS = ("-n1", "--requeue", "--open-mode=append")


def runs(job):
    """Node and cluster of each run."""
    return [line.split()[2:] for line in job.output.splitlines() if line.startswith("run ")]


def test_restart_on_another_node(site):
    job = site.jobs.submit(RUN, *OPTIONS, "-w", "n1").wait_output("run 0 n1 kind")
    requeue(job, 1, node="n2")
    job.wait_output("run 1 n2 kind").wait_end()
    nodes, clusters = zip(*runs(job), strict=True)
    assert nodes == ("n1", "n2") and len(set(clusters)) == 2, job.output


def test_boot_of_the_node_is_cleaned_up_after_by_gc(site):
    job = site.jobs.submit(WAIT, "-w", "n1").wait_output("there")
    reboot(site, job)
    status, said = site.gc("--older-than=0")
    assert status == 0 and f"deleted ksi-{job.id}-" in said and "has booted" in said, said
    job.cancel().wait_end()


def test_boot_of_the_node_before_a_restart_there(site):
    job = site.jobs.submit(RUN, *OPTIONS, "-w", "n1").wait_output("run 0 n1 kind")
    reboot(site, job)
    requeue(job, 1)
    job.wait_output("run 1 n1 kind").wait_end()
    assert len({cluster for _, cluster in runs(job)}) == 2, job.output


def test_controller_down_when_the_job_ends(site):
    """Deleting asks Slurm nothing."""
    job = site.jobs.submit(WAIT).wait_output("there")
    with site.controller_frozen():
        let_go(job)
        wait_for(lambda: site.records() == [], 120, "the cluster is gone")
    assert job.wait_end().state == "COMPLETED"


def test_controller_down_when_the_job_starts(paired):
    """The marker tells whose job it is; without the root pair the job starts without a cluster."""
    job = paired.jobs.submit(SHOW)
    wait_for(job.stepds, 90, "the job is launched", pause=0.001)
    with paired.controller_frozen():
        wait_for(lambda: shown(job.output), 120, "the job has printed", lambda: job.output)
    assert f"cluster=kind-ksi-{job.wait_end().id}-" in job.output
