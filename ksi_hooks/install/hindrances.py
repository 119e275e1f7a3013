"""What would make an installation fail later: paths that users cannot reach, programs that are not there."""

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from ksi_hooks.config import Settings
from ksi_hooks.install.plan import Site


def errors(settings: Settings, site: Site) -> list[str]:
    """Return what has to be mended before anything is written."""
    found = []
    shared = settings.registry_dir.parent
    if os.geteuid() == 0 and not shared.is_dir():
        found.append(f"registry_dir: {shared} is not there: mount the shared storage, or make the directory")
    for name in ("task_prolog_next", "task_epilog_next"):
        program = getattr(settings, name)
        own = site.hook(name.removesuffix("_next").replace("_", "-"))
        if program is None:
            continue
        if not program.is_file():
            found.append(f"{name}: no such file: {program}")
        elif not os.access(program, os.X_OK) or not program.stat().st_mode & stat.S_IXOTH:
            found.append(f"{name}: not executable for everyone: {program}")
        elif program == own or program.resolve() == own.resolve():
            found.append(f"{name}: names our own hook, which would call itself for ever: {program}")
    return found


def warnings(settings: Settings, site: Site) -> list[str]:
    """Return what users will stumble over."""
    hooks = site.package / "hooks" / "task_prolog.py"
    needed = [Path(site.python), Path(site.python).resolve(), hooks]
    found = [
        f"other users cannot reach {path} (see the rights of {barrier}); the hooks run as the job's user"
        for path, barrier in unreachable(needed)
    ]
    if settings.kind_config and not settings.kind_config.is_file():
        found.append(f"kind_config: no such file here: {settings.kind_config}")
    if str(settings.run_dir).startswith(("/tmp/", "/var/tmp/", "/dev/shm/")):
        found.append(f"run_dir: ksi-gc does not see it where jobs have a private /tmp: {settings.run_dir}")
    return found


def unreachable(
    paths: Iterable[Path], mode_of: Callable[[Path], int] = lambda p: p.stat().st_mode
) -> list[tuple[Path, Path]]:
    """Return the paths that a stranger cannot read, each with what bars the way."""
    found = []
    for path in dict.fromkeys(paths):
        for part in (*reversed(path.parents), path):
            try:
                mode = mode_of(part)
            except OSError:
                found.append((path, part))
                break
            if not mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH):
                found.append((path, part))
                break
    return found
