"""Why a creation failed: kind's output told apart into causes, each with a remedy; pure."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """A known reason; passing ones are worth another try."""

    pattern: str
    reason: str
    hint: str
    passes: bool = False


# Most specific first. The texts are those of runc, crun, Podman, kind and kubeadm.
CAUSES = (
    Cause(
        r"network name kind already used|network already exists|unable to find network with name or id kind",
        "another of the user's clusters made or removed kind's network at the same moment",
        "try again",
        passes=True,
    ),
    Cause(
        r"keyring.*quota exceeded",
        "the user's quota of kernel keys is used up",
        "raise kernel.keys.maxkeys and maxbytes, or run fewer clusters per user and node",
    ),
    Cause(
        r"too many open files|inotify_init",
        "the user's inotify instances are used up",
        "raise fs.inotify.max_user_instances to 8192 on the node",
    ),
    Cause(
        r"nf_conntrack_max: permission denied",
        "kube-proxy may not set conntrack limits",
        "set conntrack maxPerCore to 0 in kind_config",
    ),
    Cause(r"accept_dad: no such file", "IPv6 is switched off in the kernel", "boot without ipv6.disable=1"),
    Cause(
        r"ip6?tables.*table does not exist|can't initialize ip6?tables",
        "the kernel lacks ip_tables or ip6_tables modules",
        "load ip_tables, ip6_tables, iptable_nat, ip6table_nat (modules-load.d)",
    ),
    Cause(
        r"failed to mount rootfs component|overlay.*not supported",
        "the storage of containers cannot nest",
        "put Podman's storage on local ext4 or xfs",
    ),
    Cause(r"no space left on device", "the disk of Podman's storage is full", "free space on the node"),
    Cause(r"disk quota exceeded", "the user's disk quota is used up", "free space, or put storage elsewhere"),
    Cause(
        r"toomanyrequests|rate limit",
        "the image registry's rate limit is reached",
        "load the node image on the node",
    ),
    Cause(
        r"no such host|network is unreachable|i/o timeout",
        "the network does not reach the image registry",
        "load the node image on the node",
    ),
    Cause(
        r"manifest unknown|name unknown",
        "the image registry does not know the node image",
        "check node_image in ksi.yaml",
    ),
    Cause(
        r"running kind with rootless provider requires|controller.*not delegated|requires cgroup v2",
        "the user's cgroup lacks controllers that kind needs (cgroup v2 with cpu, memory, pids)",
        "the administrator installs user@.service.d/ksi.conf (Delegate=yes)",
    ),
    Cause(
        r"could not find a log line that matches",
        "the cluster node did not boot: the node may be short of resources",
        "try again or on another node; ksi doctor tells what is short",
        passes=True,
    ),
    Cause(
        r"timed out waiting for the condition|context deadline exceeded",
        "the control plane did not come up in time",
        "try again or on another node",
        passes=True,
    ),
    Cause(
        r"connection (?:refused|reset)", "the API server went away during the start", "try again", passes=True
    ),
)
PORT_IN_USE = re.compile(r"address already in use|port is already allocated", re.IGNORECASE)


def port_in_use(output: str) -> bool:
    """True when the host port was taken between looking and binding."""
    return PORT_IN_USE.search(output) is not None


def explain(output: str) -> Cause | None:
    """Return the first cause that the output shows."""
    return next((cause for cause in CAUSES if re.search(cause.pattern, output, re.IGNORECASE)), None)
