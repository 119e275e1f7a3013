"""Killed at any point: hooks at each step of their work, slurmd; scancel while the cluster is deleted."""

import json

import pytest
from testbed.jobs import wait_for

from ksi_hooks.lifecycle.steps import CREATION, DELETION, KILL_VARIABLE
from slurm.acting import WAIT, let_go

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


def submit_each(site, script, steps):
    """A job for each step at which its hook is killed, all at once on the first node."""
    return [site.jobs.submit(script, "-n1", "-w", "n1", env={KILL_VARIABLE: step}) for step in steps]


def test_hook_killed_at_each_step_of_creation(site):
    jobs = submit_each(site, "echo never", CREATION)
    for job in jobs:
        job.wait_end(240)
    assert {job.state for job in jobs} == {"FAILED"}
    assert not [job.output for job in jobs if "never" in job.output]


def test_epilog_killed_at_each_step_of_deletion(site):
    """What is left is the node epilog's, or without it ksi-gc's; notes about jobs are always ksi-gc's."""
    jobs = submit_each(site, "echo there", DELETION)
    for job in jobs:
        job.wait_end(240)
        assert "there" in job.output, job.output
    if site.root_pair:
        wait_for(lambda: site.records() == [], 120, "the node's epilogs have cleaned")
    else:
        assert len(site.records()) == len(DELETION) - 1
    assert site.gc("--older-than=0")[0] == 0
    assert site.records() == []


def test_cancel_during_deletion(site):
    site.tools.script("podman rm", delay=5, times=1)
    before = site.tools.called("podman", "rm")
    job = site.jobs.submit("echo there", "-w", "n1")
    wait_for(lambda: site.tools.called("podman", "rm") > before, 120, "deletion goes on", lambda: job.output)
    assert [json.loads(path.read_text())["state"] for path in site.records()] == ["deleting"]
    job.cancel().wait_end()
    assert job.state in ("CANCELLED", "COMPLETED")
    assert site.gc("--older-than=0")[0] == 0


def test_slurmd_killed_while_scripts_run(site):
    """One script ends while there is no slurmd, the other is cancelled after its restart."""
    ends, cancelled = (site.jobs.submit(WAIT, "-n1", "-w", "n1").wait_output("there") for _ in range(2))
    site.site.kill_node("n1")
    let_go(ends)
    wait_for(lambda: len(site.records()) == 1, 120, "its task epilog has cleaned")
    site.site.start_node("n1")
    cancelled.cancel().wait_end(240)
    assert ends.wait_end(240).state == "COMPLETED"
    assert cancelled.state == "CANCELLED"
