"""Judges the kernel and the user's session; pure."""

from collections.abc import Collection

from ksi_hooks.doctor.finding import Finding, error, ok, warning

MODULES = ("ip_tables", "iptable_nat", "ip6_tables", "ip6table_nat")
INOTIFY_INSTANCES = 512  # kind's known issues: each node container needs dozens
SUBORDINATE_IDS = 65536


def cgroups(*, v2: bool, uid: int) -> Finding:
    """Judge the cgroup version."""
    if v2:
        return ok("cgroups", "version 2")
    remedy = "boot with systemd.unified_cgroup_hierarchy=1"
    if uid != 0:
        return error("cgroups", "version 1", "rootless kind refuses to start", remedy)
    return warning("cgroups", "version 1", "works for root alone; users cannot have clusters", remedy)


def modules(present: Collection[str]) -> Finding:
    """Judge the kernel modules that a container cannot load itself."""
    missing = [name for name in MODULES if name not in present]
    if missing:
        return warning(
            "kernel modules",
            f"not loaded: {' '.join(missing)}",
            "kube-proxy cannot set its rules unless the kernel loads them on demand",
            f"modprobe -a {' '.join(missing)}; modules-load.d/ksi.conf does it at boot",
        )
    return ok("kernel modules", " ".join(MODULES))


def inotify(instances: int | None) -> Finding:
    """Judge the limit of inotify instances per user; None: unknown."""
    seen = f"fs.inotify.max_user_instances = {instances}"
    if instances is not None and instances < INOTIFY_INSTANCES:
        effect = "several clusters of one user fail with: too many open files"
        return warning("inotify", seen, effect, "sysctl fs.inotify.max_user_instances=8192")
    return ok("inotify", seen)


def session(*, user: str, uid: int, has_bus: bool, lingers: bool) -> Finding:
    """Judge the user's service manager."""
    name = "user session"
    if not has_bus:
        return error(
            name,
            f"no bus in /run/user/{uid}",
            "no scope for a cluster can be made",
            f"loginctl enable-linger {user}",
        )
    if not lingers:
        return warning(
            name,
            f"bus in /run/user/{uid}, no linger",
            "clusters end with the user's last login on this node",
            f"loginctl enable-linger {user}",
        )
    return ok(name, f"bus in /run/user/{uid}, linger on")


def subordinate_ids(user: str, uid: int, subuid: str, subgid: str) -> Finding:
    """Judge /etc/subuid and /etc/subgid, without which rootless Podman has no users in containers."""
    files = {"/etc/subuid": subuid, "/etc/subgid": subgid}
    poor = [name for name, text in files.items() if _ids(text, user, uid) < SUBORDINATE_IDS]
    if poor:
        return warning(
            "subordinate ids",
            f"fewer than {SUBORDINATE_IDS} for {user} in {' and '.join(poor)}",
            "rootless containers do not start, unless a name service hands them out",
            f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user} (a range of its own)",
        )
    return ok("subordinate ids", f"{_ids(subuid, user, uid)} in /etc/subuid")


def _ids(text: str, user: str, uid: int) -> int:
    rows = (line.strip().split(":") for line in text.splitlines())
    own = (row for row in rows if len(row) == 3 and row[0] in (user, str(uid)))
    return sum(int(row[2]) for row in own if row[2].isdecimal())
