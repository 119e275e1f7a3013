"""What exists of a kind cluster: container, volumes, conmon, port; and how to remove it."""

import contextlib
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import command, processes

LABEL = "io.x-k8s.kind.cluster"


@dataclass(frozen=True)
class Remains:
    """A cluster by its kind name, seen through the real podman, so that looking is not counted."""

    cluster: str
    port: int
    podman: Path

    @property
    def node(self) -> str:
        """The name of the node container, which also labels its volumes."""
        return f"{self.cluster}-control-plane"

    def listed(self) -> list[str]:
        """What Podman knows of it, and what can be seen without it; nothing when all of it is gone."""
        found = [f"container {name}" for name in self.containers()]
        found += [f"volume {name}" for name in self.volumes()]
        found += [f"conmon {pid}" for pid in self.conmons()]
        return found if _can_bind(self.port) else [*found, f"port {self.port}"]

    def containers(self) -> list[str]:
        """Names of its containers, running or not."""
        rows = self._ask(["ps", "--all", "--filter", f"label={LABEL}={self.cluster}", "--format", "json"])
        return [row["Names"][0] for row in rows]

    def volumes(self) -> dict[str, Path]:
        """Names of its node's volumes, each with the directory of its files."""
        rows = self._ask(["volume", "ls", "--format", "json"])
        own = [row for row in rows if self.node in (row.get("Labels") or {})]
        return {row["Name"]: Path(row["Mountpoint"]).parent for row in own}

    def conmons(self) -> list[int]:
        """Process ids of the conmon of its node."""
        found = []
        for pid in processes.everyone():
            with contextlib.suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_bytes() == b"conmon\n":
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                    found += [pid] if self.node.encode() in words else []
        return found

    def first_process(self) -> int | None:
        """The process id of the container's init."""
        conmons = self.conmons()
        for pid in processes.everyone() if conmons else []:
            fields = processes.stat_fields(pid)
            if fields and int(fields[1]) == conmons[0]:
                return pid
        return None

    def remove(self) -> None:
        """Remove what is left, by name and label only: the store is used by others."""
        if containers := self.containers():
            command.succeeds([self.podman, "rm", "--force", "--time", "0", "--volumes", *containers])
        if volumes := self.volumes():
            command.succeeds([self.podman, "volume", "rm", "--force", *volumes])

    def _ask(self, arguments: list[str]) -> list[dict[str, Any]]:
        answer = command.capture([self.podman, *arguments])
        rows: list[dict[str, Any]] | None = json.loads(answer) if answer.strip() else None
        return rows or []


def clusters_of_job(podman: Path, job: str) -> list[str]:
    """Names of the clusters that ksi_hooks made for a job and Podman still has."""
    answer = command.capture([podman, "ps", "--all", "--filter", f"label={LABEL}", "--format", "json"])
    labels = [(row.get("Labels") or {}).get(LABEL, "") for row in json.loads(answer or "null") or []]
    return [name for name in labels if name.startswith(f"ksi-{job}-")]


def _can_bind(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
