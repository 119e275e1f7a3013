"""Writing an installation: each file in one step and only where it differs."""

import os
import stat
from pathlib import Path

from ksi_hooks import files
from ksi_hooks.errors import KsiError
from ksi_hooks.install.plan import Planned

MADE, CHANGED, SAME, LINK = "made", "changed", "unchanged", "left alone, it is a link"
RUN_ROOT_MODE = 0o1777


def state_of(planned: Planned) -> str:
    """Say what writing the file would do."""
    if planned.path.is_symlink():  # for instance a unit that is masked
        return LINK
    try:
        mode = stat.S_IMODE(planned.path.stat().st_mode)
        same = planned.path.read_bytes() == planned.text.encode() and mode == planned.mode
    except FileNotFoundError:
        return MADE
    except OSError as error:
        raise _failure(planned.path, error) from error
    return SAME if same else CHANGED


def write(planned: Planned) -> str:
    """Write the file when it differs and return what was done; raises KsiError."""
    state = state_of(planned)
    if state in (MADE, CHANGED):
        try:
            make_dirs(planned.path.parent)
            files.replace(planned.path, planned.text.encode(), mode=planned.mode)
        except OSError as error:
            raise _failure(planned.path, error) from error
    return state


def make_dirs(directory: Path) -> None:
    """Make a directory and its missing parents, 0755 whatever the umask; raises OSError."""
    missing = [d for d in (directory, *directory.parents) if not d.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o755)
        each.chmod(0o755)


def make_run_root(directory: Path) -> str:
    """Make the directory in which every user has his own (root, 1777); raises KsiError."""
    try:
        state = SAME if directory.is_dir() else MADE
        make_dirs(directory)
        if stat.S_IMODE(directory.stat().st_mode) != RUN_ROOT_MODE or directory.stat().st_uid != 0:
            os.chown(directory, 0, 0)
            directory.chmod(RUN_ROOT_MODE)
            state = CHANGED if state == SAME else state
    except OSError as error:
        raise _failure(directory, error) from error
    return state


def _failure(path: Path, error: OSError) -> KsiError:
    return KsiError(f"cannot write {path}: {error.strerror}", hint="run as root, or choose another --prefix")
