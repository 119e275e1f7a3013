"""Reading and writing in directories that strangers can write to: nothing followed, nothing half written."""

import contextlib
import errno
import os
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks.errors import KsiError

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
NETWORK_RETRY_SECONDS = 2.0  # an NFS client may answer ESTALE for a moment after a rename elsewhere


@dataclass(frozen=True)
class Content:
    """The bytes of a file and, from the same open descriptor, whose it is and when it was written (epoch
    seconds).
    """

    data: bytes
    uid: int
    mode: int
    modified: float


def read(path: Path, *, limit: int) -> Content:
    """Read a regular file of at most limit bytes, judged by its open descriptor.

    Raises OSError as open() does, and KsiError for a link, a pipe, a device, a hard-linked or too large file.
    """
    descriptor = _open_patiently(path)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise KsiError(f"not a regular file: {path}")
        if status.st_nlink > 1:
            raise KsiError(f"file has more than one name (hard link): {path}")
        data = b""
        while len(data) <= limit and (piece := os.read(descriptor, limit + 1 - len(data))):
            data += piece
        if len(data) > limit:
            raise KsiError(f"file larger than {limit} bytes: {path}")
        return Content(data, status.st_uid, stat.S_IMODE(status.st_mode), status.st_mtime)
    finally:
        os.close(descriptor)


def create(path: Path, data: bytes, *, mode: int) -> None:
    """Write a new file; raises FileExistsError when the name is taken, leaves nothing behind on an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _fill(descriptor, data, mode)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def replace(path: Path, data: bytes, *, mode: int) -> None:
    """Put new contents in place of old ones in one step: readers never see a part."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    create(temporary, data, mode=mode)
    try:
        os.replace(temporary, path)  # noqa: PTH105 - the name in the manual
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_directory(path.parent)


def private_dir(path: Path) -> Path:
    """Make, or accept, a directory that is this user's alone (0700, no link) inside one that exists.

    A missing parent is not made: whoever made it would own a directory that others use. Raises KsiError when
    somebody else owns the name.
    """
    try:
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        status = path.lstat()
    except OSError as error:
        raise KsiError(
            f"cannot make the directory {path}: {error.strerror}",
            hint=f"the administrator makes it: install -d -m 1777 {path.parent}",
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise KsiError(
            f"not a directory of user {os.geteuid()}: {path} (owner {status.st_uid})",
            hint="the administrator removes it; somebody else made it",
        )
    if stat.S_IMODE(status.st_mode) != 0o700:
        path.chmod(0o700)
    return path


def free_name(path: Path) -> None:
    """Take a name back that a stranger holds in a directory of ours: nothing is followed, nothing opened.

    A directory that is not empty is renamed, not searched. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        try:
            path.rmdir()
        except OSError:
            path.rename(path.with_name(f".aside-{path.name}-{secrets.token_hex(4)}"))


def _open_patiently(path: Path) -> int:
    end = time.monotonic() + NETWORK_RETRY_SECONDS
    while True:
        try:
            return os.open(path, READ_FLAGS)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise KsiError(f"symbolic link refused: {path}") from error
            if error.errno == errno.ENXIO:
                raise KsiError(f"not a regular file: {path}") from error
            if error.errno != errno.ESTALE or time.monotonic() > end:
                raise
        time.sleep(0.05)


def _fill(descriptor: int, data: bytes, mode: int) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)  # whatever the umask is
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some network file systems refuse fsync on a directory
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
