"""Locks of every kind with real processes: never two at once, and what a dead holder leaves stops nobody."""

import errno
import fcntl
import json
import os

import pytest
from fakes.strangers import make_old

from ksi_hooks import locks
from ksi_hooks.cli import main as command
from ksi_hooks.doctor import lock_trial, storage
from ksi_hooks.doctor.finding import Level
from ksi_hooks.errors import KsiError
from ksi_hooks.registry.store import Registry

NFS = "server:/export /shared nfs4 rw,vers=4.2,{} 0 0\n/dev/sda1 / ext4 rw 0 0\n"


@pytest.mark.parametrize("kind", lock_trial.KINDS)
def test_processes_never_hold_a_lock_at_the_same_time(tmp_path, kind):
    trial = lock_trial.attempt(tmp_path, kind)
    assert trial.excludes, trial
    assert trial.holds == lock_trial.PROCESSES * lock_trial.TURNS
    assert list(tmp_path.iterdir()) == []


def test_lock_that_does_not_exclude_is_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    trial = lock_trial.attempt(tmp_path, "flock")
    assert not trial.excludes
    assert trial.overlaps > 0


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_file_system_without_flock_gets_the_next_kind_and_only_from_the_trial(tmp_path, monkeypatch, number):
    def refuse(*_args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert "without flock locks" in lock_trial.attempt(tmp_path, "flock").problem
    assert lock_trial.resolve(tmp_path, risky=[]).kind == "strict"
    registry = Registry(tmp_path / "registry", 5)
    registry.prepare(["n1"])
    with pytest.raises(KsiError, match="without flock locks"), registry.locked("n1"):
        pass


def test_mount_that_keeps_locks_on_one_node_gets_no_flock(tmp_path):
    assert lock_trial.resolve(tmp_path, risky=["local_lock=all"]).kind == "strict"
    assert lock_trial.resolve(tmp_path, risky=[]).kind == "flock"


@pytest.mark.parametrize(
    ("options", "risky"),
    [
        ("local_lock=none", []),
        ("local_lock=flock", ["local_lock=flock"]),
        ("local_lock=all,nolock", ["local_lock=all", "nolock"]),
        ("localflock", ["localflock"]),
        ("noflock", ["noflock"]),
        ("flock", []),
    ],
)
def test_kb_31_mount_options_that_keep_locks_on_one_node(tmp_path, options, risky):
    assert storage.risky_options(tmp_path / "x", NFS.format("nolock")) == []
    shared = type(tmp_path)("/shared/ksi")
    assert storage.risky_options(shared, NFS.format(options)) == risky
    found = storage.locks([], used="flock", risky=risky)
    assert [f.level for f in found] == [Level.WARNING] * bool(risky)


@pytest.mark.parametrize("kind", ["soft", "strict"])
def test_lock_of_a_dead_host_holds_up_once_and_is_removed(tmp_path, kind):
    registry = Registry(tmp_path / "registry", 0.2, kind)
    registry.prepare(["n1"])
    path = registry.lock_file("n1")
    child = os.fork()
    if child == 0:
        with registry.locked("n1"):
            os._exit(0)  # as SIGKILL: nothing is released
    os.waitpid(child, 0)
    for part in (path, *path.with_name(f"{path.name}.filelock").rglob("*")):
        if part.exists() and not part.is_dir():
            part.write_text(part.read_text().replace(os.uname().nodename, "dead-host"))
            make_old(part)
    with registry.locked("n1"):  # bounded, then without
        pass
    assert locks.remove_stale(path, kind, older_than=60)
    with locks.hold(path, timeout=1, kind=kind):
        pass


@pytest.mark.parametrize("kind", lock_trial.KINDS)
def test_registry_works_with_every_kind(site, kind):
    site.configure(lock=kind)
    Registry.of(site.settings).prepare(["n1"])
    site.mark(4301)
    with site.step(4301) as step:
        assert step.prolog().status == 0
        step.end()
    assert site.leftovers() == []


def test_doctor_tries_every_kind(site, capsys):
    assert command.run(["--config", str(site.settings_file), "doctor", "--lock"]) == 0
    out = capsys.readouterr().out
    assert "lock: flock (in use)" in out
    assert out.count("never two at once") == 3


def test_doctor_fails_when_the_kind_in_use_does_not_work(site, capsys, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    assert command.run(["--config", str(site.settings_file), "doctor", "--lock", "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    (error,) = [f for f in findings if f["level"] == "error"]
    assert "overlapped" in error["seen"]
    assert error["remedy"] == "set lock: strict on every node"


def test_install_settles_the_kind_once(tmp_path, monkeypatch, capsys):
    from ksi_hooks.cli import install

    monkeypatch.setattr(install, "_require_package", lambda site, tools: None)
    (tmp_path / "shared").mkdir()
    options = ["--prefix", str(tmp_path / "site"), "--nodes", "n1"]
    settings = ["--set", f"registry_dir={tmp_path}/shared/ksi", "--set", f"run_dir={tmp_path}/run/%u"]
    assert command.run(["install", *options, *settings]) == 0
    assert f"lock: flock (4 processes tried it in {tmp_path}/shared)" in capsys.readouterr().out
    text = (tmp_path / "site/etc/ksi/ksi.yaml").read_text()
    assert "\nlock: flock\n" in text
    monkeypatch.setattr(lock_trial, "resolve", lambda *_a, **_k: pytest.fail("tried again"))
    assert command.run(["install", *options]) == 0
