"""The environment that programs get: built for a user, never copied from a job."""

import contextlib
import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path

# Every program started for a cluster carries its name here, so that whoever deletes the cluster later finds
# them all, whatever sessions they have made (see proc.marked).
CLUSTER_MARK = "KSI_CREATING"
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def base_environment(path: Sequence[Path], uid: int, wishes: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for programs of a user: nothing of the job's but proxies and Slurm's
    configuration.
    """
    environment = {
        "PATH": ":".join(map(str, path)),
        "LC_ALL": "C.UTF-8",
        "KIND_EXPERIMENTAL_PROVIDER": "podman",
    }
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(uid)
        environment |= {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
    environment |= {name: wishes[name] for name in (*PROXIES, "SLURM_CONF") if name in wishes}
    # A value inherited from the login node often names a directory that this node does not have.
    candidates = [Path(p) for p in (wishes.get("XDG_RUNTIME_DIR"), f"/run/user/{uid}") if p]
    usable = [path for path in candidates if _is_own_dir(path, uid)]
    with_bus = [path for path in usable if (path / "bus").is_socket()]
    if runtime_dir := next(iter(with_bus + usable), None):
        environment["XDG_RUNTIME_DIR"] = os.fspath(runtime_dir)
        if (runtime_dir / "bus").is_socket():
            environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={runtime_dir}/bus"
    return environment


def _is_own_dir(path: Path, uid: int) -> bool:
    try:
        return path.is_dir() and path.stat().st_uid == uid
    except OSError:
        return False
