"""Judges programs, Podman's own view of the node, and the node image; pure."""

import re
from collections.abc import Mapping
from typing import Any

from ksi_hooks.doctor.finding import Finding, error, ok, warning

# The oldest that are known to work; older ones lack options that we use.
OLDEST = {"kind": (0, 20), "podman": (4, 3), "kubectl": (1, 28)}
CONTROLLERS = ("cpu", "memory", "pids")  # kind refuses a rootless provider without them
SLOW_DRIVERS = ("vfs",)
LOW_SPACE = 10 * 2**30


def program(name: str, *, version: str | None, problem: str, needed: bool) -> Finding:
    """Judge one program; version None: it could not be asked, problem tells why."""
    if version is None:
        effect = "no cluster can be made" if needed else "jobs cannot be asked for; only ksi run works"
        found = error if needed else warning
        return found(name, problem, effect, f"install {name}, or set tools_path in ksi.yaml")
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    oldest = OLDEST.get(name, ())
    if numbers and oldest and numbers < oldest:
        wanted = ".".join(map(str, oldest))
        return warning(name, version, "older than what is known to work", f"install {name} {wanted} or newer")
    return ok(name, version)


def podman_store(info: Mapping[str, Any], *, free_bytes: int, network: bool, uid: int) -> list[Finding]:
    """Judge what `podman info` says about storage and cgroups."""
    store, host = info.get("store", {}), info.get("host", {})
    root = str(store.get("graphRoot", "?"))
    found = [_driver(str(store.get("graphDriverName", "?")), root, network=network)]
    gib = f"{free_bytes / 2**30:.0f} GiB free below {root}"
    if free_bytes < LOW_SPACE:
        found.append(warning("storage space", gib, "an image and a cluster need several GiB", "free space"))
    else:
        found.append(ok("storage space", gib))
    if uid != 0:
        found.append(_controllers(host.get("cgroupControllers") or []))
    return found


def node_image(image: str | None, *, present: bool | None, problem: str = "") -> Finding:
    """Judge the node image; present None: Podman could not be asked."""
    if image is None:
        return warning(
            "node image",
            "not set, kind's own default",
            "the first cluster downloads it, which fails without a network",
            "load an image on the nodes and set node_image in ksi.yaml",
        )
    if present:
        return ok("node image", image)
    seen = f"{image}: {problem}" if present is None else f"not in this user's store: {image}"
    return error(
        "node image", seen, "no cluster can be made", f"podman load or podman pull {image}, on each node"
    )


def _driver(driver: str, root: str, *, network: bool) -> Finding:
    seen = f"{driver} in {root}"
    if network:
        return error(
            "podman storage",
            f"{seen} on a network file system",
            "containers cannot be stored there",
            "put it on a local disk: rootless_storage_path in storage.conf",
        )
    if driver in SLOW_DRIVERS:
        return warning(
            "podman storage", seen, "each cluster copies its whole image", "use overlay in storage.conf"
        )
    return ok("podman storage", seen)


def _controllers(controllers: list[str]) -> Finding:
    missing = [name for name in CONTROLLERS if name not in controllers]
    seen = f"this process has {' '.join(controllers) or 'none'}"
    if missing:
        # A login session or a Slurm step may lack one; the scope that clusters are made in does not.
        return warning(
            "cgroup controllers",
            f"{seen}, not {' '.join(missing)}",
            "kind refuses to start unless the user's service manager has them",
            "install user@.service.d/ksi.conf (ksi install writes it), then log in again",
        )
    return ok("cgroup controllers", seen)
