"""Every way in which a job ends: whatever it was doing, nothing of its cluster is left."""

import pytest
from testbed.jobs import wait_for

from slurm.acting import requeue

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]

SLOW = 4.0  # seconds that a fake kind takes where a job is to end meanwhile
# Where in its creation kind is when the job ends: before anything exists, with a volume, with a container.
STAGES = ("start", "volume", "container")


def creating(job, site, stage):
    """Wait until the job's kind has come to a stage of its work."""
    wanted = {"start": "calls", "volume": "volume", "container": "container"}[stage]

    def there():
        if stage == "start":
            return bool(site.records()) and site.tools.called("kind")
        return any(thing.kind == wanted for thing in site.tools.things())

    wait_for(there, 20, f"kind is at {stage}", lambda: job.output)


def test_cancel_while_pending(site):
    job = site.jobs.submit("echo never", "--hold").cancel().wait_end()
    assert job.state == "CANCELLED"
    assert job.output == ""


@pytest.mark.parametrize("stage", STAGES)
def test_cancel_during_creation(site, stage):
    site.tools.script("kind create", at=stage, delay=SLOW)
    job = site.jobs.submit("echo never")
    creating(job, site, stage)
    job.cancel().wait_end()
    assert job.state == "CANCELLED"
    assert "never" not in job.output


def test_cancel_during_the_run(site):
    job = site.jobs.submit("echo there; sleep 60").wait_output("there")
    job.cancel().wait_end()
    assert job.state == "CANCELLED"


def test_cancel_with_a_step_running(site):
    job = site.jobs.submit("srun -n2 bash -c 'echo there; sleep 60'", "-n2", "-N1").wait_output("there")
    job.cancel().wait_end()
    assert job.state == "CANCELLED"


def test_cancel_that_signals_the_script_alone(site):
    """The script catches the signal and goes on: so does its cluster."""
    script = (
        "trap 'test -s $KUBECONFIG && echo still; exit 4' USR1\necho there\nwhile true; do sleep 0.1; done"
    )
    job = site.jobs.submit(script).wait_output("there").cancel("--batch", "--signal=USR1").wait_end()
    assert job.output.splitlines()[-1] == "still", job.output
    assert job.exit_status == 4


def test_cancel_with_kill(site):
    job = site.jobs.submit("echo there; sleep 60").wait_output("there")
    job.cancel("--signal=KILL", "--full").wait_end()
    assert job.state in ("CANCELLED", "FAILED")


def test_time_limit(plain, paired):
    """Slurm looks for jobs that are over their time every 30 s, so both sites wait together."""
    jobs = [each.jobs.submit("echo there; sleep 90").wait_output("there") for each in (plain, paired)]
    for job in jobs:
        job.jobs.command("scontrol", "update", f"JobId={job.id}", "EndTime=now")
    for job in jobs:
        assert job.wait_end(60).state == "TIMEOUT", job.output


def test_requeue_gives_a_fresh_cluster(site):
    """Twice, since slurmd may start a requeued job before its Prolog has run: half of the time it does."""
    script = 'n=${SLURM_RESTART_COUNT:-0}; echo "run $n $K8S_CLUSTER_NAME"; [ $n = 2 ] || sleep 60'
    job = site.jobs.submit(script, "--requeue", "--open-mode=append").wait_output("run 0 kind")
    for run in (1, 2):
        requeue(job, run)
        job.wait_output(f"run {run} kind")
    job.wait_end()
    names = {line.split()[-1] for line in job.output.splitlines() if line.startswith("run ")}
    assert len(names) == 3, job.output


def test_creation_that_fails_ends_the_job_and_says_why(site):
    site.tools.script("kind create", stderr="ERROR: toomanyrequests: pull rate limit\n", status=1)
    job = site.jobs.submit("echo never").wait_end()
    assert job.state == "FAILED", job.output
    assert job.exit_status != 0
    assert "ksi: error: " in job.output and "rate limit" in job.output
    assert "ksi: hint: " in job.output
    assert "never" not in job.output


def test_creation_that_fails_under_srun_is_told_once_and_tried_once(site):
    site.tools.script("kind create", stderr="ERROR: toomanyrequests: pull rate limit\n", status=1)
    before = site.tools.called("kind")
    result = site.jobs.command("srun", "-n4", "-N1", "--constraint=k8s", "bash", "-c", "echo never")
    assert result.status != 0
    assert "rate limit" in result.out and "never" not in result.out, result
    assert site.tools.called("kind") - before == 1


def test_creation_that_hangs_ends_at_its_time_limit(plain):
    plain.ksi.configure(create_timeout=2)
    try:
        plain.tools.script("kind create", at="container", delay=30)
        job = plain.jobs.submit("echo never").wait_end()
        assert job.state == "FAILED"
        assert "create_timeout" in job.output and "never" not in job.output, job.output
    finally:
        plain.ksi.configure(create_timeout=60)


def test_failure_that_the_site_tolerates(plain):
    plain.ksi.configure(on_failure="continue")
    try:
        plain.tools.script("kind create", status=1)
        job = plain.jobs.submit('echo "without ${K8S_CLUSTER_NAME:-a cluster}"').wait_end()
        assert job.state == "COMPLETED"
        assert "without a cluster" in job.output and "ksi: error:" in job.output
    finally:
        plain.ksi.configure(on_failure="fail")
