"""Where a hook's exceptions stop: what the user, the administrator and the log are told."""

import os
import signal
import syslog

import pytest

from ksi_hooks.errors import Interrupted, KsiError
from ksi_hooks.hooks import boundary


@pytest.fixture
def sent(monkeypatch):
    lines = []
    monkeypatch.setattr(syslog, "syslog", lambda level, line: lines.append((level, line)))
    return lines


def fail(error):
    def action():
        raise error

    return action


def test_success_is_one_line(sent):
    report = boundary.Report("task-prolog", job=7, uid=1000)
    assert boundary.guard(lambda: None, report) is None
    report.send()
    ((level, line),) = sent
    assert level == syslog.LOG_INFO
    assert line.startswith("task-prolog: job=7 uid=1000 seconds=")
    assert line.endswith(" result=ok")


def test_failure_is_one_line_whatever_is_in_it(sent):
    report = boundary.Report("task-prolog", job=7)
    error = KsiError("no\nksi: task-prolog: job=8 result=ok")
    assert boundary.guard(fail(error), report) is error
    report.send()
    ((level, line),) = sent
    assert level == syslog.LOG_ERR
    assert "\n" not in line
    assert "result=failed" in line


def test_bug_is_told_with_its_traceback_in_the_log(sent, tmp_path):
    report = boundary.Report("task-prolog", job=7)
    report.log = tmp_path / "log"
    error = boundary.guard(fail(ZeroDivisionError("by zero")), report)
    assert str(error) == "internal error: ZeroDivisionError: by zero"
    assert str(tmp_path / "log") in error.hint
    assert "Traceback" in (tmp_path / "log").read_text()
    assert report.result == "bug"
    assert sent == []


def test_bug_without_a_log_goes_to_syslog(sent):
    boundary.guard(fail(ZeroDivisionError("by zero")), boundary.Report("task-epilog"))
    ((_, line),) = sent
    assert "ZeroDivisionError" in line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_becomes_an_error_once(number):
    before = signal.getsignal(number)
    with boundary.interruptible():
        with pytest.raises(Interrupted, match=signal.Signals(number).name):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)  # the second one does not disturb the clean-up
    assert signal.getsignal(number) == before


def test_lines_are_written_whole_and_a_closed_pipe_is_no_error():
    reader, writer = os.pipe()
    boundary.say(writer, ["export A=1\n", "print ünï\n", "export B=\udcff\n"])
    assert os.read(reader, 100) == "export A=1\nprint ünï\nexport B=".encode() + b"\xff\n"
    os.close(reader)
    boundary.say(writer, ["print x\n"])
    os.close(writer)
