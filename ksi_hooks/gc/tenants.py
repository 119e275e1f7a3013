"""Acting in a tenant's Podman store: always as that tenant, never as root."""

import json
import os
import pwd
import sys
from pathlib import Path

from ksi_hooks.config import Settings
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import CommandFailed, KsiError
from ksi_hooks.gc import tenant
from ksi_hooks.gc.sweep import Found
from ksi_hooks.run import Tools, as_user

MARGIN_SECONDS = 5.0
# The tenant's own Podman configuration decides what runs in there, outside of his jobs' limits.
TENANT_LIMITS = ("UMask=0077", "MemoryMax=1G", "MemorySwapMax=0", "TasksMax=256", "CPUWeight=20")
MAX_CLUSTERS, MAX_PHRASES, MAX_CHARACTERS = 1000, 20, 300


def clusters(config_file: Path, settings: Settings, node: str, uid: int, *, tidy: bool = True) -> list[Found]:
    """Return the kind clusters in a user's store, after tidying his run directory where that is wanted.

    Raises KsiError when they could not be listed.
    """
    if uid == os.geteuid():
        if tidy:
            tenant.tidy(settings, node)
        return [Found(name, uid, created) for name, created in tenant.clusters(settings, node)]
    answer = _as_tenant(config_file, settings, uid, ["tidy" if tidy else "list", node])
    if not isinstance(answer, list):
        raise KsiError(f"no answer that can be read from the process of user {uid}")
    try:
        return [Found(str(name), uid, float(created)) for name, created in answer[:MAX_CLUSTERS]]
    except (TypeError, ValueError, OverflowError) as error:
        raise KsiError(f"no answer that can be read from the process of user {uid}") from error


def delete(
    config_file: Path, settings: Settings, node: str, uid: int, names: list[str]
) -> dict[str, list[str]]:
    """Delete a user's clusters on this node; returns for each what is left of it, nothing when it is gone.

    Raises KsiError when the user's process cannot be started or gives no answer in gc_tenant_timeout.
    """
    if uid == os.geteuid():
        return tenant.delete(settings, node, names)
    answer = _as_tenant(config_file, settings, uid, ["delete", node, *names])
    if not isinstance(answer, dict):
        raise KsiError(f"no answer that can be read from the process of user {uid}")
    return {name: _phrases(answer.get(name)) for name in names}


def is_known(uid: int) -> bool:
    """True when this node can tell who that is."""
    try:
        return pwd.getpwuid(uid) is not None
    except KeyError:
        return False


def _phrases(left: object) -> list[str]:
    """Return what a tenant's process says is left; it is his word, which ends in syslog and on terminals."""
    if not isinstance(left, list):
        return ["not tried"]
    return [_clean(str(part)) for part in left[:MAX_PHRASES]]


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text[:MAX_CHARACTERS])


def _as_tenant(config_file: Path, settings: Settings, uid: int, arguments: list[str]) -> object:
    if os.geteuid() != 0:
        raise KsiError(f"only root can act for user {uid}", hint="run it as root, or as that user")
    action, *rest = arguments
    seconds = f"{settings.gc_tenant_timeout:g}"
    program = [sys.executable, "-I", str(Path(tenant.__file__)), str(config_file), action, seconds, *rest]
    # No proxies: deleting needs none, and a password in them would stand in systemd-run's arguments.
    wishes = {"XDG_RUNTIME_DIR": f"/run/user/{uid}"}
    wishes |= {"SLURM_CONF": os.environ["SLURM_CONF"]} if "SLURM_CONF" in os.environ else {}
    environment = base_environment(settings.tools_path, uid, wishes)
    try:
        status, answer = _start(settings, uid, program, environment)
        return json.loads(answer) if status == 0 else _fail(uid, answer)
    except KeyError as error:
        raise KsiError(f"user {uid} is not known on this node", hint="look at the name service") from error
    except (CommandFailed, OSError, ValueError, RecursionError) as error:
        raise KsiError(f"acting as user {uid} failed: {_clean(str(error))}") from error


def _start(settings: Settings, uid: int, program: list[str], environment: dict[str, str]) -> tuple[int, str]:
    timeout = settings.gc_tenant_timeout + MARGIN_SECONDS
    if not Path("/run/systemd/system").is_dir():
        return as_user(program, uid, timeout=timeout, environment=environment)
    # A service of its own: outside of our cgroup, and ended by systemd should we be killed.
    properties = [f"--property={name}" for name in (f"RuntimeMaxSec={timeout:g}", *TENANT_LIMITS)]
    gid = pwd.getpwuid(uid).pw_gid
    command = [
        "systemd-run",
        "--quiet",
        "--wait",
        "--pipe",
        "--collect",
        f"--uid={uid}",
        f"--gid={gid}",
        *properties,
    ]
    command += [f"--setenv={name}={value}" for name, value in environment.items()]
    return Tools(settings.tools_path, {"PATH": environment["PATH"]}).status(
        [*command, "--", *program], timeout=timeout + MARGIN_SECONDS
    )


def _fail(uid: int, answer: str) -> object:
    last = answer.strip().splitlines()[-1] if answer.strip() else "no output"
    raise KsiError(f"acting as user {uid} failed: {_clean(last)}")
