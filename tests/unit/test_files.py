"""Files in directories that strangers can write to."""

import errno
import os
import stat

import pytest

from ksi_hooks import files
from ksi_hooks.errors import KsiError


def test_read(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)
    content = files.read(path, limit=10)
    assert (content.data, content.uid) == (b"x" * 10, os.getuid())


def test_kb_39_link_is_refused_and_its_target_unharmed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / "link"
    link.symlink_to(victim)
    with pytest.raises(KsiError, match="symbolic link refused"):
        files.read(link, limit=100)
    with pytest.raises(FileExistsError):
        files.create(link, b"x", mode=0o600)
    files.replace(link, b"x", mode=0o600)
    assert victim.read_text() == "precious"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "not a regular file"),
        (lambda path: path.write_bytes(b"x" * 101), "larger than 100 bytes"),
        (lambda path: os.mknod(path, stat.S_IFSOCK | 0o600), "not a regular file"),
    ],
)
def test_kb_39_what_is_no_small_file(tmp_path, make, message):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(KsiError, match=message):
        files.read(path, limit=100)


def test_kb_39_hard_link_is_refused(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "file").hardlink_to(tmp_path / "victim")
    with pytest.raises(KsiError, match="hard link"):
        files.read(tmp_path / "file", limit=100)


def test_kb_34_stale_handle_is_tried_again(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_text("x")
    real, failures = os.open, [errno.ESTALE, errno.ESTALE]

    def flaky(*args, **kwargs):
        if failures:
            raise OSError(failures.pop(), "stale")
        return real(*args, **kwargs)

    monkeypatch.setattr(os, "open", flaky)
    assert files.read(path, limit=10).data == b"x"


def test_kb_34_stale_handle_that_stays_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "NETWORK_RETRY_SECONDS", 0.1)

    def stale(*_args, **_kwargs):
        raise OSError(errno.ESTALE, "stale")

    monkeypatch.setattr(os, "open", stale)
    with pytest.raises(OSError, match="stale"):
        files.read(tmp_path / "file", limit=10)


@pytest.mark.parametrize("write", [files.create, files.replace])
@pytest.mark.parametrize("fault", ["write", "fsync", "fchmod"])
def test_kb_34_failed_write_leaves_nothing(tmp_path, monkeypatch, write, fault):
    def fail(*_args):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, fault, fail)
    with pytest.raises(OSError, match="full"):
        write(tmp_path / "file", b"x", mode=0o600)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_mode_is_what_was_asked_for(tmp_path, umask):
    before = os.umask(umask)
    try:
        files.create(tmp_path / "a", b"x", mode=0o644)
        files.replace(tmp_path / "b", b"x", mode=0o600)
        files.private_dir(tmp_path / "c")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(p.stat().st_mode) for p in sorted(tmp_path.iterdir())] == [0o644, 0o600, 0o700]


def test_secret_is_never_readable_for_a_moment(tmp_path, monkeypatch):
    real, modes = os.write, []

    def watch(descriptor, data):
        modes.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", watch)
    before = os.umask(0)
    try:
        files.replace(tmp_path / "token", b"secret", mode=0o600)
    finally:
        os.umask(before)
    assert modes == [0o600]


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, bytes(data[:3])))
    files.create(tmp_path / "file", b"0123456789", mode=0o600)
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_private_dir_of_a_stranger(tmp_path, monkeypatch):
    (tmp_path / "dir").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(KsiError, match="not a directory of user 4242"):
        files.private_dir(tmp_path / "dir")


@pytest.mark.parametrize("make", [lambda p: p.write_text("x"), lambda p: p.symlink_to("/tmp")])
def test_private_dir_that_is_none(tmp_path, make):
    make(tmp_path / "dir")
    with pytest.raises(KsiError, match="not a directory of user"):
        files.private_dir(tmp_path / "dir")


def test_private_dir_is_closed_again(tmp_path):
    (tmp_path / "dir").mkdir(mode=0o755)
    files.private_dir(tmp_path / "dir")
    assert stat.S_IMODE((tmp_path / "dir").stat().st_mode) == 0o700
