"""Hooks that are stopped, killed or hang: nothing half made stays, and nothing holds slurmstepd's pipe."""

import os
import signal
import time

import pytest
from fakes.waiting import wait_until

from ksi_hooks import proc
from ksi_hooks.environment import CLUSTER_MARK


def test_kb_01c_output_of_programs_never_reaches_the_pipe(site):
    site.mark(101)
    lines = "export PATH=/evil\nprint hi\nunset HOME\n"
    for call in ("kind create", "kubectl apply", "kubectl wait"):
        site.script(call, stdout=lines, stderr=lines)
    with site.step(101) as step:
        prolog = step.prolog()
    assert prolog.status == 0
    assert "PATH" not in prolog.exports
    assert "hi" not in prolog.said
    assert prolog.unset == []


@pytest.mark.parametrize("answer", ["tok\nexport LD_PRELOAD=/tmp/x.so\n", "to\0k\n", "é" * 3000])
def test_kb_01b_token_that_is_no_token(site, answer):
    site.mark(101)
    site.script("kubectl create token", stdout=answer, status=0)
    with site.step(101) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.exports, prolog.dropped) == (1, {}, [])
        assert "LD_PRELOAD" not in prolog.output
        assert "internal error" not in prolog.said
        step.end()
    assert site.leftovers() == []


def test_kb_03a_helper_that_holds_descriptors_holds_nobody_up(site):
    site.mark(101)
    for call in ("kind create", "kubectl create token"):
        site.script(call, leaves=300)
    with site.step(101) as step:
        prolog = step.prolog(timeout=15)
        assert prolog.status == 0
        assert prolog.seconds < 10


def test_kb_03b_helpers_outlive_the_hooks_process_group(site):
    """The emulator, like slurmstepd, has killed the hook's process group when the prolog returns."""
    site.mark(101)
    site.script("kind create", leaves=300)
    with site.step(101) as step:
        step.prolog()
        (record,) = site.records()
        helpers = {proc.name_of(p.pid) for p in proc.marked(CLUSTER_MARK, record.cluster)}
        assert helpers == {"sleep", "fake-conmon"}
        step.end()
    assert site.leftovers() == []


def test_kb_03c_creation_that_hangs_is_ended_and_named(site):
    site.configure(create_timeout=1)
    site.mark(101)
    site.script("kind create", delay=300, at="volume")
    with site.step(101) as step:
        prolog = step.prolog(timeout=20)
        assert (prolog.status, prolog.exports) == (1, {})
        assert "create_timeout (1 s)" in prolog.said
        assert "ksi: hint:" in prolog.said
        step.end()
    assert site.leftovers() == []


def test_kb_38b_sigterm_during_creation_deletes(site):
    site.mark(101)
    site.script("kind create", delay=300, at="volume")
    with site.step(101) as step:
        step.start(0)
        wait_until(lambda: site.state("volume"))
        started = time.monotonic()
        step.signal_hook(signal.SIGTERM)
        prolog = step.finish(timeout=25)
        assert time.monotonic() - started < 20
        assert prolog.status not in (0, None)
        assert prolog.exports == {}
        assert step.end_task().status == 0
    assert site.leftovers() == []


def test_sigterm_to_the_gate_alone_does_not_lose_the_cluster(site):
    """slurmstepd reads to the end of the pipe; whoever deletes first, nothing is left after the epilog."""
    site.mark(101)
    site.script("kind create", delay=1, at="volume")
    with site.step(101) as step:
        step.start(0)
        wait_until(lambda: site.state("volume"))
        os.kill(step.hook_pid(), signal.SIGTERM)
        assert step.finish(timeout=25).status != 0
        step.end()
    assert site.leftovers() == []


def test_kb_38a_sigkill_during_creation_leaves_the_epilog_what_it_needs(site):
    """Every other moment is in test_crash_points.py."""
    site.mark(101)
    site.script("kind create", delay=300, at="container")
    with site.step(101) as step:
        step.start(0)
        wait_until(lambda: site.state("container"))
        step.signal_hook(signal.SIGKILL)
        step.finish()
        (record,) = site.records()
        assert record.state == "creating"
        assert step.end_task().status == 0
    assert site.leftovers() == []


def test_slurmstepd_killed_during_creation(site):
    """No epilog runs; the next task of the job on this node takes over."""
    site.mark(101)
    site.script("kind create", delay=300, at="volume", times=1)
    with site.step(101) as step:
        step.start(0)
        wait_until(lambda: site.state("volume"))
        step.kill()
        step.signal_hook(signal.SIGKILL)
    with site.step(101, env={"SLURM_RESTART_COUNT": "1"}) as step:
        assert step.prolog().status == 0
        assert len(site.state("volume")) == len(site.records()) == 1
        step.end()
    assert site.leftovers() == []


def test_epilog_while_the_creation_goes_on_ends_it_first(site):
    """Up to Slurm 23.02 a cancelled job's epilog runs beside the prolog's programs."""
    site.mark(101)
    site.script("kind create", delay=1, at="volume")
    with site.step(101) as step:
        step.start(0)
        wait_until(lambda: site.state("volume"))
        step.end_task()  # kills the waiting task, not the hook
        time.sleep(1.2)
    assert site.leftovers() == []


def test_epilog_ends_a_hook_that_hangs_before_it_deletes(site):
    site.mark(101)
    site.script("kind create", delay=300, at="volume")
    with site.step(101) as step:
        step.start(0)
        wait_until(lambda: site.state("volume"))
        (record,) = site.records()
        step.signal_hook(signal.SIGSTOP)
        step.end_task()
        assert not proc.is_alive(record.creator)
    assert site.leftovers() == []


def test_programs_that_fork_while_they_are_ended(site):
    site.mark(101)
    site.script("kind create", leaves=300, delay=300, at="container")
    with site.step(101) as step:
        step.start(0)
        wait_until(lambda: site.state("container"))
        step.signal_hook(signal.SIGKILL)
        step.finish()
        step.end()
    assert site.leftovers() == []
