"""One record: what has to be known to use a cluster, and to delete it when everything else has gone."""

import dataclasses
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ksi_hooks.checks import NODE_PORTS
from ksi_hooks.errors import RecordError
from ksi_hooks.proc import Process

VERSION = 1
MAX_BYTES = 16 * 1024
MAX_JOB_ID = 2**32
# Between clocks of nodes, and for a start that Slurm moves while nodes boot; a requeued job waits longer.
START_SLACK_SECONDS = 60.0
# Within kind's ^[a-z0-9.-]+$, short enough for the node's host name, without any text of a user's.
CLUSTER_NAME = re.compile(r"ksi-(?:([0-9]{1,10})|local)-[0-9a-f]{5}")
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


class Torn(RecordError):
    """A record whose writer was killed, or no record at all."""


class State(StrEnum):
    """Where a cluster is in its life."""

    CREATING = "creating"
    READY = "ready"
    DELETING = "deleting"


@dataclass(frozen=True, kw_only=True)
class Record:
    """A cluster, as written by its owner; `uid` is the file's, never what the file says. Times in epoch
    seconds.
    """

    cluster: str
    node: str
    boot_id: str
    job_id: int | None  # None: made by `ksi run` outside of Slurm
    restart: int
    port: int
    run_dir: Path
    creator: Process
    held_by_creator: bool  # made by `ksi run`: lives as long as that process, not as long as the job
    state: State
    created: float
    changed: float
    uid: int
    job_start: int = 0  # of the run it was made in, by Slurm's clock; 0 when Slurm did not tell
    api: str = ""
    secrets_dir: Path | None = None  # on shared storage, for the other nodes of the job

    @property
    def context(self) -> str:
        """Return the name of the kubeconfig context, which is what K8S_CLUSTER_NAME holds."""
        return f"kind-{self.cluster}"

    @property
    def node_container(self) -> str:
        """Return the name that kind gives the container of the control plane."""
        return f"{self.cluster}-control-plane"

    def to_bytes(self) -> bytes:
        """Return the file's contents; the owner is left out, the file system knows it."""
        fields = dataclasses.asdict(self)
        del fields["uid"]
        return (
            json.dumps({"version": VERSION, **fields}, default=str, indent=1, sort_keys=True).encode() + b"\n"
        )


def cluster_name(job_id: int | None, suffix: str) -> str:
    """Return a cluster's name from the job and five hex digits."""
    return f"ksi-{'local' if job_id is None else job_id}-{suffix}"


def is_earlier_run(record: Record, job_start: int) -> bool:
    """True when a cluster is of an earlier run of its job than the one that began at job_start (0 unknown).

    Slurm's own time is compared where the record has it, else the node's clock with the controller's.
    """
    return bool(job_start) and (record.job_start or record.created) < job_start - START_SLACK_SECONDS


def live(found: list[Record]) -> list[Record]:
    """Return the records of clusters that exist or are being made."""
    return [r for r in found if r.state in (State.CREATING, State.READY)]


def job_of(cluster: str) -> int | None:
    """Return the job id that stands in a cluster's name."""
    match = CLUSTER_NAME.fullmatch(cluster)
    return int(match.group(1)) if match and match.group(1) else None


def parse(data: bytes, *, uid: int, source: str) -> Record:
    """Turn a file of an owner into a record; raises RecordError for anything that is not one of ours."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Torn(f"not a record (torn or not JSON): {source}") from error
    if not isinstance(raw, dict):
        raise RecordError(f"not a record (no JSON object): {source}")
    if raw.get("version") != VERSION:
        raise RecordError(
            f"record of version {str(raw.get('version'))[:20]!r}, this program knows {VERSION}: {source}",
            hint="a newer ksi_hooks wrote it; upgrade this node",
        )
    try:
        record = Record(uid=uid, **{name: check(raw[name]) for name, check in CHECKS.items()})
    except KeyError as error:
        raise RecordError(f"record without {error.args[0]}: {source}") from error
    except (ValueError, TypeError) as error:
        raise RecordError(f"record with a bad value: {source}: {error}") from error
    if job_of(record.cluster) != record.job_id:
        raise RecordError(f"record whose name and job differ: {source}")
    return record


def _matching(pattern: re.Pattern[str]) -> Callable[[Any], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{str(value)[:60]!r} does not match {pattern.pattern}")
        return value

    return check


def _integer(low: int, high: int) -> Callable[[Any], int]:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{str(value)[:60]!r} is not between {low} and {high}")
        return value

    return check


def _time(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise ValueError(f"{str(value)[:60]!r} is not a time")
    return float(value)


def _dir(value: object) -> Path:
    if not isinstance(value, str) or not value.startswith("/") or "\0" in value or len(value) > 1024:
        raise ValueError(f"{str(value)[:60]!r} is not an absolute path")
    if ".." in Path(value).parts:
        raise ValueError(f"{value[:60]!r} climbs")
    os.fsencode(value)  # a lone surrogate is no path
    return Path(value)


def _process(value: object) -> Process:
    if not isinstance(value, dict):
        raise ValueError(f"{str(value)[:60]!r} is not a process")
    number = _integer(0, 2**22 + 1)
    return Process(number(value["pid"]), _integer(0, 2**62)(value["start"]))


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{str(value)[:60]!r} is not true or false")
    return value


def _or_none(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else check(value)


CHECKS: dict[str, Callable[[Any], Any]] = {
    "cluster": _matching(CLUSTER_NAME),
    "node": _matching(NODE_NAME),
    "boot_id": _matching(re.compile(r"[0-9a-f-]{0,40}")),
    "job_id": _or_none(_integer(0, MAX_JOB_ID)),
    "restart": _integer(0, 2**31),
    "job_start": _integer(0, 2**40),
    "port": _integer(NODE_PORTS[0], NODE_PORTS[-1]),
    "run_dir": _dir,
    "creator": _process,
    "held_by_creator": _flag,
    "state": State,
    "created": _time,
    "changed": _time,
    "api": _matching(re.compile(r"(?:https://[A-Za-z0-9.:\[\]-]{1,200})?")),
    "secrets_dir": _or_none(_dir),
}
