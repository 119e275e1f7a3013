"""The gate: whose job it is, from names alone, with nothing imported but os."""

import subprocess
import sys

import pytest

from ksi_hooks import gate

JOB = {"SLURM_JOB_ID": "7", "SLURM_JOB_START_TIME": "1000"}


@pytest.fixture
def decide(tmp_path):
    """Decide with these files present below the state directory and the user's directory."""

    def with_files(environ, *present):
        for name in present:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return gate.decide(environ, str(tmp_path / "state"), str(tmp_path / "user"))

    return with_files


YES, NO = "user/answers/7-1000.yes", "user/answers/7-1000.no"


@pytest.mark.parametrize(
    ("environ", "present", "verdict"),
    [
        (JOB, (), gate.ASK),
        ({}, (), gate.NO),
        ({"SLURM_JOBID": "7"}, (), gate.ASK),
        (JOB | {"KSI": "0"}, ("state/jobs/7",), gate.NO),
        (JOB | {"KSI": "0"}, (YES,), gate.NO),
        (JOB | {"KSI": "1"}, (), gate.REQUESTED),
        (JOB | {"KSI": "1"}, (NO,), gate.REQUESTED),
        (JOB | {"KSI": "1"}, (YES,), gate.YES),
        (JOB | {"KSI": "1"}, ("state/jobs/7",), gate.YES),
        (JOB | {"KSI": "1"}, ("state/jobs/8",), gate.REQUESTED),
        (JOB | {"KSI": "yes"}, (), gate.ASK),
        (JOB, ("state/jobs/7",), gate.YES),
        (JOB, ("state/jobs/8",), gate.NO),
        (JOB, ("state/jobs/8", YES), gate.NO),
        (JOB, (YES,), gate.YES),
        (JOB, (NO,), gate.NO),
        (JOB, ("user/answers/7-999.no",), gate.ASK),
        ({"SLURM_JOB_ID": "../../etc/passwd"}, (), gate.NO),
        ({"SLURM_JOB_ID": ""}, (), gate.NO),
    ],
)
def test_order_of_the_triggers(decide, environ, present, verdict):
    assert decide(environ, *present) == verdict


def test_cached_answer_stays_in_its_directory():
    assert "/" not in gate.answer_name({"SLURM_JOB_ID": "7/../x", "SLURM_JOB_START_TIME": "1/2"})


def imported_by(code):
    code = f"import os, sys; seen = set(sys.modules); {code}; print(*sorted(set(sys.modules) - seen))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_gate_imports_only_os(real_programs):
    assert imported_by("import ksi_hooks.gate") == ["ksi_hooks", "ksi_hooks.gate"]


@pytest.mark.parametrize("hook", ["task_prolog", "task_epilog"])
def test_hook_imports_nothing_before_the_gate(real_programs, hook):
    wanted = ["ksi_hooks", "ksi_hooks.gate", "ksi_hooks.hooks", f"ksi_hooks.hooks.{hook}"]
    assert imported_by(f"import ksi_hooks.hooks.{hook}") == wanted


def test_attaching_task_loads_no_network_library(real_programs):
    loaded = imported_by("import ksi_hooks.hooks.prolog_work")
    assert not {"ssl", "urllib.request", "http.client", "asyncio", "argparse"} & set(loaded)
