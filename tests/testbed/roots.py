"""Debian root directories, made with debootstrap, and layers of more packages over them."""

import shutil
from pathlib import Path

from testbed import command, packages, versions
from testbed.cache import Cache, key

# what a container does without; dpkg then leaves it out of everything that is installed later, too
EXCLUDES = """path-exclude=/usr/share/doc/*
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/locale/*
path-exclude=/usr/share/lintian/*
"""
STRIP = """
cd "$1"
rm -rf usr/share/doc/* usr/share/man/* usr/share/info/* usr/share/locale/* usr/share/lintian/*
rm -rf var/lib/apt/lists/* var/cache/apt/* var/cache/debconf/*-old var/log/* tmp/* usr/sbin/policy-rc.d
rm -f etc/resolv.conf etc/hostname
"""
INSTALL = """
root=$1 && shift
mount -t proc proc "$root/proc"
cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\\nexit 101\\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
chroot "$root" apt-get update
chroot "$root" apt-get install --yes --no-install-recommends "$@"
umount "$root/proc"
"""
OVERLAY = """
base=$1 work=$2 && shift 2
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/merged"
set -- "$work/merged" "$@"
"""
# an overlay marks a removed file by a device node; the archive of a layer has no use for those few
DROP_WHITEOUTS = 'find "$1" -type c -delete'


def base(cache: Cache) -> Path:
    """A small Debian root directory."""
    identity = key(versions.DEBIAN_SUITE, EXCLUDES, STRIP, bootstrap)
    return cache.artifact("debian-root", identity, lambda out: bootstrap(out, cache)) / "root"


def bootstrap(out: Path, cache: Cache) -> None:
    """Fill `out`/root."""
    log = cache.log("debian-root")
    argv = ["debootstrap", "--variant=minbase", versions.DEBIAN_SUITE, str(out / "root")]
    mirror = packages.mirror()
    command.run([*argv, mirror] if mirror else argv, log=log)
    configured = out / "root" / "etc" / "dpkg" / "dpkg.cfg.d" / "testbed"
    configured.write_text(EXCLUDES, encoding="utf-8")
    command.run(["sh", "-euc", STRIP, "sh", out / "root"], log=log)


def layer_identity(names: tuple[str, ...]) -> str:
    """The key of a layer of packages."""
    return key(versions.DEBIAN_SUITE, EXCLUDES, STRIP, INSTALL, OVERLAY, names, install_layer)


def layer(name: str, names: tuple[str, ...], cache: Cache) -> Path:
    """The directory with what packages add to the base root."""
    root = base(cache)
    make = cache.artifact(
        name, layer_identity(names), lambda out: install_layer(out, root, names, cache.log(name))
    )
    return make / "upper"


def install_layer(out: Path, root: Path, names: tuple[str, ...], log: Path) -> None:
    """Install packages over a root directory and keep what came in `out`/upper."""
    for part in ("upper", "work", "merged"):
        (out / part).mkdir()
    command.in_mount_namespace(OVERLAY + INSTALL, root, out, *names, log=log)
    command.run(["sh", "-euc", STRIP + DROP_WHITEOUTS, "sh", out / "upper"], log=log)
    shutil.rmtree(out / "work")
    (out / "merged").rmdir()


def install_whole(root: Path, to: Path, names: tuple[str, ...], log: Path) -> None:
    """Make a copy of a root directory that has more packages."""
    command.run(["cp", "--archive", root, to], log=log)
    command.in_mount_namespace(INSTALL, to, *names, log=log)
    command.run(["sh", "-euc", STRIP, "sh", to], log=log)
