"""What no hook can clean: slurmstepd killed, controller down. ksi-gc deletes only what Slurm says is gone."""

import json
import os
import signal

import pytest
from testbed.jobs import wait_for

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


def end_task(job):
    """End the script that a killed slurmstepd has left behind, then tell Slurm."""
    job.kill_script()
    job.cancel().wait_end(60)


def test_gc_cleans_after_slurmstepd_was_killed(plain):
    job = plain.jobs.submit("echo there; sleep 60").wait_output("there")
    assert len(plain.records()) == 1
    job.kill_stepds()
    assert plain.gc("--older-than=0")[0] == 0
    assert len(plain.records()) == 1, "the job still lives for Slurm"
    end_task(job)
    assert len(plain.records()) == 1, "no hook ran"
    status, said = plain.gc("--older-than=0", "--dry-run")
    assert status == 0 and f"would delete ksi-{job.id}-" in said
    status, said = plain.gc("--older-than=0")
    assert status == 0 and f"deleted ksi-{job.id}-" in said, said
    assert plain.records() == []


def test_node_epilog_cleans_after_slurmstepd_was_killed(paired):
    job = paired.jobs.submit("echo there; sleep 60").wait_output("there")
    job.kill_stepds()
    end_task(job)
    wait_for(lambda: paired.records() == [], 20, "the node's epilog has cleaned")


def test_gc_cleans_for_an_unprivileged_user_and_leaves_the_living_alone(plain):
    session = plain.tools.session_of("games")
    script = "echo there; sleep 60"
    dead = plain.jobs.submit(script, "-n1", user="games", env=session).wait_output("there")
    alive = plain.jobs.submit(script, "-n1", user="www-data", env=plain.tools.session_of("www-data"))
    alive.wait_output("there")
    dead.kill_stepds()
    end_task(dead)
    status, said = plain.gc("--older-than=0", "--json")
    assert status == 0, said
    verdicts = {row["cluster"]: row["verdict"] for row in json.loads(said)["actions"]}
    assert [f"-{job.id}-" in name for job in (dead, alive) for name in verdicts].count(True) == 2, verdicts
    assert [f"-{alive.id}-" in record.name for record in plain.records()] == [True]
    alive.cancel().wait_end()


def test_gc_of_a_user_cleans_only_his_own(plain):
    jobs = {}
    for user in ("games", "www-data"):
        env = plain.tools.session_of(user)
        jobs[user] = plain.jobs.submit("echo there; sleep 60", "-n1", user=user, env=env).wait_output("there")
    for job in jobs.values():
        job.kill_stepds()
        end_task(job)
    own = plain.jobs.command(*plain.ksi.gc_argv("--node=n1", "--older-than=0"), user="games")
    assert own.status == 0, own
    assert [f"-{jobs['www-data'].id}-" in record.name for record in plain.records()] == [True]
    assert plain.gc("--older-than=0")[0] == 0


def test_hook_killed_during_creation(plain):
    """The epilog finds a claim whose creator is dead and a kind that goes on: both go."""
    plain.tools.script("kind create", at="container", delay=20)
    job = plain.jobs.submit("echo never")
    wait_for(lambda: any(t.kind == "container" for t in plain.tools.things()), 20, "kind is at work")
    os.kill(json.loads(plain.records()[0].read_text())["creator"]["pid"], signal.SIGKILL)
    job.wait_end()
    assert job.state == "FAILED" and "never" not in job.output


def test_job_starts_without_a_cluster_while_the_controller_is_down(plain):
    """An answer that could not be had is no yes; the user is not told about what he cannot mend.

    As a user of its own: the silence of the controller is remembered for a minute, for each user.
    """
    job = plain.jobs.submit("echo ${K8S_CLUSTER_NAME:-none}", user="nobody")
    wait_for(job.stepds, 30, "the job is launched", pause=0.001)
    with plain.controller_frozen():
        wait_for(lambda: job.output, 120, "the job has printed")
    job.wait_end()
    assert job.output == "none\n"
    assert list(plain.ksi.run_root.glob("*/answers/unknown"))


def test_gc_deletes_nothing_while_the_controller_is_down(plain):
    job = plain.jobs.submit("echo there; sleep 60").wait_output("there")
    job.kill_stepds()
    with plain.controller_frozen():
        status, said = plain.gc("--older-than=0")
        assert status == 3, said
        assert len(plain.records()) == 1
    end_task(job)
    status, said = plain.gc("--older-than=0")
    assert status == 0 and f"deleted ksi-{job.id}-" in said
