"""Users who are not root: their ids, their user managers, and an interpreter that they may read."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import ksi_hooks
from fakes.sites import Site

NAMES = ("nobody", "daemon")  # users of every system, who here own nothing but a directory of the test
PACKAGES = ("yaml", "jinja2", "markupsafe", "filelock")


class Tenant:
    """A user of a site, as far as a job can tell: an id, and a user manager with a bus."""

    def __init__(self, site: Site, name: str) -> None:
        self.uid = pwd.getpwnam(name).pw_uid
        self.runtime_dir = site.base / f"runtime-{name}"
        self.runtime_dir.mkdir(mode=0o700)
        self._bus = socket.socket(socket.AF_UNIX)
        self._bus.bind(str(self.runtime_dir / "bus"))
        os.chown(self.runtime_dir, self.uid, self.uid)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a job of this user needs to find the bus."""
        return {"XDG_RUNTIME_DIR": str(self.runtime_dir)}

    def close(self) -> None:
        """Let the bus go."""
        self._bus.close()


def can_run(python: str, uid: int, code: str) -> bool:
    """True when this user can run this code with this interpreter."""
    command = [python, "-I", "-c", code]
    try:
        done = subprocess.run(command, user=uid, group=uid, extra_groups=[], capture_output=True, timeout=30)
    except OSError:
        return False
    return done.returncode == 0


def make_python(place: Path) -> tuple[str, Path] | None:
    """Make an interpreter with the package that everybody may read, or return None when there is none."""
    uid = pwd.getpwnam(NAMES[0]).pw_uid
    new_enough = "import sys; sys.exit(sys.version_info < (3, 11))"
    candidates = (os.path.realpath(sys.executable), "/usr/bin/python3")
    base = next((python for python in candidates if can_run(python, uid, new_enough)), None)
    if base is None:
        return None
    subprocess.run([base, "-m", "venv", "--without-pip", place / "venv"], check=True, timeout=60)
    (library,) = (place / "venv" / "lib").glob("python3*/site-packages")
    for name in PACKAGES:
        source = Path(sys.modules[name].__file__ if name in sys.modules else __import__(name).__file__).parent
        shutil.copytree(source, library / name, ignore=shutil.ignore_patterns("__pycache__"))
    package = library / "ksi_hooks"
    shutil.copytree(Path(ksi_hooks.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    python = str(place / "venv" / "bin" / "python")
    return (python, package) if can_run(python, uid, "import ksi_hooks.hooks.prolog_work, yaml") else None
