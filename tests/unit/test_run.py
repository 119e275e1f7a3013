"""Starting programs: argument lists, a built environment, a time limit, no pipe that could be held open."""

import os
import stat
import time

import pytest

from ksi_hooks import proc
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import CommandFailed, ProgramMissing
from ksi_hooks.run import Deadline, Tools

pytestmark = pytest.mark.usefixtures("real_programs")


@pytest.fixture
def program(tmp_path):
    def write(body, name="tool"):
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{body}\n")
        file.chmod(0o755)
        return Tools([tmp_path], {"A": "1"}, tmp_path / "log")

    return write


def test_environment_is_the_given_one_alone(program):
    answer = program("/usr/bin/env").capture(["tool"], timeout=5)
    assert {line.partition("=")[0] for line in answer.splitlines()} <= {"A", "PWD", "_", "OLDPWD", "SHLVL"}
    assert "A=1" in answer.splitlines()


def test_output_goes_to_the_log_with_the_command(program, tmp_path):
    program("echo out; echo err >&2").run(["tool", "a b", "$x"], timeout=5)
    assert (tmp_path / "log").read_text() == f"+ {tmp_path}/tool 'a b' '$x'\nout\nerr\n"
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


def test_answer_is_kept_out_of_the_log(program, tmp_path):
    assert program("echo secret; echo complaint >&2").capture(["tool"], timeout=5) == "secret\n"
    assert "secret" not in (tmp_path / "log").read_text()
    assert "complaint" in (tmp_path / "log").read_text()


def test_secret_goes_in_by_stdin(program, tmp_path):
    assert (
        program("cat() { while read -r l; do echo $l; done; }; cat").capture(
            ["tool"], timeout=5, stdin=b"s3cret\n"
        )
        == "s3cret\n"
    )
    assert "s3cret" not in (tmp_path / "log").read_text()


def test_stdin_is_empty_otherwise(program):
    assert program("read -r line || echo end").capture(["tool"], timeout=5) == "end\n"


def test_failure_carries_status_and_last_line(program):
    with pytest.raises(CommandFailed, match=r"tool failed \(status 3\): because") as caught:
        program("echo first; echo because >&2; exit 3").run(["tool"], timeout=5)
    assert caught.value.status == 3


def test_status_can_be_the_answer(program):
    assert program("echo x; echo y >&2; exit 3").status(["tool"], timeout=5) == (3, "x\ny\n")


def test_kb_03_time_limit_ends_the_whole_group(program, tmp_path):
    tools = program(f"sleep 300 & echo $! > {tmp_path}/pid; wait")
    tools = Tools([*tools.path], {"PATH": "/usr/bin:/bin"}, tools.log)
    started = time.monotonic()
    with pytest.raises(CommandFailed, match=r"no end after 0\.3 s") as caught:
        tools.run(["tool"], timeout=0.3)
    assert caught.value.status is None
    assert time.monotonic() - started < 5
    child = proc.find(int((tmp_path / "pid").read_text()))
    assert child is None or proc.wait_gone([child], 5) == []


def test_kb_03_child_that_holds_descriptors_holds_nobody_up(program, tmp_path):
    tools = program(f"sleep 30 & echo $! > {tmp_path}/pid; echo done")
    tools = Tools([*tools.path], {"PATH": "/usr/bin:/bin"}, tools.log)
    started = time.monotonic()
    assert tools.capture(["tool"], timeout=10) == "done\n"
    assert time.monotonic() - started < 5
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_no_descriptor_of_ours_is_inherited(program):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        answer = program(f"[ -e /proc/self/fd/{writer} ] && echo open || echo closed").capture(
            ["tool"], timeout=5
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert answer == "closed\n"


def test_missing_program_names_where_it_was_looked_for(tmp_path):
    with pytest.raises(ProgramMissing, match=rf"kind \(searched {tmp_path}:/nowhere\)") as caught:
        Tools([tmp_path, tmp_path.__class__("/nowhere")]).run(["kind"], timeout=5)
    assert "tools_path" in caught.value.hint


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), lambda p: p.write_text("x")])
def test_what_is_no_program_is_passed_over(tmp_path, make):
    make(tmp_path / "kind")
    with pytest.raises(ProgramMissing):
        Tools([tmp_path]).find("kind")


def test_program_that_cannot_be_started(tmp_path):
    (tmp_path / "tool").write_text("#!/no/such/interpreter\n")
    (tmp_path / "tool").chmod(0o755)
    with pytest.raises(ProgramMissing, match="cannot start"):
        Tools([tmp_path]).run(["tool"], timeout=5)


def test_kb_14_runtime_directory_that_is_not_there_is_not_passed_on(tmp_path):
    wishes = {
        "XDG_RUNTIME_DIR": str(tmp_path / "gone"),
        "LD_PRELOAD": "x",
        "PATH": "/evil",
        "https_proxy": "http://p",
    }
    environment = base_environment([tmp_path], os.getuid(), wishes)
    assert "XDG_RUNTIME_DIR" not in environment or environment["XDG_RUNTIME_DIR"].startswith("/run/user/")
    assert environment["PATH"] == str(tmp_path)
    assert environment["https_proxy"] == "http://p"
    assert "LD_PRELOAD" not in environment


def test_kb_14_valid_runtime_directory_is_kept(tmp_path):
    environment = base_environment([tmp_path], os.getuid(), {"XDG_RUNTIME_DIR": str(tmp_path)})
    assert environment["XDG_RUNTIME_DIR"] == str(tmp_path)
    assert "DBUS_SESSION_BUS_ADDRESS" not in environment


def test_deadline_is_shared():
    deadline = Deadline(100)
    assert 99 < deadline.left() <= 100
    assert deadline.left(at_most=5) == 5
    assert not deadline.passed
    assert Deadline(0).passed
    assert Deadline(0).left() > 0
