"""Hostile files in the registry and on the node: they hurt nobody else, steer nothing and keep nothing."""

import fcntl
import json
import os
import stat

import pytest
from fakes.strangers import Program, act_as, collect, make_old

from ksi_hooks import proc
from ksi_hooks.environment import CLUSTER_MARK
from ksi_hooks.registry import requests
from ksi_hooks.registry.store import Registry

# Another run of these tests has steps on this machine, too: their jobs must be others.
JOB = 50_000_000 + os.getpid()
ENDED = {"A": JOB, "N": "n1", "T": "CANCELLED", "S": "1700000000"}


@pytest.fixture
def orphan(site, tenant):
    """A tenant's cluster whose job has ended and whose slurmstepd was killed."""
    site.mark(JOB)
    with site.step(JOB, uid=tenant.uid, env=tenant.environment) as step:
        assert step.prolog().status == 0
        step.kill()
    site.slurm_says(ENDED)
    (record,) = site.records()
    return record


def plant(site, record, uid, name="ksi-1-00000", umask=0o022, mode=0o644, **fields):
    """Write a record as a user, with whatever he likes in it."""
    path = site.registry.path_of("n1", name)
    text = json.dumps({**json.loads(record.to_bytes()), "cluster": name, "job_id": 1, **fields})

    def write():
        path.write_text(text)
        path.chmod(mode)

    act_as(uid, write, umask)
    return path


def gone(site, record):
    """The victim's cluster and record do not exist any more; strangers' files may."""
    left = [c for c in site.state("container") if c["Names"] == [record.node_container]]
    return not left and not site.registry.path_of("n1", record.cluster).exists()


def hostile_files(room, victim):
    """Everything that a name in the registry can be made of."""

    def path(number):
        return room / f"ksi-1-0000{number}.json"

    path(0).symlink_to("/etc/shadow")
    path(1).symlink_to(victim)
    os.mkfifo(path(2))
    path(3).mkdir()
    with path(4).open("wb") as file:
        file.truncate(2**30)
    (room / "own").write_text("{}")
    path(5).hardlink_to(room / "own")
    path(6).write_bytes(b"[" * 16000)
    path(7).write_text('{"version": 99}')
    path(8).write_text('{"version": 1, "created": NaN, "port": Infinity}')
    path(9).write_bytes(b"\xff\xfe\0")
    for name in ("--all.json", "..json", "a;touch pwn.json", "ksi-1-0000a.json\n", "ksi-٣-00000.json"):
        (room / name).write_text("{}")


def test_kb_39_nothing_that_a_name_can_be_made_of_stops_the_round(site, other_tenant, orphan):
    room = site.registry.top / "n1"
    victim = site.registry.path_of("n1", orphan.cluster)
    act_as(other_tenant.uid, lambda: hostile_files(room, victim))
    leased = room / "ksi-1-000aa.json"
    act_as(other_tenant.uid, lambda: leased.write_text("{}"))
    lease = (
        f"import fcntl; f = open({str(leased)!r}, 'r+'); fcntl.fcntl(f, {fcntl.F_SETLEASE}, {fcntl.F_WRLCK})"
    )
    with Program(site.tenant_python, other_tenant.uid, lease):
        done = collect(site, python=site.tenant_python)
    assert gone(site, orphan), done
    assert done.returncode == 1  # the files are reported
    assert "ksi-1-00004" in done.stderr
    called = {log.parent.name for log in site.state_dir.glob("store-*/calls.jsonl")}
    assert called <= {f"store-{tenant}" for tenant in (orphan.uid, other_tenant.uid, 0)}
    assert not [c for c in site.calls() if "ksi-1-" in str(c) or "pwn" in str(c)]


def test_kb_39_record_that_names_another_tenants_things(site, other_tenant, orphan):
    site.slurm_says(ENDED, {**ENDED, "A": 1})
    act_as(other_tenant.uid, lambda: (site.registry.top / "secrets-ksi-1-00000").mkdir())
    plant(site, orphan, other_tenant.uid, run_dir="/etc")
    plant(site, orphan, other_tenant.uid, "ksi-1-00001", run_dir=str(orphan.run_dir))
    plant(site, orphan, other_tenant.uid, "ksi-1-00002", node="n2")
    victims = sorted(f.name for f in orphan.run_dir.iterdir())
    done = collect(site, "--user", str(other_tenant.uid), python=site.tenant_python)
    assert done.returncode == 0, done
    assert sorted(f.name for f in orphan.run_dir.iterdir()) == victims
    assert [c["Names"] for c in site.state("container")] == [[orphan.node_container]]
    assert proc.find(site.state("container")[0]["helper"]) is not None
    removals = (site.state_dir / "store-0" / "calls.jsonl", site.state_dir / f"store-{orphan.uid}")
    assert not removals[0].exists() or '"rm"' not in removals[0].read_text()
    assert [r.cluster for r in site.registry.of_node("n1").records] == [orphan.cluster]


@pytest.mark.parametrize(
    "fields",
    [
        {"changed": 9e10, "created": 9e10},
        {"held_by_creator": True, "creator": {"pid": 1, "start": 0}},
        {"state": "creating", "creator": {"pid": 1, "start": 0}},
        {"state": "deleting"},
    ],
    ids=["born in the future", "held by init", "made by init", "deleting for ever"],
)
def test_made_up_record_does_not_stay(site, other_tenant, orphan, fields):
    site.slurm_says(ENDED, {**ENDED, "A": 1})
    path = plant(site, orphan, other_tenant.uid, **fields)
    done = collect(site, python=site.tenant_python, grace="0")
    assert not path.exists(), done
    assert done.returncode == 0, done


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_record_that_anybody_can_write_is_nobodys_word(site, other_tenant, orphan, umask):
    mode = 0o666 & ~umask | 0o022
    path = plant(site, orphan, other_tenant.uid, umask=umask, mode=mode)
    done = collect(site, python=site.tenant_python)
    assert "others than its owner can write" in done.stderr
    assert path.exists()
    assert gone(site, orphan)


def test_lock_file_under_a_records_name_is_no_record_of_roots(site, other_tenant, orphan):
    """Everybody may write into the lock, so everybody may give it a second name."""
    lock, name = site.registry.top / "n1" / ".lock", site.registry.path_of("n1", "ksi-1-00000")
    text = json.dumps({**json.loads(orphan.to_bytes()), "cluster": "ksi-1-00000", "job_id": 1})
    act_as(other_tenant.uid, lambda: (lock.write_text(text), name.hardlink_to(lock)))
    assert name.stat().st_uid == 0
    assert [r.cluster for r in site.registry.of_node("n1").records] == [orphan.cluster]


def test_forged_requests_delete_nothing(site, other_tenant, orphan):
    site.slurm_says({**ENDED, "T": "RUNNING", "S": "1"})
    room, lock = site.registry.top / "n1", site.registry.top / "n1" / ".lock"

    def forge():
        (room / f"{orphan.cluster}.00000000.delete").touch()
        (room / f"{orphan.cluster}.00000001.delete").hardlink_to(lock)
        (room / f"{orphan.cluster}.00000002.delete").symlink_to("/etc/passwd")
        (room / f"{orphan.cluster}.00000003.delete").mkdir()

    act_as(other_tenant.uid, forge)
    assert requests.granted(site.registry, [orphan]) == frozenset()
    assert collect(site, python=site.tenant_python).returncode == 0
    assert not gone(site, orphan)
    act_as(orphan.uid, lambda: requests.request(Registry(site.registry.top, 5), orphan))
    assert collect(site, python=site.tenant_python).returncode == 0
    assert gone(site, orphan)
    assert list(room.glob("*.delete")) == [room / f"{orphan.cluster}.00000003.delete"]


def test_process_that_calls_itself_slurmstepd_keeps_nobodys_cluster(site, other_tenant, orphan):
    with Program(site.tenant_python, other_tenant.uid, title=f"slurmstepd: [{JOB}.batch]"):
        done = collect(site, python=site.tenant_python)
    assert gone(site, orphan), done


def test_strangers_process_with_the_mark_is_neither_killed_nor_waited_for(site, other_tenant):
    """Root's own cluster: root could see and kill every process of the node."""
    site.mark(JOB)
    with site.step(JOB) as step:
        assert step.prolog().status == 0
        (record,) = site.records()
        mark = {CLUSTER_MARK: record.cluster, "KSI_TEST_KILL_AT": "marked"}
        with Program(site.tenant_python, other_tenant.uid, env=mark) as stranger:
            step.end()
            assert site.records() == []
            assert stranger.lives


def test_names_that_tenants_took_first_are_taken_back(site, tenant):
    """Root prepares the registry for new nodes where a tenant waits with links to files of root's."""
    victim = site.base / "victim"
    victim.mkdir(mode=0o755)
    top = site.registry.top

    def take():
        (top / "n7").symlink_to(victim)
        (top / "n8").mkdir()
        (top / "n8" / "file").touch()
        (top / "n9").touch()

    act_as(tenant.uid, take)
    site.registry.prepare(["n7", "n8", "n9"])
    assert stat.S_IMODE(victim.stat().st_mode) == 0o755
    assert list(victim.iterdir()) == []
    for name in ("n7", "n8", "n9"):
        status = (top / name).lstat()
        assert (stat.S_ISDIR(status.st_mode), status.st_uid) == (True, 0)
        assert [f.name for f in (top / name).iterdir()] == [".lock"]


def test_run_directory_that_a_stranger_took_is_taken_back(site, tenant, other_tenant):
    stolen = site.user_dir(tenant.uid)
    act_as(other_tenant.uid, lambda: (stolen.mkdir(), (stolen / "trap").symlink_to("/etc")))
    assert collect(site, python=site.tenant_python).returncode == 0
    site.mark(JOB)
    with site.step(JOB, uid=tenant.uid, env=tenant.environment) as step:
        assert step.prolog().status == 0
        step.end()
    assert stolen.stat().st_uid == tenant.uid


def test_soft_lock_that_a_stranger_keeps_is_removed_by_root(site, tenant, other_tenant):
    site.configure(lock="soft", lock_timeout=0.3, python=site.tenant_python)
    lock = site.registry.top / "n1" / ".lock-soft"
    act_as(other_tenant.uid, lambda: (lock.touch(), make_old(lock)))
    site.mark(JOB)
    with site.step(JOB, uid=tenant.uid, env=tenant.environment) as step:
        assert step.prolog().status == 0
        step.end()
    assert lock.exists()
    assert collect(site, python=site.tenant_python).returncode == 0
    assert not lock.exists()


def test_tenant_whose_podman_hangs_does_not_stop_the_others(site, other_tenant, orphan):
    site.configure(gc_tenant_timeout=2, python=site.tenant_python)
    podman = site.tools_dir / "podman"
    podman.rename(site.base / "podman")
    podman.write_text(
        f'#!/bin/sh\n[ "$(/usr/bin/id -u)" = {other_tenant.uid} ] && exec /bin/sleep 98.7\n'
        f'exec {site.tenant_python} -IS -c "import sys; sys.argv[0] = {str(podman)!r}; '
        f'sys.path.insert(0, {str(site.base)!r}); import programs; programs.main()" "$@"\n'
    )
    podman.chmod(0o755)
    act_as(other_tenant.uid, lambda: (site.user_dir(other_tenant.uid) / "jobs" / "7").mkdir(parents=True))
    done = collect(site, python=site.tenant_python)
    assert done.returncode == 1
    assert f"user {other_tenant.uid}" in done.stderr
    assert gone(site, orphan), done
    assert not [p for p in proc.pids() if proc.title_of(p) == "/bin/sleep 98.7"]
