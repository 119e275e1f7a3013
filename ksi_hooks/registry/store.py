"""The directory of records: one file per cluster, a directory per node, made by root and shared by all
tenants.
"""

import contextlib
import dataclasses
import errno
import os
import stat
import syslog
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import files, locks
from ksi_hooks.config import Settings
from ksi_hooks.errors import KsiError, LockTimeout, RecordError
from ksi_hooks.registry import prepare, reading
from ksi_hooks.registry import record as records
from ksi_hooks.registry.record import NODE_NAME, Record

SUFFIX = ".json"
LOCK_NAME = ".lock"  # its presence also says that a directory is prepared
RECORD_MODE = 0o644
PREPARE_HINT = "root runs: ksi config --init-registry"


@dataclass(frozen=True)
class Listing:
    """What a directory holds: the records that can be trusted, and one sentence for each file that cannot."""

    records: list[Record]
    problems: list[str]


@dataclass(frozen=True)
class Registry:
    """The registry of a site. Readers take no lock; writers hold it for a listing and one small file."""

    top: Path
    lock_timeout: float
    lock_kind: str = "flock"

    @classmethod
    def of(cls, settings: Settings) -> "Registry":
        """Return the registry that the settings name."""
        return cls(settings.registry_dir, settings.lock_timeout, settings.lock)

    def require_usable(self) -> None:
        """Raise KsiError unless the registry is prepared and cannot be taken over by a tenant."""
        try:
            status = self.top.lstat()
        except OSError as error:
            raise KsiError(f"no registry: {self.top}: {error.strerror}", hint=PREPARE_HINT) from error
        if not stat.S_ISDIR(status.st_mode):
            raise KsiError(f"registry is not a directory: {self.top}", hint=PREPARE_HINT)
        if status.st_mode & reading.OTHERS_WRITE and not status.st_mode & stat.S_ISVTX:
            who = "world" if status.st_mode & stat.S_IWOTH else "group"
            raise KsiError(
                f"registry is {who}-writable without the sticky bit: {self.top}", hint=PREPARE_HINT
            )
        if not (self.top / LOCK_NAME).exists():
            raise KsiError(f"registry is not prepared (no {LOCK_NAME}): {self.top}", hint=PREPARE_HINT)
        if not os.access(self.top, os.W_OK | os.X_OK):
            mode = stat.S_IMODE(status.st_mode)
            raise KsiError(
                f"registry is not writable: {self.top} (owner {status.st_uid}, mode {mode:o})",
                hint=PREPARE_HINT,
            )

    @contextlib.contextmanager
    def locked(self, node: str) -> Iterator[None]:
        """Hold the node's lock; raises KsiError where the file system has no locks.

        A tenant who never lets go costs the others one bounded wait, then they go on without: a claim is an
        exclusive create and a port is proven by bind, so the lock only saves second tries.
        """
        with contextlib.ExitStack() as stack:
            lock = locks.hold(self.lock_file(node), timeout=self.lock_timeout, kind=self.lock_kind)
            try:
                stack.enter_context(lock)
            except LockTimeout as error:
                syslog.syslog(syslog.LOG_WARNING, f"ksi: going on without the lock: {error}")
            yield

    def claim(self, record: Record) -> None:
        """Write a new record; raises FileExistsError when the name is taken and KsiError when it cannot be
        written.
        """
        with _write_errors(self.path_of(record.node, record.cluster)) as path:
            files.create(path, record.to_bytes(), mode=RECORD_MODE)

    def update(self, record: Record) -> Record:
        """Write a record that exists already, with the time of the change; returns what was written."""
        changed = dataclasses.replace(record, changed=time.time())
        with _write_errors(self.path_of(record.node, record.cluster)) as path:
            files.replace(path, changed.to_bytes(), mode=RECORD_MODE)
        return changed

    def remove(self, record: Record) -> None:
        """Remove a record whose cluster is proven to be gone; no error when it is not there."""
        with _write_errors(self.path_of(record.node, record.cluster)) as path:
            path.unlink(missing_ok=True)

    def read(self, node: str, cluster: str) -> Record | None:
        """Return one record, None when there is none; raises RecordError when the file cannot be trusted."""
        return reading.read(self.path_of(node, cluster), node=node, cluster=cluster)

    def of_job(self, node: str, job_id: int, uid: int) -> list[Record]:
        """Return the user's records of a job on a node, the newest first; nothing that strangers planted."""
        start = records.cluster_name(job_id, "")
        found = []
        for cluster in self.clusters(node):
            if cluster.startswith(start):
                with contextlib.suppress(RecordError):
                    record = self.read(node, cluster)
                    if record and record.uid == uid:
                        found.append(record)
        return sorted(found, key=lambda r: r.created, reverse=True)

    def of_node(self, node: str, *, at_most: int | None = None) -> Listing:
        """Return the records of a node; at most so many files are read where a part is enough."""
        listing = Listing([], [])
        fresh = self._read_into(listing, node, self.clusters(node)[:at_most], patient=True)
        if fresh:  # once for all of them: a stranger who makes many costs no more than one wait
            time.sleep(reading.PATIENCE_SECONDS)
            self._read_into(listing, node, fresh, patient=False)
        return listing

    def of_user(self, node: str, uid: int) -> list[Record]:
        """Return a user's records of a node; no file of anybody else's is opened."""
        own = [entry.name for entry in self.entries(node) if _owner(entry) == uid]
        listing = Listing([], [])
        self._read_into(listing, node, self._names(node, own), patient=False)
        return [r for r in listing.records if r.uid == uid]

    def _read_into(self, listing: Listing, node: str, clusters: list[str], *, patient: bool) -> list[str]:
        """Add the records of clusters; returns, when patient, those that are just being written."""
        fresh = []
        for cluster in clusters:
            try:
                record = self.read(node, cluster)
            except RecordError as error:
                if patient and isinstance(error, reading.BeingWritten):
                    fresh.append(cluster)
                else:
                    listing.problems.append(str(error))
            else:
                listing.records.extend([record] if record else [])
        return fresh

    def owners(self, node: str) -> set[int]:
        """Return whose files lie in the node's directory, whatever is in them."""
        return {uid for entry in self.entries(node) if (uid := _owner(entry)) is not None}

    def nodes(self) -> list[str]:
        """Return the nodes that have records or a directory."""
        names = set()
        for entry in _entries(self.top):
            if entry.is_dir(follow_symlinks=False) and NODE_NAME.fullmatch(entry.name):
                names.add(entry.name)
            elif entry.name.endswith(SUFFIX) and "~" in entry.name:
                names.add(entry.name.partition("~")[0])
        return sorted(name for name in names if NODE_NAME.fullmatch(name))

    def path_of(self, node: str, cluster: str) -> Path:
        """Return the file of a cluster: in the node's directory, or flat with the node before the name."""
        room = self.room(node)
        return room / f"{cluster}{SUFFIX}" if room != self.top else room / f"{node}~{cluster}{SUFFIX}"

    def lock_file(self, node: str) -> Path:
        """Return the node's lock; each kind has a file of its own, since only that of flock stays."""
        return locks.name_for(self.room(node) / LOCK_NAME, self.lock_kind)

    def prepare(self, nodes: list[str]) -> list[Path]:
        """Make directories and locks for these nodes as their owner (root); returns what was made or mended.

        Nothing that exists is emptied; modes are set whatever the umask. Raises OSError.
        """
        made = []
        self.top.mkdir(mode=0o755, exist_ok=True)  # no parents: shared storage that is not mounted must show
        owner = self.top.lstat().st_uid
        for directory in (self.top, *(self.top / node for node in nodes)):
            made += prepare.shared_dir(directory, owner=owner, lock_name=LOCK_NAME)
            locks.prepare(directory / LOCK_NAME, self.lock_kind, owner=owner)
        return made

    def room(self, node: str) -> Path:
        """Return the node's directory if whoever prepared the registry made it, else the top one.

        A directory that a tenant made would be his to empty, so it does not count.
        """
        if not NODE_NAME.fullmatch(node):
            raise KsiError(f"not the name of a node: {node!r}")
        room = self.top / node
        try:
            status, top = room.lstat(), self.top.lstat()
        except OSError:
            return self.top
        return room if stat.S_ISDIR(status.st_mode) and status.st_uid == top.st_uid else self.top

    def top_entries(self) -> list[os.DirEntry[str]]:
        """Return what lies in the top directory; raises KsiError when it cannot be listed."""
        return _entries(self.top)

    def entries(self, node: str) -> list[os.DirEntry[str]]:
        """Return what lies in the node's directory; raises KsiError when it cannot be listed."""
        return _entries(self.room(node))

    def clusters(self, node: str) -> list[str]:
        """Return the names for which something lies there, to be trusted or not."""
        return self._names(node, [entry.name for entry in self.entries(node)])

    def _names(self, node: str, names: list[str]) -> list[str]:
        """Return the clusters that these files of the node's directory are named after."""
        prefix = "" if self.room(node) != self.top else f"{node}~"
        found = (n[len(prefix) : -len(SUFFIX)] for n in names if n.startswith(prefix) and n.endswith(SUFFIX))
        return sorted(name for name in found if records.CLUSTER_NAME.fullmatch(name))


def _owner(entry: os.DirEntry[str]) -> int | None:
    with contextlib.suppress(OSError):
        return entry.stat(follow_symlinks=False).st_uid
    return None


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError as error:
        raise KsiError(
            f"cannot read the registry: {directory}: {error.strerror}", hint=PREPARE_HINT
        ) from error


@contextlib.contextmanager
def _write_errors(path: Path) -> Iterator[Path]:
    try:
        yield path
    except FileExistsError:
        raise
    except OSError as error:
        hint = PREPARE_HINT
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free space (or quota) on the registry's file system"
        raise KsiError(f"cannot write the registry: {path}: {error.strerror}", hint=hint) from error
