"""ksi-gc: what no hook deleted goes, what may live stays, and the exit status tells which."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

# Other runs of these tests on this machine have a slurmstepd too; it must not be of the same job.
JOB = 10_000_000 + os.getpid()
ENDED = {"A": JOB, "N": "n1", "T": "COMPLETED", "S": "1700000000"}
RUNNING = {**ENDED, "T": "RUNNING", "S": "1"}


@pytest.fixture
def collect(site):
    """Run ksi-gc on node n1; without a grace, since ages are tested elsewhere."""

    def run(*options, grace="0", node="n1", python=sys.executable):
        command = [python, "-I", "-m", "ksi_hooks.gc.main", "--config", str(site.settings_file)]
        return subprocess.run(
            [*command, "--node", node, "--older-than", grace, *options],
            env={},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


@pytest.fixture
def orphan(site):
    """A cluster whose slurmstepd was killed, so that no epilog ran."""
    site.mark(JOB)
    with site.step(JOB) as step:
        assert step.prolog().status == 0
        step.kill()
    (record,) = site.records()
    return record


def test_ended_jobs_cluster_is_deleted(site, orphan, collect):
    site.slurm_says(ENDED)
    done = collect()
    assert done.returncode == 0, done
    assert done.stdout == f"deleted {orphan.cluster} of user {orphan.uid} (the job has ended)\n"
    assert site.leftovers() == []
    assert (collect().returncode, collect().stdout) == (0, "")


def test_kb_38c_running_jobs_cluster_stays_whatever_its_age(site, orphan, collect):
    site.registry.update(dataclasses.replace(orphan, created=orphan.created - 40 * 86400))
    site.slurm_says(RUNNING)
    assert collect().returncode == 0
    assert site.records()[0].cluster == orphan.cluster
    assert len(site.state("container")) == 1
    assert site.calls("podman rm") == []


@pytest.mark.parametrize(
    "fault",
    [
        {
            "status": 1,
            "stderr": "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
        },
        {"status": 0},
        {"status": 0, "stdout": "slurm_load_jobs error: Socket timed out\n"},
    ],
)
def test_kb_35_silence_of_slurm_deletes_nothing(site, orphan, collect, fault):
    site.script("squeue", **fault)
    done = collect()
    assert done.returncode == 3, done
    assert "unknown" in done.stdout
    assert len(site.state("container")) == 1


def test_kb_35_job_that_slurm_has_forgotten_is_gone(site, orphan, collect):
    site.slurm_says()
    assert collect().returncode == 0
    assert site.leftovers() == []


def test_grace_is_kept(site, orphan, collect):
    site.slurm_says(ENDED)
    assert collect(grace="600").returncode == 0
    assert len(site.state("container")) == 1


def test_dry_run_tells_and_does_nothing(site, orphan, collect):
    site.slurm_says(ENDED)
    done = collect("--dry-run")
    assert f"would delete {orphan.cluster}" in done.stdout
    assert site.records() == [orphan]
    assert len(site.state("container")) == 1


def test_json_is_one_document(site, orphan, collect):
    site.slurm_says(ENDED)
    document = json.loads(collect("--json").stdout)
    assert document["problems"] == []
    assert [(a["cluster"], a["verdict"], a["deleted"]) for a in document["actions"]] == [
        (orphan.cluster, "delete", True)
    ]


def test_kb_38f_only_this_nodes_records_are_acted_on(site, orphan, collect):
    site.slurm_says(ENDED)
    assert collect(node="n2").returncode == 0
    assert site.records() == [orphan]


def test_never_while_a_slurmstepd_of_the_job_lives(site, collect):
    site.mark(JOB)
    site.slurm_says(ENDED)
    with site.step(JOB) as step:
        step.prolog()
        assert collect().returncode == 0
        assert len(site.state("container")) == 1
        step.end()
    assert site.leftovers() == []


def test_deletion_that_cannot_be_checked_is_a_failure(site, orphan, collect):
    site.configure(gc_tenant_timeout=1)
    site.slurm_says(ENDED)
    site.script("podman rm", status=0)
    done = collect()
    assert done.returncode == 1
    assert f"could not delete {orphan.cluster}" in done.stdout
    assert [r.state for r in site.records()] == ["deleting"]


def test_cluster_that_no_record_knows(site, orphan, collect):
    site.registry.remove(orphan)
    site.slurm_says(ENDED)
    assert "no record" in collect().stdout
    assert [left for left in site.leftovers() if "log" not in left] == []


def test_kb_34_torn_record_is_reported_and_its_neighbour_processed(site, orphan, collect):
    torn = site.registry.path_of("n1", "ksi-9-00000")
    torn.write_text('{"version": 1, "clu')
    site.slurm_says(ENDED)
    done = collect()
    assert done.returncode == 1
    assert str(torn) in done.stderr
    assert site.state("container") == []


def test_kb_39_hostile_records_reach_no_program(site, orphan, collect):
    for number, name in enumerate(("--all", "a;touch pwn", "x y")):
        (site.registry.top / "n1" / f"{name}.json").write_bytes(orphan.to_bytes())
        fields = json.loads(orphan.to_bytes())
        path = site.registry.path_of("n1", f"ksi-{JOB}-0000{number}")
        path.write_text(json.dumps({**fields, "cluster": name}))
    site.slurm_says(ENDED)
    done = collect()
    assert done.returncode == 1
    assert site.state("container") == []
    assert not [
        c for c in site.calls() if any(n in str(c) for n in ("--all;", "touch", "x y", f"ksi-{JOB}-0000"))
    ]
    assert not list(site.base.rglob("pwn"))


def test_broken_settings_are_78_and_bad_usage_2(site, collect):
    assert collect("--no-such-option").returncode == 2
    site.settings_file.write_text("feature: [")
    done = collect()
    assert done.returncode == 78
    assert f"{site.settings_file}: line 1" in done.stderr


def test_tenants_cluster_is_deleted_as_the_tenant(site, tenant, collect):
    site.mark(JOB)
    with site.step(JOB, uid=tenant.uid, env=tenant.environment) as step:
        assert step.prolog().status == 0
        step.kill()
    site.slurm_says(ENDED)
    done = collect(python=site.tenant_python)
    assert done.returncode == 0, done
    assert f"of user {tenant.uid}" in done.stdout
    assert site.leftovers() == []
    assert len(site.calls("podman rm")) == 1
    roots = site.state_dir / "store-0" / "calls.jsonl"
    assert not roots.exists() or '"rm"' not in roots.read_text()
