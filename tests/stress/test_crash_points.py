"""A hook is killed at every step of a cluster's life; whichever cleaner comes next, nothing is left.

The cleaners: the task epilog of the step, the node's epilog, ksi-gc, and the next hook of the job.
"""

import os
import subprocess
import sys

import pytest
from fakes.waiting import wait_until

from ksi_hooks.lifecycle import steps

# Another run of these tests has steps on this machine, too: their jobs must be others.
JOB = 40_000_000 + os.getpid()
HANGS = {  # a program that is in the middle of its work when the hook is killed
    "kind starts": ("kind create", "start"),
    "kind has a volume": ("kind create", "volume"),
    "kind has a container": ("kind create", "container"),
    "kind ends": ("kind create", "end"),
}
REMOVALS = {"podman rm": "podman rm", "podman volume rm": "podman volume rm"}


def task_epilog(site, step):
    step.environment.pop(steps.KILL_VARIABLE, None)
    step.end()


def node_epilog(site, step):
    step.kill()
    environment = {
        "SLURM_JOB_ID": str(JOB),
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURMD_NODENAME": "n1",
    }
    subprocess.run([site.node_epilog], env=environment, check=True, timeout=40)


def gc(site, step):
    step.kill()
    collect(site)


def next_hook(site, step):
    step.kill()
    with site.step(JOB, env={"SLURM_RESTART_COUNT": "1"}) as again:
        assert again.prolog().status == 0
        assert len(site.state("container")) == len(site.state("volume")) == len(site.records()) == 1
        again.end()


def collect(site):
    site.slurm_says({"A": JOB, "N": "n1", "T": "CANCELLED", "S": "1700000000"})
    command = [sys.executable, "-I", "-m", "ksi_hooks.gc.main", "--config", str(site.settings_file)]
    options = ["--node", "n1", "--older-than", "0"]
    done = subprocess.run([*command, *options], env={}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done


CLEANERS = pytest.mark.parametrize("cleaner", [task_epilog, node_epilog, gc, next_hook])


def left(site, cleaner):
    """Everything that still exists; a node epilog leaves the job's empty note to ksi-gc."""
    found = site.leftovers()
    if cleaner is node_epilog:
        found = [f for f in found if not f.startswith("job ")]
    found += [
        str(f) for f in site.user_dir().rglob("*") if f.is_file() and f.suffix != ".log" and f.name != "lock"
    ]
    return found + [str(f) for f in site.registry.top.rglob("*") if f.is_file() and f.name != ".lock"]


@CLEANERS
@pytest.mark.parametrize("point", steps.CREATION)
def test_creation_killed_after_a_step(site, point, cleaner):
    site.mark(JOB)
    with site.step(JOB, env={steps.KILL_VARIABLE: point}) as step:
        assert step.prolog().status != 0
        assert len(site.records()) == 1
        cleaner(site, step)
    assert left(site, cleaner) == []


@CLEANERS
@pytest.mark.parametrize("middle", HANGS)
def test_creation_killed_in_the_middle_of_a_program(site, middle, cleaner):
    call, stage = HANGS[middle]
    site.mark(JOB)
    site.script(call, delay=2, at=stage, times=1)  # kind goes on by itself unless it is ended
    with site.step(JOB) as step:
        step.start(0)
        what = {"volume": "volume", "container": "container", "end": "container"}.get(stage)
        wait_until(lambda: site.state(what) if what else site.calls("kind create"))
        step.signal_hook(9)
        step.finish()
        cleaner(site, step)
    assert left(site, cleaner) == []


@pytest.mark.parametrize("cleaner", [node_epilog, gc, next_hook])
@pytest.mark.parametrize("point", steps.DELETION)
def test_deletion_killed_after_a_step(site, point, cleaner):
    site.mark(JOB)
    with site.step(JOB) as step:
        assert step.prolog().status == 0
        step.environment[steps.KILL_VARIABLE] = point
        step.end()
        cleaner(site, step)
    assert left(site, cleaner) == []


@pytest.mark.parametrize("cleaner", [node_epilog, gc, next_hook])
@pytest.mark.parametrize("removal", REMOVALS)
def test_deletion_killed_in_the_middle_of_a_program(site, removal, cleaner):
    site.mark(JOB)
    site.script(removal, delay=300, times=1)
    with site.step(JOB) as step:
        assert step.prolog().status == 0
        if removal == "podman volume rm":
            site.script("podman rm", status=0, times=1)
        step._command("end", 0, "epilog_task")
        wait_until(lambda: site.calls(removal))
        os.killpg(step._result("epilog-hook-0", 10)["pid"], 9)
        step._result("epilog-0", 20)
        cleaner(site, step)
    assert left(site, cleaner) == []
