"""Judges the registry, the run directory and the ports; pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks.doctor.finding import Finding, error, ok, warning
from ksi_hooks.doctor.lock_trial import Trial

NETWORK_TYPES = frozenset(
    {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "ceph", "fuse.ceph", "cifs", "smb3", "9p", "afs", "panfs"}
    | {"fuse.sshfs", "glusterfs", "fuse.glusterfs", "orangefs", "pvfs2", "wekafs", "virtiofs"}
)
PRIVATE_IN_JOBS = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))
LOCAL_LOCKS = frozenset({"nolock", "localflock", "noflock"})  # nfs(5), mount.lustre(8)
FEW_PORTS = 20


@dataclass(frozen=True)
class Mount:
    """Where a path is mounted from."""

    point: str
    type: str

    @property
    def is_network(self) -> bool:
        """True for a file system that several machines see."""
        return self.type in NETWORK_TYPES


def mount_of(path: Path, mountinfo: str) -> Mount:
    """Return the mount that a path lies on, from the text of /proc/self/mountinfo (proc(5))."""
    best = Mount("/", "?")
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        if len(fields) < 5 or not after:
            continue
        point = _unescaped(fields[4])
        if path.is_relative_to(point) and len(point) >= len(best.point):
            best = Mount(point, after.split()[0])
    return best


def risky_options(path: Path, mounts: str) -> list[str]:
    """Return the options of a path's mount that keep locks on one node (text of /proc/self/mounts)."""
    best, options = "", ""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) >= 4:
            point = _unescaped(fields[1])
            if path.is_relative_to(point) and len(point) >= len(best):
                best, options = point, fields[3]
    words = options.split(",")
    return [w for w in words if w in LOCAL_LOCKS or (w.startswith("local_lock=") and w != "local_lock=none")]


def locks(trials: Sequence[Trial], *, used: str, risky: Sequence[str]) -> list[Finding]:
    """Judge what the trial of each kind of lock has shown, and the options of the mount."""
    found = []
    for trial in trials:
        name = f"lock: {trial.kind}" + (" (in use)" if trial.kind == used else "")
        seen = f"{trial.holds} holds, never two at once, longest wait {trial.longest_wait * 1000:.0f} ms"
        if not trial.excludes:
            seen = trial.problem or f"{trial.overlaps} of {trial.holds} holds overlapped"
        if trial.excludes or trial.kind != used:
            found.append(ok(name, seen if trial.excludes else f"not for this file system: {seen}"))
        else:
            working = [t.kind for t in trials if t.excludes]
            remedy = f"set lock: {working[0]} on every node" if working else "mount it with locks"
            found.append(error(name, seen, "claims of ports and names wait or collide", remedy))
    if risky and used == "flock":
        effect = "each node has locks of its own, so two nodes hold one at the same time"
        remedy = "mount it without this option, or set lock: strict on every node"
        found.append(warning("lock: mount options", ", ".join(risky), effect, remedy))
    return found


def registry(path: Path, *, problem: str, hint: str, milliseconds: float) -> Finding:
    """Judge whether the registry could be written and locked; problem is empty when it could."""
    if problem:
        return error(
            "registry", problem, "no cluster can be recorded, so none is made", hint or "see registry_dir"
        )
    return ok("registry", f"{path}: written, locked and cleaned in {milliseconds:.0f} ms")


def registry_sharing(path: Path, mount: Mount, *, nodes: int) -> Finding:
    """Judge whether other nodes can see the registry."""
    seen = f"{path} on {mount.type}"
    if nodes > 1 and not mount.is_network:
        return warning(
            "registry storage",
            f"{seen}, and Slurm has {nodes} nodes",
            "jobs with several nodes do not find their cluster",
            "set registry_dir to a directory that all nodes share",
        )
    return ok("registry storage", seen)


def run_dir(path: Path, mount: Mount, *, problem: str, hint: str) -> list[Finding]:
    """Judge the user's directory on this node."""
    name = "run_dir"
    if problem:
        return [
            error(name, problem, "a cluster has no place for its kubeconfig and log", hint or "see run_dir")
        ]
    if mount.is_network:
        return [
            error(
                name,
                f"{path} on {mount.type}",
                "nodes would take each other's files for their own",
                "set run_dir to a directory on a local disk",
            )
        ]
    if any(path.is_relative_to(private) for private in PRIVATE_IN_JOBS):
        effect = "ksi-gc does not see it where a job-container plugin gives jobs a private /tmp"
        return [warning(name, str(path), effect, "set run_dir to a directory outside of /tmp")]
    return [ok(name, f"{path} on {mount.type}")]


def ports(port_range: tuple[int, int], free: int, ephemeral: Sequence[int]) -> list[Finding]:
    """Judge the range of K8S_PORT; ephemeral: the kernel's range for outgoing connections."""
    low, high = port_range
    size = high - low + 1
    seen = f"{free} of {size} free in {low}-{high}"
    remedy = "widen port_range in ksi.yaml, or end what uses the ports (ss -ltnp)"
    if free == 0:
        found = [error("ports", seen, "no cluster can be made", remedy)]
    elif free < min(FEW_PORTS, size):
        found = [warning("ports", seen, "jobs may find no free port", remedy)]
    else:
        found = [ok("ports", seen)]
    if len(ephemeral) == 2 and ephemeral[0] <= high and ephemeral[1] >= low:
        found.append(
            warning(
                "ephemeral ports",
                f"the kernel hands out {ephemeral[0]}-{ephemeral[1]}",
                "an outgoing connection may sit on a job's port",
                f"sysctl net.ipv4.ip_local_port_range='{high + 1} 60999', or another port_range",
            )
        )
    return found


def _unescaped(point: str) -> str:
    return point.replace(r"\040", " ").replace(r"\011", "\t").replace(r"\134", "\\")
