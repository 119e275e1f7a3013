"""What several tests let jobs say and have happen to them."""

import json

from testbed import processes
from testbed.jobs import Job, wait_for

SHOW = 'echo "cluster=$K8S_CLUSTER_NAME port=$K8S_PORT config=$KUBECONFIG"'
TELL = f"/bin/bash -c '{SHOW}'"
WAIT = "echo there; until [ -e go-$SLURM_JOB_ID ]; do sleep 0.2; done"
OTHER_BOOT = "00000000-0000-0000-0000-000000000000"


def shown(output: str) -> list[str]:
    """What the tasks of SHOW and TELL have printed."""
    return [line for line in output.splitlines() if line.startswith("cluster=")]


def let_go(job: Job) -> None:
    """End the waiting of WAIT."""
    (job.jobs.work_dir / f"go-{job.id}").touch()


def requeue(job: Job, run: int, *, node: str = "") -> None:
    """Requeue a job and have it start soon instead of after two minutes.

    Not at once: slurmd (22.05) refuses a launch in the second in which it has ended the job.
    """
    before = job.fact("StartTime")
    job.jobs.command("scontrol", "requeue", job.name)
    wait_for(
        lambda: (job.state, job.fact("Restarts")) == ("PENDING", str(run)), 90, "requeued", lambda: job.state
    )
    where = [f"ReqNodeList={node}"] if node else []
    job.jobs.command("scontrol", "update", f"JobId={job.id}", "StartTime=now+2", *where)
    wait_for(lambda: job.fact("StartTime") != before, 60, "another start")


def reboot(site, job: Job) -> None:
    """Leave of a running job what a boot of its node leaves: files of another boot, no process."""
    job.kill_stepds()
    job.kill_script()
    for path in site.records():
        record = json.loads(path.read_text())
        if record["job_id"] == job.id:
            processes.kill(processes.with_variable("KSI_CREATING", record["cluster"]))
            path.write_text(json.dumps({**record, "boot_id": OTHER_BOOT}))
