"""Deleting: quick, in the owner's store, looked at again, and never believed without proof."""

import json
import os
import shutil
import signal
import stat
import subprocess
import time

import pytest
from fakes.waiting import wait_until

from ksi_hooks import proc


@pytest.fixture
def job(site):
    """A k8s job with its cluster."""
    site.mark(801)
    with site.step(801) as step:
        assert step.prolog().status == 0
        yield step


def test_removal_has_no_stop_grace_and_whole_names(site, job):
    (record,) = site.records()
    job.end()
    (removal,) = site.calls("podman rm")
    assert removal.argv == ["rm", "--force", "--time", "0", "--volumes", record.node_container]
    assert [c.argv[:3] for c in site.calls("podman volume rm")] == [["volume", "rm", "--force"]]
    assert site.leftovers() == []


def test_everything_is_looked_for_again_after_the_removal(site, job):
    job.end()
    words = [" ".join(c.argv[:2]) for c in site.calls("podman")]
    last_removal = max(i for i, word in enumerate(words) if word.startswith(("rm", "volume rm")))
    assert "ps --all" in words[last_removal:]
    assert "volume ls" in words[last_removal:]


def test_kb_17c_what_a_removal_left_is_removed_again(site, job):
    site.script("podman rm", status=0, times=1)
    site.script("podman volume rm", status=0, times=1)
    job.end()
    assert len(site.calls("podman rm")) == 2
    assert site.leftovers() == []


def test_kb_23a_what_is_still_listed_is_kept_on_record(site, job):
    site.configure(epilog_timeout=1)
    site.script("podman rm", status=0)
    assert job.end_task().status == 0
    (record,) = site.records()
    assert record.state == "deleting"
    assert len(site.state("container")) == 1


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        ("podman ps", {"status": 125}),
        ("podman volume ls", {"status": 0, "stdout": "{not json"}),
        ("podman ps", {"delay": 60}),
    ],
)
def test_kb_23b_listing_that_fails_proves_nothing(site, job, call, answer):
    site.configure(epilog_timeout=1)
    site.script(call, **answer)
    epilog = job.end_task()
    assert (epilog.status, epilog.seconds < 8) == (0, True)
    (record,) = site.records()
    assert record.state == "deleting"


def test_podman_that_is_gone_proves_nothing(site, job):
    (site.tools_dir / "podman").rename(site.base / "podman")
    job.end()
    (record,) = site.records()
    assert record.state == "deleting"
    (site.base / "podman").rename(site.tools_dir / "podman")


def test_kb_23c_proven_to_be_gone(site, job):
    (container,) = site.state("container")
    os.kill(container["helper"], signal.SIGKILL)
    for file in site.state_dir.glob("store-*/container-*"):
        file.unlink()
    for file in site.state_dir.glob("store-*/volume-*"):
        file.unlink()
    job.end()
    assert site.records() == []
    assert site.calls("podman rm") == []


def test_deletion_within_its_budget_although_podman_hangs(site, job):
    site.configure(epilog_timeout=2)
    site.script("podman rm", delay=60)
    started = time.monotonic()
    assert job.end_task().status == 0
    assert time.monotonic() - started < 10
    (record,) = site.records()
    assert record.state == "deleting"


def test_helper_that_does_not_go_is_ended(site, job):
    """Podman says that the container is gone, its helper lives on."""
    (container,) = site.state("container")
    file = next(site.state_dir.glob("store-*/container-*"))
    file.write_text(json.dumps({**container, "helper": 0}))
    job.end()
    assert site.leftovers() == []
    assert proc.find(container["helper"]) is None


def test_clusters_of_others_and_of_other_jobs_stay(site, job):
    (record,) = site.records()
    store = next(site.state_dir.glob("store-*"))
    strangers = ("ksi-801-00000-control-plane", f"{record.node_container}2", "dev-control-plane")
    for name in strangers:
        labels = {"io.x-k8s.kind.cluster": name.removesuffix("-control-plane")}
        other = {"Names": [name], "Labels": labels, "Created": 1, "State": "running", "Id": "1", "Image": "i"}
        (store / f"container-{name}.json").write_text(json.dumps({**other, "helper": 0}))
    job.end()
    assert sorted(c["Names"][0] for c in site.state("container")) == sorted(strangers)
    assert len(site.state("network")) == 1  # still in use
    assert site.records() == []


def test_network_goes_with_the_users_last_cluster(site, job):
    site.mark(802)
    with site.step(802) as other:
        assert other.prolog().status == 0
        job.end()
        assert len(site.state("network")) == 1
        other.end()
    assert site.state("network") == []
    assert site.leftovers() == []


def test_volume_without_container_of_a_creation_that_was_killed(site):
    site.mark(801)
    site.script("kind create", delay=300, at="volume")
    with site.step(801) as step:
        step.start(0)
        wait_until(lambda: site.state("volume"))
        step.signal_hook(signal.SIGKILL)
        step.finish()
        assert site.state("container") == []
        step.end()
    assert site.leftovers() == []


def test_kb_39_run_directory_in_the_record_is_not_believed(site, job):
    """The owner can write anything into his record; only what carries the cluster's name is removed."""
    victim = site.base / "victim"
    victim.mkdir()
    (victim / "file").touch()
    (record,) = site.records()
    path = site.registry.path_of("n1", record.cluster)
    fields = json.loads(path.read_text())
    path.write_text(json.dumps({**fields, "run_dir": str(victim)}))
    job.end()
    assert (victim / "file").exists()


def test_kb_34_torn_record_neighbour_is_reported_not_removed(site, job):
    torn = site.registry.path_of("n1", "ksi-9-00000")
    torn.write_text('{"version": 1, "clu')
    job.end()
    assert torn.exists()
    assert site.registry.of_node("n1").records == []
    assert len(site.registry.of_node("n1").problems) == 1


@pytest.mark.parametrize("plant", ["symlink", "fifo", "directory", "huge", "hard link"])
def test_kb_39_hostile_neighbours_disturb_nobody(site, plant):
    victim = site.base / "victim"
    victim.write_text("precious")
    path = site.registry.path_of("n1", "ksi-801-00000")
    make = {
        "symlink": lambda: path.symlink_to(victim),
        "fifo": lambda: os.mkfifo(path),
        "directory": path.mkdir,
        "huge": lambda: path.write_bytes(b"x" * 50_000_000),
        "hard link": lambda: path.hardlink_to(victim),
    }
    make[plant]()
    site.mark(801)
    with site.step(801) as step:
        assert step.prolog().status == 0
        step.end()
    assert victim.read_text() == "precious"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o644
    assert site.state("container") == []
    assert not [c for c in site.calls() if "ksi-801-00000" in str(c)]


def test_monitor_of_a_container_that_never_started_is_ended(site, job, tmp_path):
    """Podman marks no conmon; one that waits for a killed podman run would keep the port for ever."""
    (record,) = site.records()
    program = tmp_path / "conmon"
    shutil.copy("/bin/sh", program)
    arguments = ["-c", "while :; do sleep 0.1; done", "-n"]
    own = subprocess.Popen([program, *arguments, record.node_container], start_new_session=True)
    other = subprocess.Popen([program, *arguments, "ksi-1-00000-control-plane"], start_new_session=True)
    try:
        job.end()
        assert own.wait(10) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        for child in (own, other):
            child.kill()
            child.wait()
