"""A job that is not ours never notices: no output, status 0, no program called, whatever is broken."""

import os

import pytest

K8S = {"A": 201, "N": "n1", "f": "k8s"}
PLAIN = {"A": 201, "N": "n1", "f": "(null)"}


def break_nothing(site):
    pass


def remove_settings(site):
    site.settings_file.unlink()


def tear_settings(site):
    site.settings_file.write_text("feature: [")


def remove_interpreter(site):
    site.configure(python=str(site.base / "no-python"))


def remove_registry(site):
    site.registry.top.rename(site.base / "elsewhere")


def lock_registry(site):
    site.registry.top.chmod(0)


def remove_programs(site):
    for program in site.tools_dir.iterdir():
        program.unlink()


def remove_run_root(site):
    site.run_root.rmdir()


BREAKAGES = [
    break_nothing,
    remove_settings,
    tear_settings,
    remove_interpreter,
    remove_registry,
    lock_registry,
    remove_programs,
    remove_run_root,
]


def require_unnoticed(site, prolog, epilog):
    assert (prolog.status, prolog.output) == (0, "")
    assert epilog.status == 0
    assert [c for c in site.calls() if c.program not in ("squeue", "sinfo")] == []


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_kb_04_unmarked_job_never_notices(site, breakage):
    site.mark(999)
    breakage(site)
    with site.step(201) as step:
        require_unnoticed(site, step.prolog(), step.end_task())
    assert site.calls() == []


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_kb_04_job_that_slurm_denies_never_notices(site, breakage):
    site.slurm_says(PLAIN)
    breakage(site)
    with site.step(201) as step:
        require_unnoticed(site, step.prolog(), step.end_task())


def test_kb_04_bare_environment(site):
    with site.step(201) as step:
        step.environment = {"SLURM_JOB_ID": "201"}
        require_unnoticed(site, step.prolog(), step.end_task())


def test_no_job_at_all(site):
    with site.step(201, drop=("SLURM_JOB_ID", "SLURM_JOBID")) as step:
        require_unnoticed(site, step.prolog(), step.end_task())


@pytest.mark.parametrize("job_id", ["", "x", "../../etc", "-1"])
def test_unreadable_job_id(site, job_id):
    site.mark(201)
    with site.step(201, env={"SLURM_JOB_ID": job_id, "SLURM_JOBID": job_id}) as step:
        require_unnoticed(site, step.prolog(), step.end_task())


def test_ksi_0_wins_over_marker_and_slurm(site):
    site.slurm_says(K8S)
    site.mark(201)
    with site.step(201, env={"KSI": "0"}) as step:
        require_unnoticed(site, step.prolog(), step.end_task())
    assert site.calls() == []


def test_package_that_cannot_be_imported(site):
    """The interpreter starts but finds no package: before the gate has said yes, nobody has to know."""
    hook = site.base / "broken_hook.py"
    hook.write_text("import no_such_package\n")
    text = site.task_prolog.read_text()
    site.task_prolog.write_text(text.replace(str(site.hook_file("task_prolog")), str(hook)))
    assert str(hook) in site.task_prolog.read_text()
    site.slurm_says(K8S)
    with site.step(201) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.output) == (0, "")


def test_hook_file_that_is_gone_fails_a_marked_job_with_a_message(site):
    site.task_prolog.write_text(
        site.task_prolog.read_text().replace("hooks/task_prolog.py", "hooks/no_such_hook.py")
    )
    site.mark(201)
    with site.step(201) as step:
        prolog = step.prolog()
    assert prolog.status == 1
    assert "ksi: error:" in prolog.said
    assert "ksi: hint:" in prolog.said


def test_interpreter_that_is_gone_fails_a_marked_job_with_a_message(site):
    remove_interpreter(site)
    site.mark(201)
    with site.step(201) as step:
        prolog = step.prolog()
    assert prolog.status == 1
    assert str(site.base / "no-python") in prolog.said
    assert prolog.dropped == []


def test_interpreter_that_is_gone_lets_a_marked_job_continue_where_the_site_says_so(site):
    site.configure(python=str(site.base / "no-python"), on_failure="continue")
    site.mark(201)
    with site.step(201) as step:
        prolog = step.prolog()
    assert prolog.status == 0
    assert "ksi: error:" in prolog.said


def test_unmarked_job_starts_no_interpreter(site):
    """The gate decides in sh: with an interpreter that would leave a trace there is none."""
    trace = site.base / "trace"
    spy = site.base / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {trace}\n")
    spy.chmod(0o755)
    site.configure(python=str(spy))
    site.mark(999)
    with site.step(201) as step:
        step.prolog()
        step.end_task()
    assert not trace.exists()
    site.mark(201)
    with site.step(201) as step:
        step.prolog()
    assert trace.exists()


def test_run_directory_of_a_stranger_is_no_hindrance_for_others(site):
    if os.getuid() != 0:
        pytest.skip("needs root to make a directory of another user")
    stolen = site.user_dir()
    stolen.mkdir()
    os.chown(stolen, 4242, 4242)
    site.slurm_says(PLAIN)
    with site.step(201) as step:
        require_unnoticed(site, step.prolog(), step.end_task())
