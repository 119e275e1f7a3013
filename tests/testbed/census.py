"""Counts what clusters leave on a machine: in Podman, among processes and ports, in files."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed import command, processes
from testbed.processes import PROC

KINDS = ("container", "volume", "network", "process", "port", "directory", "record", "note", "marker")
MARK = re.compile(rb"(?:^|\0)KSI_CREATING=([^\0]*)")
NODE = "-control-plane"
LABEL = "io.x-k8s.kind.cluster"
NAMED = re.compile(rb"(ksi-(?:\d+|local)-[0-9a-f]{5})\b|\0-n\0([a-z0-9.-]+)-control-plane\0")
PODMAN_TRIES = 5  # a listing fails when something that it is about to show is removed
CLUSTER = re.compile(r"ksi-(?:\d+|local)-[0-9a-f]{5}")
NODE_PORTS = range(30000, 32768)
LISTENING = "0A"
# Podman's helper for all networks has the mark of whichever cluster came first and ends with the last one.
SHARED = ("aardvark-dns",)


@dataclass(frozen=True, order=True)
class Thing:
    """Something that exists now; cluster is empty when it belongs to none that can be told."""

    kind: str
    name: str
    cluster: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def of_podman(podman: Path) -> set[Thing]:
    """Containers, volumes and networks of a store; Podman's own network is always there: not counted."""
    found = set()
    for row in _json([podman, "ps", "--all", "--format", "json"]):
        found.add(Thing("container", row["Names"][0], (row.get("Labels") or {}).get(LABEL, "")))
    for row in _json([podman, "volume", "ls", "--format", "json"]):
        labels = row.get("Labels") or {}
        cluster = next((label.removesuffix(NODE) for label in labels if label.endswith(NODE)), "")
        found.add(Thing("volume", f"{row['Name'][:12]} {cluster}", cluster))
    for row in _json([podman, "network", "ls", "--format", "json"]):
        if row["name"] != "podman":
            found.add(Thing("network", row["name"]))
    return found


def of_processes() -> set[Thing]:
    """Processes of some cluster: hooks' children by their mark, conmon and node programs by arguments."""
    found = set()
    for pid, cluster in _processes_of_clusters().items():
        name = _name_of(pid)
        if name and name not in SHARED:
            found.add(Thing("process", f"{pid} {name} of {cluster}", cluster))
    return found


def of_ports() -> set[Thing]:
    """Node ports on which something listens."""
    of_clusters = _processes_of_clusters()
    inodes = _socket_owners(of_clusters)
    found = set()
    for table in ("tcp", "tcp6"):
        for line in (PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
            words = line.split()
            port = int(words[1].rpartition(":")[2], 16)
            if words[3] == LISTENING and port in NODE_PORTS:
                cluster = of_clusters.get(inodes.get(words[9], 0), "")
                found.add(Thing("port", str(port), cluster))
    return found


def of_files(*, run_root: Path, registry: Path, node_state: Path) -> set[Thing]:
    """Directories of clusters, records, and what hooks noted about jobs; logs are meant to stay."""
    patterns = [
        ("directory", run_root, "*/ksi-*"),
        ("directory", registry, "secrets-*"),
        ("record", registry, "*.json"),
        ("record", registry, "*/*.json"),
        ("record", registry, "**/.*.json.*"),
        ("note", run_root, "*/jobs/*"),
        ("note", run_root, "*/answers/*.asking"),
        ("marker", node_state, "jobs/*"),
    ]
    return {
        Thing(kind, str(path.relative_to(top.parent)), cluster_in(path.name))
        for kind, top, pattern in patterns
        if top.is_dir()
        for path in top.glob(pattern)
    }


def left(before: set[Thing], after: set[Thing], *, ours: Callable[[str], bool]) -> list[Thing]:
    """What is new, sorted; what clusters of other sites on this machine brought meanwhile does not count."""
    new = after - before
    foreign = {thing for thing in after if thing.cluster and not ours(thing.cluster)}
    others_run = any(thing.kind == "container" for thing in foreign)
    shared = {thing for thing in new if thing.kind == "network" and others_run}
    return sorted(new - foreign - shared)


def everything(podman: Path, prefix: Path) -> set[Thing]:
    """All things at once, for a site whose directories lie below a prefix."""
    files = of_files(run_root=prefix / "run", registry=prefix / "registry", node_state=prefix / "node")
    return of_podman(podman) | of_processes() | of_ports() | files


def listing(things: set[Thing]) -> str:
    """One line for each thing."""
    return "\n".join(sorted("\t".join((thing.kind, thing.name, thing.cluster)) for thing in things))


def parse(text: str) -> set[Thing]:
    """Things from their listing."""
    return {Thing(*line.split("\t")) for line in text.splitlines() if line}


def table(before: set[Thing], during: set[Thing], after: set[Thing], left: list[Thing]) -> str:
    """The number of each kind of thing at three moments, and the names of what is left."""
    rows = [f"{'':<12}{'before':>8}{'during':>8}{'after':>8}{'left':>8}"]
    for kind in KINDS:
        counts = [sum(thing.kind == kind for thing in things) for things in (before, during, after, left)]
        rows.append(f"{kind:<12}" + "".join(f"{count:>8}" for count in counts))
    return "\n".join([*rows, *(f"left: {thing}" for thing in left)])


def job_of(cluster: str) -> int:
    """The job id in the name of a cluster or its node; -1 without one."""
    words = cluster.split("-")
    return int(words[1]) if words[0] == "ksi" and words[1].isdecimal() else -1


def cluster_in(text: str) -> str:
    """The first name of a cluster in a text; empty without one."""
    match = CLUSTER.search(text)
    return match.group() if match else ""


def _processes_of_clusters() -> dict[int, str]:
    """Process ids and the names of their clusters; zombies have ended."""
    found = {}
    for pid in processes.everyone():
        try:
            match = MARK.search((PROC / str(pid) / "environ").read_bytes())
            match = match or NAMED.search((PROC / str(pid) / "cmdline").read_bytes())
        except OSError:
            continue
        fields = processes.stat_fields(pid)
        if match and fields and fields[0] != "Z":
            found[pid] = next(filter(None, match.groups()), b"").decode(errors="replace")
    return found


def _name_of(pid: int) -> str:
    try:
        return (PROC / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _socket_owners(pids: Iterable[int]) -> dict[str, int]:
    owners = {}
    for pid in pids:
        try:
            links = [str(entry.readlink()) for entry in (PROC / str(pid) / "fd").iterdir()]
        except OSError:
            continue
        owners |= {link[8:-1]: pid for link in links if link.startswith("socket:[")}
    return owners


def _json(argv: list[str | Path]) -> list[dict]:
    for left in reversed(range(PODMAN_TRIES)):
        try:
            text = command.capture(argv)
            return json.loads(text) if text.strip() else []
        except command.TestbedError:
            if not left:
                raise
    return []
