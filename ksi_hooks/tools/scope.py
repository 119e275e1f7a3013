"""The one place that decides in which cgroup a command lives that leaves something running."""

import dataclasses
from pathlib import Path

from ksi_hooks.errors import CommandFailed, KsiError
from ksi_hooks.run import Tools

# A scope for each work: that of the creation still exists, for Podman's helpers, while images load.
CREATE = "create"
LOAD = "load"


def unit_of(cluster: str, work: str) -> str:
    """Return the name of the scope in which a work on a cluster is done."""
    return f"{cluster}-{work}.scope"


def enter(tools: Tools, work: str, *, cluster: str, uid: int) -> Tools:
    """Return tools whose programs start in a scope of the user's manager, where the user is not root.

    What is started in a Slurm step's cgroup dies with the step, and that cgroup may lack controllers kind
    needs. Root's Podman asks nobody for a cgroup and runs directly. Raises KsiError when the user has no
    manager to ask.
    """
    if uid == 0:
        return tools
    _require_bus(tools, uid)
    command = ["systemd-run", "--user", "--scope", "--quiet", "--collect", f"--unit={unit_of(cluster, work)}"]
    return dataclasses.replace(tools, prefix=(*command, "--property=Delegate=yes", "--"))


def kill(cluster: str, *, tools: Tools, uid: int, timeout: float) -> None:
    """End everything in the cluster's scopes; no error when there is none."""
    if uid == 0 or "DBUS_SESSION_BUS_ADDRESS" not in tools.environment:
        return
    try:
        for unit in (unit_of(cluster, work) for work in (CREATE, LOAD)):
            tools.status(["systemctl", "--user", "kill", "--signal=SIGKILL", unit], timeout=timeout)
    except CommandFailed as error:
        raise KsiError(f"the user's service manager does not answer: {error}", hint="try again") from error


def _require_bus(tools: Tools, uid: int) -> None:
    if "DBUS_SESSION_BUS_ADDRESS" in tools.environment:
        return
    runtime_dir = tools.environment.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"
    state = "has no bus" if Path(runtime_dir).is_dir() else "does not exist"
    user = tools.environment.get("USER", str(uid))
    raise KsiError(
        f"no user service manager on this node: {runtime_dir} {state}",
        hint=f"the administrator installs ksi-prolog, or runs: loginctl enable-linger {user}",
    )
