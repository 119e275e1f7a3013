"""Every way to end with a real cluster, and everything that it consists of counted afterwards."""

import json
import os
import signal

import pytest
from testbed.jobs import free_node_port, listening, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(240)]

NEVER = "echo never"


def creating(site, job, stage):
    """Wait until the job's creation has come so far."""

    def reached():
        things = site.things_of(job)
        if stage == "kind":
            return any(t.kind == "process" and " kind of " in t.name for t in things)
        return any(t.kind == stage for t in things)

    wait_for(reached, 60, f"creation has come to {stage}", lambda: job.output, pause=0.02)


def creator(site):
    return json.loads(site.records()[0].read_text())["creator"]["pid"]


# From the first moment of kind to a node that boots: each needs another part of the clean-up.
@pytest.mark.parametrize("stage", ["kind", "volume", "container", "port"])
def test_cancel_during_creation(site, stage):
    job = site.jobs.submit(NEVER)
    creating(site, job, stage)
    job.cancel().wait_end()
    assert job.state == "CANCELLED" and "never" not in job.output


def test_cancel_and_time_limit_during_the_run(site):
    """Two jobs at once; Slurm looks for jobs over their time every 30 s."""
    script = "kubectl create deployment web --image=$KSI_EXAMPLE_IMAGE -- sleep 600 && echo there; sleep 300"
    cancelled, limited = (site.jobs.submit(script, "-n1") for _ in range(2))
    for job in (cancelled, limited):
        job.wait_output("there", 150)
    site.jobs.command("scontrol", "update", f"JobId={limited.id}", "EndTime=now")
    cancelled.cancel().wait_end()
    assert cancelled.state == "CANCELLED"
    assert limited.wait_end(90).state == "TIMEOUT"


def test_node_image_that_is_not_there(site):
    wanted = site.ksi.settings["node_image"]
    site.ksi.configure(node_image="docker.io/kindest/node:v0.0.1")
    try:
        job = site.jobs.submit(NEVER).wait_end()
    finally:
        site.ksi.configure(node_image=wanted)
    assert job.state == "FAILED" and "never" not in job.output
    assert "ksi: error: node image is not on this node: docker.io/kindest/node:v0.0.1" in job.output, (
        job.output
    )
    assert "ksi: hint: " in job.output


def test_port_that_is_taken_while_kind_works(site):
    """The port was free when it was chosen: kind is tried again with another, and the job never notices."""
    job = site.jobs.submit("echo port=$K8S_PORT; kubectl get nodes -o name && echo good")
    wait_for(site.records, 60, "the claim", pause=0.01)
    port = json.loads(site.records()[0].read_text())["port"]
    with listening(port):
        job.wait_end(200)
    assert job.output.splitlines()[-1] == "good", job.output
    assert f"port={port}" not in job.output


def test_preset_port_that_is_taken(site):
    port = free_node_port()
    with listening(port):
        job = site.jobs.submit(NEVER, env={"K8S_PORT": str(port)}).wait_end()
    assert job.state == "FAILED"
    assert f"ksi: error: K8S_PORT is in use on this node: {port}" in job.output, job.output


def test_hook_killed_during_creation_is_cleaned_by_the_epilog(site):
    job = site.jobs.submit(NEVER)
    creating(site, job, "container")
    os.kill(creator(site), signal.SIGKILL)
    job.wait_end()
    assert job.state == "FAILED" and "never" not in job.output


def test_hook_and_slurmstepd_killed_during_creation_are_cleaned_by_gc(site):
    job = site.jobs.submit(NEVER)
    creating(site, job, "container")
    pid = creator(site)
    job.kill_stepds()
    os.kill(pid, signal.SIGKILL)
    job.cancel().wait_end()
    status, said = site.gc("--older-than=0")
    assert status == 0 and f"deleted ksi-{job.id}-" in said, said


def test_gc_deletes_a_cluster_that_no_record_knows(site):
    job = site.jobs.submit("echo there; sleep 300").wait_output("there", 120)
    job.kill_stepds()
    job.kill_script()
    job.cancel().wait_end()
    for record in site.records():
        record.unlink()
    status, said = site.gc("--older-than=0", "--dry-run")
    assert status == 0 and f"would delete ksi-{job.id}-" in said and "no record" in said, said
    assert len(site.containers()) == 1
    status, said = site.gc("--older-than=0")
    assert status == 0 and f"deleted ksi-{job.id}-" in said, said
