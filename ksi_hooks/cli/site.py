"""Which settings a command works with: a site's file, or a user's own where there is none."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import config, files
from ksi_hooks.config import Settings
from ksi_hooks.registry.store import LOCK_NAME


@dataclass(frozen=True)
class Site:
    """Settings, and the file they came from; None: a user's own settings, no site's."""

    settings: Settings
    file: Path | None


def of(args: argparse.Namespace, environ: Mapping[str, str] = os.environ) -> Site:
    """Return the site's settings, else the user's own with their registry; raises KsiError."""
    path = config.find(args.config, environ)
    if path is not None:
        return Site(config.load(path), path)
    settings = config.personal(environ)
    settings.registry_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for directory in (settings.registry_dir.parent, settings.registry_dir, settings.run_root):
        files.private_dir(directory)
    (settings.registry_dir / LOCK_NAME).touch(mode=0o600)
    return Site(settings, None)
