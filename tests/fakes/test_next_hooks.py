"""A site's own TaskProlog and TaskEpilog run after ours, unchanged, for all jobs."""

import pytest

OWN = """#!/bin/sh
echo "$0 $* $SLURM_JOB_ID $SLURM_SCRIPT_CONTEXT" >> {trace}
echo 'export SITE_SCRATCH=/scratch/$USER'
echo 'print welcome  to the site'
echo 'noise'
exit {status}
"""


@pytest.fixture
def own(site):
    """A site's hooks, with the status that a test wants."""

    def install(status=0):
        for name in ("own-prolog", "own-epilog"):
            file = site.base / name
            file.write_text(OWN.format(trace=site.base / "trace", status=status))
            file.chmod(0o755)
        site.configure(
            task_prolog_next=str(site.base / "own-prolog"), task_epilog_next=str(site.base / "own-epilog")
        )

    return install


def ran(site):
    trace = site.base / "trace"
    lines = trace.read_text().splitlines() if trace.exists() else []
    return [line.removeprefix(f"{site.base}/") for line in lines]


@pytest.mark.parametrize("status", [0, 1, 42])
@pytest.mark.parametrize("environment", [{}, {"KSI": "0"}])
def test_job_that_is_not_ours(site, own, status, environment):
    own(status)
    site.mark(999)
    with site.step(901, env=environment) as step:
        prolog = step.prolog()
        assert prolog.status == status
        assert prolog.output == "export SITE_SCRATCH=/scratch/$USER\nprint welcome  to the site\nnoise\n"
        assert step.end_task().status == status
    assert ran(site) == ["own-prolog  901 prolog_task", "own-epilog  901 epilog_task"]


@pytest.mark.parametrize("status", [0, 42])
def test_k8s_job(site, own, status):
    own(status)
    site.mark(901)
    with site.step(901) as step:
        prolog = step.prolog()
        assert prolog.status == status
        assert prolog.exports["SITE_SCRATCH"] == "/scratch/$USER"
        assert "K8S_CLUSTER_API" in prolog.exports
        assert prolog.output.endswith("\nprint welcome  to the site\nnoise\n")
        step.end()
    assert ran(site) == ["own-prolog  901 prolog_task", "own-epilog  901 epilog_task"]
    assert site.leftovers() == []


def test_k8s_job_without_its_cluster_fails_although_the_sites_hook_succeeds(site, own):
    own()
    site.script("kind create", status=1, stderr="xyzzy\n")
    site.mark(901)
    with site.step(901) as step:
        prolog = step.prolog()
        assert prolog.status == 1
        assert "xyzzy" in prolog.said
        step.end()
    assert len(ran(site)) == 2


def test_job_that_slurm_was_asked_about(site, own):
    own(7)
    site.slurm_says({"A": 901, "N": "n1", "f": "(null)"})
    with site.step(901) as step:
        prolog = step.prolog()
    assert (prolog.status, prolog.prints) == (7, ["welcome  to the site"])


def test_broken_interpreter_does_not_keep_the_sites_hook_from_running(site, own):
    own()
    values = {
        "task_prolog_next": str(site.base / "own-prolog"),
        "task_epilog_next": str(site.base / "own-epilog"),
    }
    site.configure(python="/nonexistent", **values)
    with site.step(901) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.prints) == (0, ["welcome  to the site"])
        step.end()
    assert len(ran(site)) == 2
