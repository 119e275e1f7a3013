"""Reading one file of the registry: hostile until proven otherwise, and perhaps just being written."""

import stat
import time
from pathlib import Path

from ksi_hooks import files
from ksi_hooks.errors import KsiError, RecordError
from ksi_hooks.registry import record as records
from ksi_hooks.registry.record import Record

FRESH_SECONDS = 2.0
PATIENCE_SECONDS = 0.1
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class BeingWritten(RecordError):
    """A new record whose maker has the name but not yet the contents."""


def read(path: Path, *, node: str, cluster: str) -> Record | None:
    """Return the record in a file, None when there is none; raises RecordError when it cannot be trusted."""
    try:
        content = files.read(path, limit=records.MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"cannot read the record {path}: {error.strerror}") from error
    except KsiError as error:
        raise RecordError(str(error)) from error
    if not content.data and content.modified > time.time() - FRESH_SECONDS:
        raise BeingWritten(f"record is just being written: {path}")
    if content.mode & OTHERS_WRITE:
        raise RecordError(f"record that others than its owner can write: {path}")
    record = records.parse(content.data, uid=content.uid, source=str(path))
    if (record.node, record.cluster) != (node, cluster):
        raise RecordError(f"record of another cluster or node: {path}")
    return record
