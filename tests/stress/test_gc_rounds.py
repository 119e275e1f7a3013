"""Rounds of ksi-gc beside hooks, beside each other, on behalf of other nodes, and of a user for himself."""

import json
import os
import subprocess
import sys
import time

import pytest
from fakes.strangers import collect, make_old
from fakes.waiting import wait_until

from ksi_hooks.registry import requests

# Another run of these tests has steps on this machine, too: their jobs must be others.
JOB = 70_000_000 + os.getpid()
ENDED = {"A": JOB, "N": "n1", "T": "CANCELLED", "S": "1700000000"}
RUNNING = {**ENDED, "T": "RUNNING", "S": "1"}


@pytest.fixture
def orphan(site):
    """A cluster whose job has ended and whose slurmstepd was killed."""
    site.mark(JOB)
    with site.step(JOB) as step:
        assert step.prolog().status == 0
        step.kill()
    site.slurm_says(ENDED)
    (record,) = site.records()
    return record


def ksi(site, *words, node="n2"):
    command = [sys.executable, "-I", "-m", "ksi_hooks.cli.main", "--config", str(site.settings_file), *words]
    environment = {"SLURMD_NODENAME": node, "HOME": str(site.home)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("job", [ENDED, RUNNING], ids=["Slurm calls it ended", "Slurm calls it running"])
@pytest.mark.parametrize("stage", ["start", "volume", "container"])
def test_round_while_a_prolog_creates_leaves_it_alone(site, stage, job):
    site.mark(JOB)
    site.script("kind create", delay=1.5, at=stage)
    site.slurm_says(job)
    with site.step(JOB) as step:
        step.start(0)
        wait_until(lambda: site.calls("kind create"))
        done = collect(site, "--verbose")
        assert f"keep ksi-{JOB}" in done.stdout, done
        prolog = step.finish()
        assert prolog.status == 0, prolog
        assert collect(site).stdout == ""
        step.end()
    assert site.leftovers() == []


def test_cluster_claimed_after_the_registry_was_listed_is_not_taken_for_one_without_record(site, orphan):
    """Podman's list is newer than the registry's; here the record is hidden while the registry is listed."""
    program = f"""
import sys
from ksi_hooks.gc import main, round
listed = []
real = round.Registry.of_node
def of_node(self, node, **rest):
    listing = real(self, node, **rest)
    if not listed:
        listed.append(1)
        listing.records.clear()
    return listing
round.Registry.of_node = of_node
sys.exit(main.main(["--config", {str(site.settings_file)!r}, "--node", "n1", "--older-than", "0"]))
"""
    done = subprocess.run([sys.executable, "-I", "-c", program], env={}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done
    assert [r.cluster for r in site.records()] == [orphan.cluster]
    assert len(site.state("container")) == 1


def test_rounds_at_the_same_time(site, orphan):
    command = [sys.executable, "-I", "-m", "ksi_hooks.gc.main", "--config", str(site.settings_file)]
    rounds = [subprocess.Popen([*command, "--node", "n1", "--older-than", "0"], env={}) for _ in range(3)]
    for each in rounds:
        each.wait(60)
    assert collect(site).returncode == 0
    assert site.leftovers() == []
    assert orphan.cluster not in str(site.records())


def test_half_deleted_cluster(site, orphan):
    for file in site.state_dir.glob("store-*/container-*"):
        os.kill(json.loads(file.read_text())["helper"], 9)
        file.unlink()
    assert collect(site).returncode == 0
    assert site.leftovers() == []


def test_record_without_a_cluster(site, orphan):
    for file in site.state_dir.glob("store-*/container-*"):
        os.kill(json.loads(file.read_text())["helper"], 9)
    for file in site.state_dir.glob("store-*/*-*.json"):
        file.unlink()
    assert collect(site).returncode == 0
    assert site.leftovers() == []


def test_torn_record_of_a_cluster_that_is_there(site, orphan):
    """The file is reported in this round; with the cluster it goes, since its owner began it."""
    path = site.registry.path_of("n1", orphan.cluster)
    path.write_bytes(b"")
    make_old(path)
    done = collect(site)
    assert done.returncode == 1
    assert str(path) in done.stderr
    assert site.leftovers() == []
    assert collect(site).returncode == 0


@pytest.mark.parametrize("data", [b"", b'{"version": 1, "clu'])
def test_claim_whose_hook_was_killed_while_it_wrote(site, data):
    site.user_dir().mkdir()  # as the hook did before it claimed
    path = site.registry.path_of("n1", f"ksi-{JOB}-00000")
    path.write_bytes(data)
    make_old(path)
    site.slurm_says(RUNNING)
    assert collect(site).returncode == 1
    assert path.exists()
    site.slurm_says(ENDED)
    assert "no record" in collect(site).stdout
    assert site.leftovers() == []
    assert not path.exists()


def test_user_collects_for_himself(site, tenant):
    site.mark(JOB)
    with site.step(JOB, uid=tenant.uid, env=tenant.environment) as step:
        assert step.prolog().status == 0
        step.kill()
    site.slurm_says(ENDED)
    command = [site.tenant_python, "-I", "-m", "ksi_hooks.gc.main", "--config", str(site.settings_file)]
    for options, status in ((["--user", "root"], 2), ([], 0)):
        done = subprocess.run(
            [*command, "--node", "n1", "--older-than", "0", *options],
            env=tenant.environment,
            user=tenant.uid,
            group=tenant.uid,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == status, done
    assert site.leftovers() == []


def test_deletion_asked_for_on_another_node_is_carried_out_at_home(site, orphan):
    site.slurm_says(RUNNING)
    listed = ksi(site, "list", "--all", "--json")
    assert [c["cluster"] for c in json.loads(listed.stdout)["clusters"]] == [orphan.cluster]
    asked = ksi(site, "delete", orphan.cluster)
    assert (asked.returncode, asked.stderr) == (0, ""), asked
    assert f"requested the deletion of {orphan.cluster}: ksi-gc on n1" in asked.stdout
    assert len(site.records()) == 1
    away = collect(site, "--node", "n2")
    assert (away.returncode, len(site.records())) == (0, 1)
    done = collect(site)
    assert "its deletion was requested" in done.stdout
    assert site.leftovers() == []
    assert requests.noted(site.registry, "n1") == set()


def test_user_cannot_ask_for_the_deletion_of_anothers(site, tenant, orphan):
    command = [site.tenant_python, "-I", "-m", "ksi_hooks.cli.main", "--config", str(site.settings_file)]
    done = subprocess.run(
        [*command, "delete", orphan.cluster],
        env={"SLURMD_NODENAME": "n2"},
        user=tenant.uid,
        group=tenant.uid,
        extra_groups=[],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "belongs to root" in done.stderr
    assert not list((site.registry.top / "n1").glob("*.delete"))


def test_slurm_that_does_not_answer_is_status_3_and_a_failure_1(site, orphan):
    site.script("squeue", status=1, stderr="slurm_load_jobs error: Socket timed out\n")
    done = collect(site, "--json")
    assert done.returncode == 3
    (action,) = json.loads(done.stdout)["actions"]
    assert (action["verdict"], action["deleted"]) == ("unknown", False)
    site.registry.path_of("n1", "ksi-1-00000").write_text("{")
    time.sleep(0.2)
    assert collect(site).returncode == 1
