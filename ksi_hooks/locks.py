"""Locks on local and shared storage: the only user of filelock."""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import filelock

from ksi_hooks import files
from ksi_hooks.errors import KsiError, LockTimeout

SOFT_KINDS: dict[str, type[filelock.BaseFileLock]] = {
    "soft": filelock.SoftFileLock,
    "strict": filelock.StrictSoftFileLock,
}
NOT_SUPPORTED = (
    errno.ENOLCK,
    errno.ENOSYS,
    errno.EOPNOTSUPP,
    524,
)  # 524: the kernel's ENOTSUPP, seen on Lustre
POLL_SECONDS = 0.01
PREPARE_SECONDS = 5.0
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def hold(path: Path, *, timeout: float, kind: str = "flock") -> Iterator[None]:
    """Hold the lock for the body, which should take milliseconds.

    Raises LockTimeout that names file, holder and age, and KsiError where the file system has no such lock:
    another kind is never used in silence, since two nodes might then use different ones.
    """
    if not path.parent.is_dir():  # filelock would make it, as the property of whoever comes first
        raise KsiError(
            f"no directory for the lock: {path.parent}", hint="root runs ksi config --init-registry"
        )
    lock = _lock(path, timeout, kind)
    try:
        lock.acquire()
    except filelock.Timeout as error:
        raise LockTimeout(
            f"lock is busy: waited {timeout:g} s for {path} ({_holder(path)})",
            hint="end the process that holds it, or raise lock_timeout",
        ) from error
    except (OSError, NotImplementedError) as error:
        raise _explained(path, kind, error) from error
    try:
        yield
    finally:
        lock.release()


def name_for(path: Path, kind: str) -> Path:
    """Return the file of a lock of this kind: only that of flock can stay there while nobody holds it."""
    return path if kind == "flock" else path.with_name(f"{path.name}-{kind}")


def prepare(path: Path, kind: str, *, owner: int) -> None:
    """Make what users of a strict lock share, as its owner; raises OSError. The other kinds need nothing."""
    if kind != "strict":
        return
    marker = name_for(path, kind)
    claims = _claims(marker)
    for part in (marker, claims):
        with contextlib.suppress(FileNotFoundError):
            if part.lstat().st_uid != owner:
                files.free_name(part)
    with _lock(marker, PREPARE_SECONDS, kind):
        pass
    opened = os.open(claims, DIRECTORY)
    try:
        _share(opened, owner)
    finally:
        os.close(opened)


def remove_stale(path: Path, kind: str, *, older_than: float) -> list[Path]:
    """Remove what a dead holder left of a soft lock (the kernel itself ends a flock); returns what was
    removed.

    Judged by age: such locks are held for milliseconds, and no host can tell whether a process of another
    lives.
    """
    if kind == "flock":
        return []
    limit = time.time() - older_than
    if kind == "strict":
        with contextlib.suppress(OSError):
            opened = os.open(_claims(path), DIRECTORY)
            try:
                return [_claims(path) / name for name in _remove_old(opened, limit)]
            finally:
                os.close(opened)
        return []
    with contextlib.suppress(OSError):
        if path.lstat().st_mtime < limit:
            files.free_name(path)
            return [path]
    return []


def _share(opened: int, owner: int) -> None:
    """Let everybody write to this directory and the owner's directories in it; follows no link."""
    os.fchmod(opened, 0o1777)
    for child in _own_children(opened, owner):
        os.fchmod(child, 0o1777)
        os.close(child)


def _remove_old(opened: int, limit: float) -> list[str]:
    """Remove old files here and in our own directories one level below, by open directory, never by path."""
    removed = []
    for directory in (os.dup(opened), *_own_children(opened, os.geteuid())):
        for name in os.listdir(directory):  # noqa: PTH208 - an open directory has no path
            with contextlib.suppress(OSError):
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if not stat.S_ISDIR(status.st_mode) and status.st_mtime < limit:
                    os.unlink(name, dir_fd=directory)
                    removed.append(name)
        os.close(directory)
    return removed


def _own_children(opened: int, owner: int) -> list[int]:
    """Open the directories in a directory that are the owner's; the caller closes them."""
    children = []
    for name in os.listdir(opened):
        with contextlib.suppress(OSError):
            child = os.open(name, DIRECTORY, dir_fd=opened)
            if os.fstat(child).st_uid == owner:
                children.append(child)
            else:
                os.close(child)
    return children


def _claims(path: Path) -> Path:
    """Return the directory in which filelock keeps the claims of a strict lock."""
    return path.with_name(f"{path.name}.filelock")


def _lock(path: Path, timeout: float, kind: str) -> filelock.BaseFileLock:
    if kind == "flock":
        # The file stays (root prepared it with its mode), and no other kind steps in where flock is missing.
        return filelock.UnixFileLock(
            path, timeout, poll_interval=POLL_SECONDS, fallback_to_soft=False, preserve_lock_file=True
        )
    return SOFT_KINDS[kind](path, timeout, poll_interval=POLL_SECONDS)


def _explained(path: Path, kind: str, error: Exception) -> KsiError:
    number = getattr(error, "errno", None)
    if isinstance(error, NotImplementedError) or number in NOT_SUPPORTED:
        return KsiError(
            f"file system without {kind} locks: {path}: {error}",
            hint="mount it with locking (Lustre: -o flock), or set lock: strict on every node",
        )
    reason = os.strerror(number) if number else str(error)
    return KsiError(
        f"cannot lock {path}: {reason}{_rights(path)}", hint="root runs ksi config --init-registry"
    )


def _rights(path: Path) -> str:
    with contextlib.suppress(OSError):
        status = path.lstat()
        return f" (owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _holder(path: Path) -> str:
    """Say who holds a flock, from /proc/locks; a holder on another node is not in there."""
    with contextlib.suppress(OSError):
        status = path.stat()
        age = f"unchanged for {time.time() - status.st_mtime:.0f} s"
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if len(words) > 5 and words[5].rpartition(":")[2] == str(status.st_ino):
                return f"held by process {words[4]}, {age}"
        return f"holder not on this node, {age}"
    return "lock file is gone"
