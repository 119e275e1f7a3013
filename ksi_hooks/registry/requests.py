"""Asking for a deletion from another node: a note beside the record, carried out by ksi-gc of the home node.

A note counts when it is root's, the preparer's of the registry or the cluster owner's; it is never read. A
file of theirs that a stranger gave a second name, or could have written to, is no note of theirs.
"""

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path

from ksi_hooks import files
from ksi_hooks.errors import KsiError
from ksi_hooks.registry.record import Record
from ksi_hooks.registry.store import Registry

# The random part keeps a stranger from taking the name first.
NOTE = re.compile(r"(?:[^~]+~)?(ksi-[0-9a-z]+-[0-9a-f]{5})\.[0-9a-f]{8}\.delete")


def request(registry: Registry, record: Record) -> Path:
    """Leave a note that the cluster shall be deleted; raises KsiError when it cannot be written."""
    name = registry.path_of(record.node, record.cluster).stem
    path = registry.room(record.node) / f"{name}.{secrets.token_hex(4)}.delete"
    try:
        files.create(path, b"", mode=0o644)
    except OSError as error:
        raise KsiError(f"cannot write the request: {path}: {error.strerror}") from error
    return path


def granted(registry: Registry, records: list[Record]) -> frozenset[str]:
    """Return the clusters of these records (all of one node) whose deletion somebody entitled asked for."""
    if not records:
        return frozenset()
    owners = {record.cluster: record.uid for record in records}
    trusted = {0, registry.top.stat().st_uid}
    return frozenset(
        cluster
        for cluster, uid in _notes(registry, records[0].node)
        if cluster in owners and uid in trusted | {owners[cluster]}
    )


def clear(registry: Registry, node: str, clusters: set[str]) -> None:
    """Remove the notes about these clusters, as far as we may."""
    for entry in registry.entries(node):
        match = NOTE.fullmatch(entry.name)
        if match and match.group(1) in clusters:
            with contextlib.suppress(OSError):
                Path(entry.path).unlink()


def noted(registry: Registry, node: str) -> set[str]:
    """Return the clusters that any note on this node names, whoever made it and of whatever."""
    matches = (NOTE.fullmatch(entry.name) for entry in registry.entries(node))
    return {match.group(1) for match in matches if match}


def _notes(registry: Registry, node: str) -> list[tuple[str, int]]:
    found = []
    for entry in registry.entries(node):
        match = NOTE.fullmatch(entry.name)
        if match:
            with contextlib.suppress(OSError):
                status = os.lstat(entry.path)
                shared = status.st_nlink > 1 or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                if stat.S_ISREG(status.st_mode) and not shared:
                    found.append((match.group(1), status.st_uid))
    return found
