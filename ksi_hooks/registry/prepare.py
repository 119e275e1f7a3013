"""Making the registry's directories and locks as their owner, although tenants may have taken the names."""

import contextlib
import errno
import os
import stat
from pathlib import Path

from ksi_hooks import files

SHARED_MODE = 0o1777
LOCK_MODE = 0o666


def shared_dir(directory: Path, *, owner: int, lock_name: str) -> list[Path]:
    """Make a directory that all tenants write to, with its lock; returns what was made or mended.

    A directory or lock that is not the owner's is a tenant's, who took the name first: it is taken back. All
    is done through the open directory, so no link is followed. Raises OSError.
    """
    made = []
    if not _is_owners(directory, owner):
        files.free_name(directory)
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
        made.append(directory)
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(opened)
        if status.st_uid != owner:
            raise PermissionError(errno.EPERM, f"belongs to user {status.st_uid}", str(directory))
        made += _lock(directory, opened, lock_name, owner)  # before tenants may write here
        if stat.S_IMODE(status.st_mode) != SHARED_MODE:
            os.fchmod(opened, SHARED_MODE)
            made += [] if directory in made else [directory]
    finally:
        os.close(opened)
    return made


def _lock(directory: Path, opened: int, name: str, owner: int) -> list[Path]:
    path = directory / name
    if _is_strangers(opened, name, owner):
        files.free_name(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=opened)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != owner or status.st_nlink > 1:
            raise PermissionError(errno.EPERM, "somebody else made it", str(path))
        if stat.S_IMODE(status.st_mode) == LOCK_MODE:
            return []
        os.fchmod(descriptor, LOCK_MODE)
        return [path]
    finally:
        os.close(descriptor)


def _is_owners(directory: Path, owner: int) -> bool:
    """True when the name is free, or a directory of the owner's."""
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner


def _is_strangers(opened: int, name: str, owner: int) -> bool:
    """True for a lock that is not a file of the owner's alone: with a second name it may be any file."""
    try:
        status = os.stat(name, dir_fd=opened, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return not stat.S_ISREG(status.st_mode) or status.st_uid != owner or status.st_nlink > 1
