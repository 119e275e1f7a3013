"""Jobs that want no cluster: nothing printed, no tool called, none failed, whatever is broken."""

import shutil

import pytest

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(300)]


@pytest.fixture
def untouched(site):
    """The site, whose fakes must not be called by the test."""

    def calls():
        return sum(site.tools.called(name) for name in ("kind", "podman", "kubectl", "systemctl"))

    before = calls()
    yield site
    assert calls() == before


def test_ordinary_batch_job(untouched):
    job = untouched.jobs.submit("echo mine; srun -n1 echo step; exit 6", constraint=None).wait_end()
    assert job.output == "mine\nstep\n"
    assert job.exit_status == 6
    assert not list(untouched.ksi.run_root.glob("*/jobs/*"))


def test_ordinary_srun_of_many_tasks(untouched):
    result = untouched.jobs.command("srun", "-n8", "-N1", "bash", "-c", "echo mine")
    assert (result.status, result.out) == (0, "mine\n" * 8)


def test_ordinary_job_of_an_unprivileged_user(untouched):
    job = untouched.jobs.submit("echo mine", constraint=None, user="nobody").wait_end()
    assert (job.output, job.state) == ("mine\n", "COMPLETED")


def test_k8s_job_that_declines(untouched):
    job = untouched.jobs.submit("echo mine", env={"KSI": "0"}).wait_end()
    assert job.output == "mine\n"


def test_broken_settings_harm_nobody_else(untouched):
    settings = untouched.ksi.settings_file
    good = settings.read_text()
    settings.write_text("registry_dir: [\n")
    try:
        job = untouched.jobs.submit("echo mine", constraint=None).wait_end()
        assert (job.output, job.exit_status) == ("mine\n", 0)
        ours = untouched.jobs.submit("echo never").wait_end()
        assert ours.state == "FAILED" and "never" not in ours.output
        assert "ksi: error: " in ours.output and str(settings) in ours.output, ours.output
    finally:
        settings.write_text(good)


def test_missing_interpreter_harms_nobody_else(untouched):
    python = untouched.ksi.python
    kept = python.with_name("python.kept")
    shutil.move(python, kept)
    try:
        job = untouched.jobs.submit("echo mine; exit 4", constraint=None).wait_end()
        assert (job.output, job.exit_status) == ("mine\n", 4)
    finally:
        shutil.move(kept, python)


def test_missing_package_harms_nobody_else(untouched):
    package = next(untouched.ksi.python.parents[1].glob("lib/python3*/site-packages/ksi_hooks"))
    kept = package.with_name("kept")
    shutil.move(package, kept)
    try:
        job = untouched.jobs.submit("echo mine; exit 4", constraint=None).wait_end()
        assert (job.output, job.exit_status) == ("mine\n", 4)
    finally:
        shutil.move(kept, package)


def test_missing_interpreter_is_told_to_a_k8s_job_with_the_root_pair(paired):
    python = paired.ksi.python
    kept = python.with_name("python.kept")
    job = paired.jobs.submit("echo never", "--hold")
    # As if the interpreter had gone between the node's prolog and the task's.
    (paired.ksi.node_state / "jobs" / str(job.id)).write_text("{}")
    shutil.move(python, kept)
    try:
        paired.jobs.command("scontrol", "release", job.name)
        job.wait_end()
    finally:
        shutil.move(kept, python)
    assert job.state == "FAILED" and "never" not in job.output
    assert f"cannot be started: {python}" in job.output and "ksi: hint: " in job.output, job.output
