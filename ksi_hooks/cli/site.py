"""Which settings a command works with: a site's file, or a user's own where there is none."""

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import config, files
from ksi_hooks.config import Settings
from ksi_hooks.registry.store import LOCK_NAME

BELOW = Path("etc/ksi/ksi.yaml")


@dataclass(frozen=True)
class Site:
    """Settings, and the file they came from; None: a user's own settings, no site's."""

    settings: Settings
    file: Path | None


def of(args: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> Site:
    """Return the site's settings, else the user's own with their registry; raises KsiError."""
    path = file_of(args.config, environ)
    if path is not None:
        return Site(config.load(path), path)
    settings = config.personal(environ)
    settings.registry_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for directory in (settings.registry_dir.parent, settings.registry_dir, settings.run_root):
        files.private_dir(directory)
    (settings.registry_dir / LOCK_NAME).touch(mode=0o600)
    return Site(settings, None)


def file_of(
    asked: Path | None, environ: Mapping[str, str], installed: Path = Path(sys.prefix)
) -> Path | None:
    """Return the settings file: --config, else $KSI_CONFIG, else the installation's; None when there is none.

    The installation's is the first etc/ksi/ksi.yaml in or above the directory of the interpreter's venv,
    up to /etc/ksi/ksi.yaml: whoever keeps the environment below `ksi install --prefix` has nothing to say.
    """
    if asked or environ.get("KSI_CONFIG"):
        return Path.cwd() / (asked or environ["KSI_CONFIG"])
    candidates = (directory / BELOW for directory in (installed, *installed.parents))
    return next((path for path in candidates if _is_trusted(path)), None)


def _is_trusted(path: Path) -> bool:
    """True for a file of root's or of the user's own: in /tmp or a shared home anybody may plant one."""
    try:
        return path.is_file() and path.stat().st_uid in (0, os.geteuid())
    except OSError:
        return False
