"""Kubeconfig and token of a job with several nodes: shared, in a directory of the owner's alone."""

import secrets
from pathlib import Path

from ksi_hooks import files
from ksi_hooks.errors import KsiError
from ksi_hooks.registry.store import Registry


def make(registry: Registry, cluster: str) -> Path:
    """Make the directory (0700) and return it; raises KsiError when no name can be had.

    The first name can be guessed: a stranger who takes it only makes us take another.
    """
    try:
        return files.private_dir(registry.top / _name(cluster))
    except KsiError:
        return files.private_dir(registry.top / f"{_name(cluster)}-{secrets.token_hex(8)}")


def places(registry: Registry, cluster: str) -> list[Path]:
    """Return every directory that may hold secrets of this cluster, whoever made it."""
    names = [entry.name for entry in registry.top_entries()]
    return [registry.top / n for n in names if n == _name(cluster) or n.startswith(f"{_name(cluster)}-")]


def _name(cluster: str) -> str:
    return f"secrets-{cluster}"
