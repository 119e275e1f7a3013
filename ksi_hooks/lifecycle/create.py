"""Making a cluster for a claim: kind, readiness, the admin account and its token; nothing half made stays."""

import dataclasses
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import files, proc
from ksi_hooks.errors import CommandFailed, KsiError
from ksi_hooks.lifecycle import access, boot, causes, claim, delete
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.lifecycle.steps import reached
from ksi_hooks.registry.record import Record, State
from ksi_hooks.run import Deadline, Tools
from ksi_hooks.tools import podman

STEP_SECONDS = 30.0
PORT_TRIES = 5
PASSING_TRIES = 2
SLOT_SHARE = 0.25  # of create_timeout, for waiting until others have made theirs
SLOT_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Wanted:
    """What the job wants: its directory for /app, its end (epoch seconds, 0 unknown), whether other nodes
    need the API.
    """

    work_dir: Path | None
    asked_dir: str
    end: int
    spans_nodes: bool


def create(
    context: Context, record: Record, wanted: Wanted, *, failed: Callable[[KsiError], None] | None = None
) -> Record:
    """Make the claimed cluster and publish it; on any failure it is deleted again, claim included.

    Raises KsiError with the cause and a remedy. failed: is told before the claim is given up.
    """
    deadline = Deadline(context.settings.create_timeout)
    current = record
    try:
        _start_log(context, record)
        reached(context, record, "claimed")
        work_dir = require_work_dir(wanted)
        require_image(context, context.creating_tools(record.cluster), deadline)
        reached(context, record, "checked")
        _wait_for_slot(context, record)
        current = _run_kind(context, record, wanted, work_dir, deadline)
        current = _make_access(context, current, wanted, deadline)
        published = _publish(context, current)
        reached(context, published, "published")
        return published
    except BaseException as error:
        if isinstance(error, KsiError):
            error.hint = error.hint or f"see the log: {context.user_dir.log_file(record.cluster)}"
            if failed:
                failed(error)
        delete.delete(context, current, Deadline(context.settings.epilog_timeout))
        raise


def require_work_dir(wanted: Wanted) -> Path:
    """Return the directory for /app; raises KsiError when it is missing or cannot be mounted."""
    if wanted.work_dir is None or not wanted.work_dir.is_dir():
        raise KsiError(
            f"the job's working directory is missing on this node: {wanted.asked_dir or wanted.work_dir}",
            hint="use sbatch --chdir with a directory that the node sees",
            blame="user",
        )
    text = os.fspath(wanted.work_dir)
    bad = next((c for c in ":\n\r\0" if c in text), "")
    if bad:
        raise KsiError(
            f"the working directory cannot be mounted, its name has a {bad!r}: {text!r}",
            hint="use a directory without that character",
            blame="user",
        )
    if wanted.work_dir == Path("/"):
        raise KsiError(
            "the working directory / is not mounted into a cluster", hint="use sbatch --chdir", blame="user"
        )
    return wanted.work_dir


def require_image(context: Context, tools: Tools, deadline: Deadline) -> None:
    """Raise KsiError when the node image of the settings is not in the user's store."""
    image = context.settings.node_image
    if image and not podman.image_exists(tools, image, timeout=deadline.left(STEP_SECONDS)):
        raise KsiError(
            f"node image is not on this node: {image}",
            hint="load it into Podman's store, or set node_image in ksi.yaml",
        )


def _wait_for_slot(context: Context, record: Record) -> None:
    """Let earlier creations on this node end first when the site limits how many go on together.

    Bounded: a claim that a stranger made up must not keep others for ever.
    """
    slots = context.settings.create_slots
    deadline = Deadline(context.settings.create_timeout * SLOT_SHARE)
    while slots and not deadline.passed:
        earlier = [
            r
            for r in context.registry.of_node(context.node, at_most=claim.HINTS_READ).records
            if r.state is State.CREATING and r.created < record.created and _is_of_owner(r)
        ]
        if len(earlier) < slots:
            return
        time.sleep(SLOT_POLL_SECONDS)


def _is_of_owner(record: Record) -> bool:
    """True when the creator that a claim names runs and belongs to the claim's owner."""
    return proc.is_alive(record.creator) and proc.owner_of(record.creator.pid) == record.uid


def _run_kind(context: Context, record: Record, wanted: Wanted, work_dir: Path, deadline: Deadline) -> Record:
    """Start the cluster; a port that is taken or a cause that passes is worth another try in time."""
    tried: list[int] = []
    while True:
        try:
            boot.start(context, record, boot.Boot(work_dir, wanted.spans_nodes), deadline)
            return record
        except CommandFailed as error:
            tried.append(record.port)
            taken = causes.port_in_use(error.tail)
            cause = causes.explain(error.tail)
            passes = taken or (cause is not None and cause.passes)
            if not passes or deadline.passed or len(tried) >= (PORT_TRIES if taken else PASSING_TRIES):
                raise _explained(context, record, error) from error
            left = delete.remove_parts(context, record, Deadline(STEP_SECONDS))
            if left:
                raise KsiError(f"cannot try again, something is left: {', '.join(left)}") from error
            if taken:
                record = claim.other_port(context, record, set(tried))


def _make_access(context: Context, record: Record, wanted: Wanted, deadline: Deadline) -> Record:
    try:
        made = access.make(
            context, record, job_end=wanted.end, spans_nodes=wanted.spans_nodes, deadline=deadline
        )
        reached(context, record, "account")
        return made
    except CommandFailed as error:
        raise _explained(context, record, error) from error


def _publish(context: Context, record: Record) -> Record:
    """Declare the cluster ready, unless somebody began to delete it while it was made."""
    stored = context.registry.read(record.node, record.cluster)
    if stored is None or stored.state is not State.CREATING:
        raise KsiError(f"cluster was deleted while it was made: {record.cluster}")
    return context.registry.update(dataclasses.replace(record, state=State.READY))


def _explained(context: Context, record: Record, error: CommandFailed) -> KsiError:
    """Return the failure as a cause with its remedy, and where the rest can be read."""
    log = context.user_dir.log_file(record.cluster)
    cause = causes.explain(error.tail)
    if cause:
        return KsiError(f"{cause.reason}: {error}", hint=f"{cause.hint}; log: {log}")
    if error.status is None:
        limit = context.settings.create_timeout
        return KsiError(
            f"creation took longer than create_timeout ({limit:g} s): {error}",
            hint=f"the administrator raises create_timeout; log: {log}",
        )
    return KsiError(str(error), hint=f"see the log: {log}")


def _start_log(context: Context, record: Record) -> None:
    context.user_dir.prune(context.settings.log_keep_days)
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    line = f"{stamp} cluster {record.cluster} node {record.node} port {record.port}\n"
    files.replace(context.user_dir.log_file(record.cluster), line.encode(), mode=0o600)
