"""A Podman of the testbed's own: configuration, storage and state apart from the machine's."""

import os
import resource
from hashlib import sha256
from pathlib import Path

from testbed import command, versions
from testbed.cache import Cache

OPEN_FILES = PROCESSES = 20000  # what a container gets, unless this machine allows less
CONTAINERS_CONF = """[containers]
default_ulimits = ["nofile={files}:{files}", "nproc={processes}:{processes}"]
log_driver = "k8s-file"
[engine]
runtime = "runc"
cgroup_manager = "{cgroups}"
events_logger = "file"
static_dir = "{home}/libpod"
volume_path = "{home}/volumes"
tmp_dir = "{run}/libpod"
[network]
network_backend = "netavark"
network_config_dir = "{home}/networks"
"""
STORAGE_CONF = """[storage]
driver = "overlay"
graphroot = "{home}/storage"
runroot = "{run}/storage"
"""
WRAPPER = """#!/bin/sh
# Podman with the testbed's own configuration, storage and state.
CONTAINERS_CONF={home}/containers.conf CONTAINERS_STORAGE_CONF={home}/storage.conf
export CONTAINERS_CONF CONTAINERS_STORAGE_CONF
exec /usr/bin/podman "$@"
"""


def bin_dir(root: Path) -> Path:
    """The directory with kind, kubectl and the podman wrapper."""
    return root / "bin"


def install(cache: Cache, built: dict[str, Path]) -> None:
    """Write the configuration and fill the directory of programs; cheap, done at each build."""
    home = cache.root / "podman"
    home.mkdir(parents=True, exist_ok=True)
    Path("/lib/modules").mkdir(parents=True, exist_ok=True)  # kind mounts it into every node
    values = {
        "home": home,
        "run": f"/run/ksi-testbed-{sha256(os.fsencode(home)).hexdigest()[:8]}",
        "cgroups": "systemd" if Path("/run/systemd/system").is_dir() else "cgroupfs",
        "files": min(OPEN_FILES, hard_limit(resource.RLIMIT_NOFILE)),
        "processes": min(PROCESSES, hard_limit(resource.RLIMIT_NPROC)),
    }
    (home / "containers.conf").write_text(CONTAINERS_CONF.format(**values), encoding="utf-8")
    (home / "storage.conf").write_text(STORAGE_CONF.format(**values), encoding="utf-8")
    programs = bin_dir(cache.root)
    programs.mkdir(exist_ok=True)
    wrapper = programs / "podman"
    wrapper.write_text(WRAPPER.format(**values), encoding="utf-8")
    wrapper.chmod(0o755)
    for name, source in {"kind": built["kind"], "kubectl": built["kubernetes"]}.items():
        link = programs / f".{name}.new"
        link.unlink(missing_ok=True)
        link.symlink_to(source / "bin" / name)
        link.rename(programs / name)


def hard_limit(which: int) -> int:
    """A hard resource limit, where no limit counts as a large one."""
    limit = resource.getrlimit(which)[1]
    return 2**31 if limit == resource.RLIM_INFINITY else limit


def load(cache: Cache, image: Path) -> None:
    """Put the node image into the store, unless that very image is there."""
    podman = bin_dir(cache.root) / "podman"
    loaded = cache.root / "podman" / "loaded"
    wanted = image.parent.name
    present = command.succeeds([podman, "image", "exists", versions.NODE_IMAGE])
    if present and loaded.exists() and loaded.read_text(encoding="utf-8") == wanted:
        cache.progress.skip("load-image")
        return
    log = cache.log("load-image")
    with cache.progress.step("load-image"):
        loaded.unlink(missing_ok=True)
        command.run([podman, "load", "--input", image], log=log)
        command.run([podman, "image", "prune", "--force"], log=log)
        loaded.write_text(wanted, encoding="utf-8")
