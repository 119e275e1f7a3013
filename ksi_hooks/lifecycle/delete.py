"""Deleting a cluster and proving that it is gone: everything is looked for again after it was removed."""

import dataclasses
import os
import shutil
import signal
import stat
import time
from pathlib import Path

from ksi_hooks import proc
from ksi_hooks.errors import CommandFailed, KsiError
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.proc import Process
from ksi_hooks.registry import ports
from ksi_hooks.registry.record import Record, State
from ksi_hooks.registry.store import live
from ksi_hooks.run import CLUSTER_MARK, Deadline, Tools
from ksi_hooks.tools import podman, scope

# What a creation may be in the middle of. Podman's shared helpers (pause process, network helpers, DNS) carry
# the mark of whichever cluster started them first and must live on for the user's others.
CREATORS = frozenset({"kind", "podman", "kubectl", "systemd-run", "crun", "runc"})
SHARED = frozenset(
    {"catatonit", "aardvark-dns", "slirp4netns", "pasta", "pasta.avx2", "podman pause", "fuse-overlayfs"}
)
COMMAND_SECONDS = 20.0
END_SECONDS = 3.0


def delete(context: Context, record: Record, deadline: Deadline) -> list[str]:
    """Delete a cluster with everything that belongs to it; returns what is left, one phrase each, or nothing.

    What is left stays recorded as `deleting` for the next hook or ksi-gc. Raises no KsiError: a deletion that
    could not be checked is a remainder too.
    """
    try:
        marked = record
        if record.state is not State.DELETING:
            marked = context.registry.update(dataclasses.replace(record, state=State.DELETING))
        remains = remove_parts(context, record, deadline)
        if not remains:
            _remove_network(context, marked, deadline)
            remains = _remove_files(context, record)
        if not remains:
            context.registry.remove(record)
    except KsiError as error:
        return [f"cannot verify: {error}"]
    return remains


def remove_parts(context: Context, record: Record, deadline: Deadline) -> list[str]:
    """Remove processes, containers and volumes of a cluster; returns what a second look still finds."""
    tools = context.tools_for(record.cluster) if context.user_dir.path.is_dir() else context.tools()
    while True:
        _end_creation(record, tools, context.uid)
        remains = _remove_once(record, tools, deadline)
        if not remains or deadline.passed:
            break
        time.sleep(0.2)
    if remains:
        return remains
    _end_processes(record, SHARED)
    if not ports.can_bind(record.port, context.settings.listen_address):
        # Nothing of the cluster is left to hold it: a program of somebody else's does, or the kernel for a
        # moment.
        _wait_for_port(record.port, context.settings.listen_address, deadline)
    return [f"process {p.pid} ({proc.name_of(p.pid)})" for p in _of_cluster(record, SHARED)]


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
    limit = deadline.left(COMMAND_SECONDS)
    containers = [c.name for c in podman.containers(tools, timeout=limit) if c.cluster == record.cluster]
    return containers, podman.volumes(tools, label=record.node_container, timeout=limit)


def _end_creation(record: Record, tools: Tools, uid: int) -> None:
    """End a creation that is still going on: its hook, then everything it started."""
    creator = record.creator
    unfinished = record.state is not State.READY and record.boot_id == proc.boot_id()
    if unfinished and creator.pid != os.getpid():
        proc.send(creator, signal.SIGKILL)
        proc.wait_gone([creator], END_SECONDS)
    scope_needed = [p for p in _of_cluster(record, frozenset()) if proc.name_of(p.pid) in CREATORS]
    if scope_needed:
        scope.kill(record.cluster, tools=tools, uid=uid)
    for process in scope_needed:
        proc.send(process, signal.SIGKILL)
    proc.wait_gone(scope_needed, END_SECONDS)


def _end_processes(record: Record, spared: frozenset[str]) -> None:
    """Wait for the helpers of the removed container (conmon, port forwarders) to go, and end those that do
    not.
    """
    for process in proc.wait_gone(_of_cluster(record, spared), END_SECONDS):
        proc.send(process, signal.SIGKILL)
    proc.wait_gone(_of_cluster(record, spared), END_SECONDS)


def _of_cluster(record: Record, spared: frozenset[str]) -> list[Process]:
    return [p for p in proc.marked(CLUSTER_MARK, record.cluster) if proc.name_of(p.pid) not in spared]


def _remove_network(context: Context, record: Record, deadline: Deadline) -> None:
    """Remove kind's network with the user's last cluster on the node.

    Under the user's lock: a claim made meanwhile either is seen here or finds no network and lets kind make
    it again.
    """
    with context.user_dir.locked():
        others = [
            r
            for r in live(context.registry.of_node(context.node).records)
            if r.uid == context.uid and r.cluster != record.cluster
        ]
        if others or podman.containers(context.tools(), timeout=deadline.left(COMMAND_SECONDS)):
            return
        podman.remove_network(context.tools(), podman.NETWORK, timeout=deadline.left(COMMAND_SECONDS))


def _remove_files(context: Context, record: Record) -> list[str]:
    """Remove the cluster's directories; only what carries its name and is the user's own is touched."""
    remains = []
    shared = context.registry.secrets_dir(record.cluster)
    for directory in (record.run_dir, shared):
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
