"""What a writer leaves in the registry when he is killed in the middle: looked for by his owner's ksi-gc."""

import contextlib
import re
import stat
import time
from pathlib import Path

from ksi_hooks import proc
from ksi_hooks.errors import KsiError
from ksi_hooks.registry.reading import FRESH_SECONDS
from ksi_hooks.registry.record import Torn
from ksi_hooks.registry.store import Registry

# As files.replace names what it puts in place of a file: hidden, with the process id of its maker.
UNFINISHED = re.compile(r"\.(?:([^~]+)~)?ksi-[0-9a-z]+-[0-9a-f]{5}\.json\.([0-9]{1,7})\.[0-9]+")
LONG_SECONDS = 60.0


def torn_records(registry: Registry, node: str, uid: int) -> list[tuple[str, float]]:
    """Return the clusters whose record the user began and never finished, and when (epoch seconds)."""
    found = []
    for cluster in registry.clusters(node):
        with contextlib.suppress(OSError):
            status = registry.path_of(node, cluster).lstat()
            old = status.st_mtime < time.time() - FRESH_SECONDS
            if old and status.st_uid == uid and stat.S_ISREG(status.st_mode):
                found += [(cluster, status.st_mtime)] if _is_torn(registry, node, cluster) else []
    return found


def remove_unfinished(registry: Registry, node: str, uid: int) -> None:
    """Remove the user's new versions of records that never took the place of the old ones."""
    with contextlib.suppress(KsiError):
        for entry in registry.entries(node):
            match = UNFINISHED.fullmatch(entry.name)
            if match and match.group(1) in (None, node):
                with contextlib.suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    long_ago = status.st_mtime < time.time() - LONG_SECONDS
                    if status.st_uid == uid and (long_ago or proc.find(int(match.group(2))) is None):
                        Path(entry.path).unlink()


def _is_torn(registry: Registry, node: str, cluster: str) -> bool:
    try:
        registry.read(node, cluster)
    except Torn:
        return True
    except KsiError:
        return False
    return False
