"""Locks: bounded waits, errors that name the file, never another kind in silence."""

import errno
import fcntl
import os
import time

import filelock
import pytest

from ksi_hooks import locks
from ksi_hooks.errors import KsiError, LockTimeout


@pytest.mark.parametrize("kind", ["flock", "soft", "strict"])
def test_kb_31_wait_is_bounded_and_names_the_file(tmp_path, kind):
    path = tmp_path / ".lock"
    started = time.monotonic()
    with (
        locks.hold(path, timeout=1, kind=kind),
        pytest.raises(LockTimeout, match=r"waited 0\.2 s") as caught,
        locks.hold(path, timeout=0.2, kind=kind),
    ):
        pass
    assert str(path) in str(caught.value)
    assert time.monotonic() - started < 3
    with locks.hold(path, timeout=0.2, kind=kind):
        pass


def test_kb_31_holder_is_named(tmp_path):
    with (tmp_path / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with (
            pytest.raises(LockTimeout, match=f"process {os.getpid()}"),
            locks.hold(tmp_path / ".lock", timeout=0.1),
        ):
            pass


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, 524])
def test_kb_31_file_system_without_locks_is_an_error_at_once(tmp_path, monkeypatch, number):
    def fail(*_args):
        raise OSError(number, "no locks")

    monkeypatch.setattr(fcntl, "flock", fail)
    started = time.monotonic()
    with pytest.raises(KsiError) as caught, locks.hold(tmp_path / ".lock", timeout=30):
        pass
    assert time.monotonic() - started < 2
    assert str(tmp_path / ".lock") in str(caught.value)
    assert not isinstance(caught.value, LockTimeout)


def test_lock_file_stays_with_its_mode(tmp_path):
    path = tmp_path / ".lock"
    path.touch()
    path.chmod(0o666)
    before = path.stat()
    for _ in range(2):
        with locks.hold(path, timeout=1):
            pass
    assert (path.stat().st_ino, path.stat().st_mode) == (before.st_ino, before.st_mode)


def test_timeout_of_the_body_is_not_taken_for_the_locks(tmp_path):
    with pytest.raises(filelock.Timeout), locks.hold(tmp_path / ".lock", timeout=1):
        raise filelock.Timeout("inner")


def test_directory_that_is_missing_is_not_made(tmp_path):
    with pytest.raises(KsiError), locks.hold(tmp_path / "gone" / ".lock", timeout=1):
        pass
    assert list(tmp_path.iterdir()) == []
