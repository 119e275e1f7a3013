"""Deleting a cluster and proving that it is gone: everything is looked for again after it was removed."""

import contextlib
import dataclasses
import os
import shutil
import signal
import stat
import time
from pathlib import Path

from ksi_hooks import proc
from ksi_hooks.environment import CLUSTER_MARK
from ksi_hooks.errors import CommandFailed, KsiError, LockTimeout
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.lifecycle.steps import reached
from ksi_hooks.proc import Process
from ksi_hooks.registry import ports, shared_secrets
from ksi_hooks.registry.record import Record, State, live
from ksi_hooks.run import Deadline, Tools
from ksi_hooks.tools import podman, scope

# What a creation may be in the middle of. Podman's shared helpers (pause process, network helpers, DNS) carry
# the mark of whichever cluster started them first and must live on for the user's others.
CREATORS = frozenset({"kind", "podman", "kubectl", "systemd-run", "crun", "runc"})
SHARED = frozenset(
    {"catatonit", "aardvark-dns", "slirp4netns", "pasta", "pasta.avx2", "podman pause", "fuse-overlayfs"}
)
COMMAND_SECONDS = 20.0
NETWORK_SECONDS = 3.0
END_SECONDS = 3.0
RETRY_SECONDS = 0.2


def delete(context: Context, record: Record, deadline: Deadline) -> list[str]:
    """Delete a cluster with everything that belongs to it; returns what is left, one phrase each, or nothing.

    What is left stays recorded as `deleting` for the next hook or ksi-gc. Raises no KsiError: a deletion that
    could not be checked is a remainder too.
    """
    mark(context, record)
    try:
        reached(context, record, "marked")
        remains = remove_parts(context, record, deadline)
        if not remains:
            reached(context, record, "settled")
            _remove_network(context, record, deadline)
            reached(context, record, "network")
            remains = _remove_files(context, record)
        if not remains:
            reached(context, record, "files")
            context.registry.remove(record)
            reached(context, record, "forgotten")
    except KsiError as error:
        return [f"cannot verify: {error}"]
    return remains


def mark(context: Context, record: Record) -> None:
    """Say in the registry that the cluster is being deleted, so that no task attaches any more.

    A registry that cannot be written (full disk) keeps nobody from deleting: removing a file needs no space.
    """
    if record.state is not State.DELETING:
        with contextlib.suppress(KsiError):
            context.registry.update(dataclasses.replace(record, state=State.DELETING))


def remove_parts(context: Context, record: Record, deadline: Deadline) -> list[str]:
    """Remove processes, containers and volumes of a cluster; returns what a second look still finds."""
    tools = context.tools_for(record.cluster)
    while True:
        remains = _end_creation(record, tools, context.uid, deadline)
        if not remains:
            reached(context, record, "ended")
            remains = _remove_once(record, tools, deadline)
        if not remains or deadline.passed:
            break
        time.sleep(RETRY_SECONDS)
    if remains:
        return remains
    reached(context, record, "removed")
    _end_processes(record, deadline)
    if not ports.can_bind(record.port, context.settings.listen_address):
        # Nothing of the cluster is left to hold it: somebody else's program does, or the kernel for a moment.
        _wait_for_port(record.port, context.settings.listen_address, deadline)
    return _names(_of_cluster(record))


def _remove_once(record: Record, tools: Tools, deadline: Deadline) -> list[str]:
    node = record.node_container
    try:
        found, labelled = _look(record, tools, deadline)
        if found:
            podman.remove_containers(tools, found, timeout=deadline.left(COMMAND_SECONDS))
        if labelled:
            podman.remove_volumes(tools, labelled, timeout=deadline.left(COMMAND_SECONDS))
        if not found and not labelled:
            return []
        found, labelled = _look(record, tools, deadline)
    except CommandFailed as error:
        return [f"cannot verify {node}: {error}"]
    return [f"container {name}" for name in found] + [f"volume {name}" for name in labelled]


def _look(record: Record, tools: Tools, deadline: Deadline) -> tuple[list[str], list[str]]:
    every = podman.containers(tools, timeout=deadline.left(COMMAND_SECONDS))
    found = [container.name for container in every if container.cluster == record.cluster]
    limit = deadline.left(COMMAND_SECONDS)
    return found, podman.volumes(tools, label=record.node_container, timeout=limit)


def _end_creation(record: Record, tools: Tools, uid: int, deadline: Deadline) -> list[str]:
    """End a creation that is still going on: its hook, then everything it started; returns what does not end.

    Looks again until it finds nothing: what was forked while we looked carries the same mark.
    """
    creator = record.creator
    unfinished = record.state is not State.READY and record.boot_id == proc.boot_id()
    if unfinished and creator.pid != os.getpid() and proc.owner_of(creator.pid) == uid:
        proc.send(creator, signal.SIGKILL)
        if stays := proc.wait_gone([creator], deadline.left(END_SECONDS)):
            return _names(stays)
    while creators := [p for p in _of_cluster(record) if proc.name_of(p.pid) in CREATORS]:
        if deadline.passed:
            return _names(creators)
        scope.kill(record.cluster, tools=tools, uid=uid, timeout=deadline.left(END_SECONDS))
        for process in creators:
            proc.send(process, signal.SIGKILL)
        proc.wait_gone(creators, deadline.left(END_SECONDS))
    return []


def _end_processes(record: Record, deadline: Deadline) -> None:
    """Wait for the removed container's helpers (conmon, port forwarders), and end those that stay."""
    for process in proc.wait_gone(_of_cluster(record), deadline.left(END_SECONDS)):
        proc.send(process, signal.SIGKILL)
    proc.wait_gone(_of_cluster(record), deadline.left(END_SECONDS))


def _of_cluster(record: Record) -> list[Process]:
    """Return the owner's processes that were started for the cluster and serve nothing else.

    Root sees everybody's: a stranger's process with the same mark is neither ended nor waited for. Podman
    gives conmon no mark but the container's name as an argument; one whose `podman run` was killed before the
    container started stays for ever, with the port (seen with 4.3.1).
    """
    found = proc.marked(CLUSTER_MARK, record.cluster, uid=record.uid)
    monitors = proc.with_argument("conmon", record.node_container, uid=record.uid)
    return [p for p in found if proc.name_of(p.pid) not in SHARED] + monitors


def _names(processes: list[Process]) -> list[str]:
    return [f"process {p.pid} ({proc.name_of(p.pid)})" for p in processes]


def _remove_network(context: Context, record: Record, deadline: Deadline) -> None:
    """Remove kind's network with the user's last cluster on the node.

    Under the user's lock: a claim made meanwhile either is seen here or finds no network and lets kind make
    it again. Short, since the user's other hooks wait meanwhile: a slow Podman or a lock that is never let go
    costs the network, not the proof that the cluster is gone.
    """
    quietly = contextlib.suppress(LockTimeout, CommandFailed)
    with quietly, context.user_dir.locked(at_most=deadline.left(NETWORK_SECONDS)):
        own = live(context.registry.of_user(context.node, context.uid))
        others = [r for r in own if r.cluster != record.cluster]
        if others or podman.containers(context.tools(), timeout=deadline.left(NETWORK_SECONDS)):
            return
        podman.remove_network(context.tools(), podman.NETWORK, timeout=deadline.left(NETWORK_SECONDS))


def _remove_files(context: Context, record: Record) -> list[str]:
    """Remove the cluster's directories; only what carries its name and is the user's own is touched."""
    remains = []
    for directory in (record.run_dir, *shared_secrets.places(context.registry, record.cluster)):
        if record.cluster in directory.name and _is_own(directory, context.uid):
            shutil.rmtree(directory, ignore_errors=True)
            remains += [f"directory {directory}"] if os.path.lexists(directory) else []
    return remains


def _is_own(directory: Path, uid: int) -> bool:
    try:
        status = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == uid


def _wait_for_port(port: int, address: str, deadline: Deadline) -> None:
    end = time.monotonic() + deadline.left(1.0)
    while time.monotonic() < end and not ports.can_bind(port, address):
        time.sleep(0.05)
