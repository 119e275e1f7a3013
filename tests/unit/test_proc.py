"""Facts about processes."""

import os
import signal
import subprocess
import sys

import pytest

from ksi_hooks import proc
from ksi_hooks.proc import Process

pytestmark = pytest.mark.usefixtures("real_programs")
ME = proc.find(os.getpid())


@pytest.fixture
def child():
    with subprocess.Popen(["/bin/sleep", "300"], env={"KSI_CREATING": "ksi-7-0af3c", "PWD": "/x"}) as started:
        yield started
        started.kill()


def test_this_process():
    assert proc.is_alive(ME)
    assert not proc.is_alive(Process(ME.pid, ME.start + 1))
    assert proc.is_alive(Process(ME.pid, 0))
    assert proc.parent_of(ME.pid).pid == os.getppid()
    assert proc.owner_of(ME.pid) == os.getuid()


def test_process_that_does_not_exist():
    gone = 2**22 + 1
    assert proc.find(gone) is proc.parent_of(gone) is proc.owner_of(gone) is None
    assert proc.name_of(gone) == proc.title_of(gone) == ""
    assert proc.initial_environment(gone) == {}
    assert not proc.is_alive(Process(gone, 0))
    proc.send(Process(gone, 1), signal.SIGKILL)


def test_child(child):
    assert child.pid in proc.children_of(os.getpid())
    assert (proc.name_of(child.pid), proc.title_of(child.pid)) == ("sleep", "/bin/sleep 300")
    assert proc.initial_environment(child.pid) == {"KSI_CREATING": "ksi-7-0af3c", "PWD": "/x"}


def test_mark_is_compared_whole(child):
    assert [p.pid for p in proc.marked("KSI_CREATING", "ksi-7-0af3c")] == [child.pid]
    assert proc.marked("KSI_CREATING", "ksi-7-0af3") == []
    assert proc.marked("CREATING", "ksi-7-0af3c") == []


def test_zombie_is_gone(child):
    found = proc.find(child.pid)
    proc.send(found, signal.SIGKILL)
    assert proc.wait_gone([found], 5) == []
    assert proc.find(child.pid) is None
    assert child.pid not in proc.children_of(os.getpid())


def test_other_process_with_the_same_number_is_not_signalled(child):
    proc.send(Process(child.pid, 1), signal.SIGKILL)
    assert proc.is_alive(proc.find(child.pid))
    assert proc.wait_gone([proc.find(child.pid)], 0.05) == [proc.find(child.pid)]


def test_name_with_brackets_and_blanks(tmp_path):
    code = "open('/proc/self/comm', 'w').write('a) R 1 (b'); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as started:
        started.stdout.readline()
        assert proc.parent_of(started.pid).pid == os.getpid()
        assert proc.find(started.pid).start >= ME.start
        started.communicate(b"\n")
