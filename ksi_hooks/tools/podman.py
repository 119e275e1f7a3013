"""Podman: what exists of a cluster, and removing it; names and labels are compared whole."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ksi_hooks.errors import CommandFailed, KsiError
from ksi_hooks.run import Tools

CLUSTER_LABEL = "io.x-k8s.kind.cluster"  # set by kind on every node container
NETWORK = "kind"


@dataclass(frozen=True)
class Container:
    """A node container of a kind cluster; created in epoch seconds."""

    name: str
    cluster: str
    created: float


def version(tools: Tools, *, timeout: float) -> str:
    """Return Podman's version."""
    return tools.capture(["podman", "--version"], timeout=timeout).rpartition(" ")[2].strip()


def info(tools: Tools, *, timeout: float) -> dict[str, Any]:
    """Return what `podman info` says about host and store."""
    answer = _json(tools, ["info", "--format", "json"], timeout)
    if not isinstance(answer, dict):
        raise KsiError("podman info gave no answer that can be read")
    return answer


def image_exists(tools: Tools, image: str, *, timeout: float) -> bool:
    """True when the image is in the user's store; raises CommandFailed when Podman cannot tell."""
    status, _ = tools.status(["podman", "image", "exists", image], timeout=timeout)
    if status not in (0, 1):
        raise CommandFailed(["podman", "image", "exists", image], status, "")
    return status == 0


def containers(tools: Tools, *, timeout: float) -> list[Container]:
    """Return the node containers of all kind clusters in this store, running or not."""
    rows = _json(tools, ["ps", "--all", "--filter", f"label={CLUSTER_LABEL}", "--format", "json"], timeout)
    return [
        Container(row["Names"][0], (row.get("Labels") or {}).get(CLUSTER_LABEL, ""), float(row["Created"]))
        for row in rows or []
    ]


def volumes(tools: Tools, *, label: str, timeout: float) -> list[str]:
    """Return the volumes that have exactly this label; kind labels a node's volume with the node's name."""
    rows = _json(tools, ["volume", "ls", "--format", "json"], timeout)
    return [row["Name"] for row in rows or [] if label in (row.get("Labels") or {})]


def remove_containers(tools: Tools, names: Sequence[str], *, timeout: float) -> None:
    """Remove containers at once: nothing in a cluster that is thrown away is worth a stop grace (10 s by
    default).
    """
    tools.run(["podman", "rm", "--force", "--time", "0", "--volumes", *names], timeout=timeout, ok=(0, 1))


def remove_volumes(tools: Tools, names: Sequence[str], *, timeout: float) -> None:
    """Remove volumes; one that has gone meanwhile is no error, and the caller looks again anyway."""
    tools.run(["podman", "volume", "rm", "--force", *names], timeout=timeout, ok=(0, 1))


def remove_network(tools: Tools, name: str, *, timeout: float) -> None:
    """Remove an unused network; status 1 is "no such network", 2 "in use" (podman-network-rm)."""
    tools.run(["podman", "network", "rm", name], timeout=timeout, ok=(0, 1, 2))


def _json(tools: Tools, arguments: list[str], timeout: float) -> Any:  # noqa: ANN401 - whatever the JSON holds
    answer = tools.capture(["podman", *arguments], timeout=timeout)
    try:
        return json.loads(answer) if answer.strip() else None
    except ValueError as error:
        raise KsiError(f"podman {arguments[0]} gave no JSON: {answer.strip()[:80]}") from error
