"""Builds everything the native testbed needs, in order, skipping what the cache has."""

import os
from pathlib import Path

from testbed import command, images, node_image, packages, podman, programs, toolchain
from testbed.cache import Cache
from testbed.progress import Progress

STEPS = 18


def everything(root: Path) -> Cache:
    """Build programs, images and Podman's store; return the cache they are in."""
    require_root()
    cache = Cache(root, Progress(STEPS))
    with cache.locked():
        wanted = (*packages.BUILD, *packages.PODMAN, *packages.SLURM)
        install_packages(cache, wanted)
        go = toolchain.find(cache)
        built = {program.name: programs.artifact(program, go, cache) for program in programs.ALL}
        archives = [images.control_plane(built, cache), images.workload(cache)]
        image = node_image.build(built, archives, cache)
        podman.install(cache, built)
        podman.load(cache, image)
    return cache


def slurm(root: Path) -> None:
    """Install what a Slurm site needs, and no more."""
    require_root()
    cache = Cache(root, Progress(1))
    with cache.locked():
        install_packages(cache, packages.SLURM)


def require_root() -> None:
    """The native testbed installs packages, mounts, and runs Podman and Slurm as root."""
    if os.geteuid() != 0:
        raise command.TestbedError("the native testbed needs root")


def install_packages(cache: Cache, names: tuple[str, ...]) -> None:
    """Install the Debian packages that are missing."""
    if missing := packages.missing(names):
        with cache.progress.step(f"packages {' '.join(missing)}"):
            packages.install(missing, cache.log("packages"))
    else:
        cache.progress.skip("packages")
