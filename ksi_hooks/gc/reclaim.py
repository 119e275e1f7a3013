"""Root's own work on a node: takes back what strangers or dead hosts keep from others; opens nothing."""

import contextlib
import os
import stat
import syslog
from collections.abc import Mapping
from pathlib import Path

from ksi_hooks import files, gate, locks
from ksi_hooks.config import Settings
from ksi_hooks.registry.store import Registry
from ksi_hooks.slurm.query import JobFacts, JobState

LOCK_MARGIN_SECONDS = 10.0


def run_dir(settings: Settings, uid: int) -> bool:
    """Take back a user's run directory that a stranger made first; returns whether there was one."""
    root, path = settings.run_root, settings.user_run_dir(uid)
    try:
        status = path.lstat()
        if root.stat().st_uid != os.geteuid():
            return False
        owned = stat.S_ISDIR(status.st_mode) and status.st_uid in (uid, os.geteuid())
        if owned:
            return False
        files.free_name(path)
        path.mkdir(mode=0o700)  # ours until it is the user's, so nobody takes the name again
        os.chown(path, uid, -1, follow_symlinks=False)
    except OSError:
        return False
    syslog.syslog(syslog.LOG_WARNING, f"ksi-gc: took back {path}, made by user {status.st_uid}")
    return True


def run_dirs(settings: Settings) -> list[int]:
    """Take back every run directory that a stranger made first; returns whose they should be."""
    return [uid for uid in users_with_run_dir(settings.run_root) if run_dir(settings, uid)]


def users_with_run_dir(root: Path, *, own: bool = False) -> list[int]:
    """Return the users after whom something is named in the directory; own: only if it is theirs."""
    found = []
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            if entry.name.isascii() and entry.name.isdecimal() and len(entry.name) <= 10:
                with contextlib.suppress(OSError):
                    owner = entry.stat(follow_symlinks=False).st_uid
                    found += [int(entry.name)] if not own or owner == int(entry.name) else []
    return found


def has_traces(user_dir: Path) -> bool:
    """True when a user's run directory speaks of clusters; most users' only holds answers of Slurm's."""
    with contextlib.suppress(OSError):
        jobs = user_dir / "jobs"
        return any(user_dir.glob("ksi-*")) or any(jobs.iterdir())
    return False


def stale_locks(registry: Registry, node: str) -> None:
    """Remove locks whose holder is long dead, or a stranger who never lets go."""
    limit = 2 * registry.lock_timeout + LOCK_MARGIN_SECONDS
    for path in locks.remove_stale(registry.lock_file(node), registry.lock_kind, older_than=limit):
        syslog.syslog(syslog.LOG_WARNING, f"ksi-gc: removed a lock that nobody let go: {path}")


def marks(settings: Settings) -> dict[int, float]:
    """Return the jobs that the node prolog marked, and when (epoch seconds)."""
    found = {}
    for path in (settings.node_state_dir / gate.MARKER_DIR).glob("*"):
        with contextlib.suppress(OSError):  # the node epilog removes them beside us
            if path.name.isdecimal():
                found[int(path.name)] = path.lstat().st_mtime
    return found


def remove_marks(settings: Settings, facts: Mapping[int, JobFacts], alive: frozenset[int]) -> None:
    """Remove the marks of ended jobs whose node epilog never ran."""
    for job_id, job in facts.items():
        if job.state is JobState.GONE and job_id not in alive:
            (settings.node_state_dir / gate.MARKER_DIR / str(job_id)).unlink(missing_ok=True)
