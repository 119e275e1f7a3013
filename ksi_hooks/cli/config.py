"""`ksi config`: every setting with its source, the commented template, and preparing the registry."""

import argparse
import os
import sys
from pathlib import Path

import ksi_hooks
from ksi_hooks import config
from ksi_hooks.cli import site
from ksi_hooks.cli.nodes import nodes_of
from ksi_hooks.cli.output import show_json, table, user_name, warn
from ksi_hooks.cli.parsing import Parser, Subparsers, add
from ksi_hooks.config import SETTINGS, as_yaml_value
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import KsiError
from ksi_hooks.install import drift, settings_file
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Tools

EXAMPLES = """
ksi config                            every value and where it comes from
ksi config --defaults                 a settings file with every default, commented
ksi config --init-registry --nodes 'node[01-16]'
"""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Describe the subcommand."""
    parser = add(subparsers, "config", "show every setting and where it comes from", EXAMPLES)
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--defaults", action="store_true", help="print the commented settings file")
    action.add_argument("--init-registry", action="store_true", help="make the registry's directories")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument("--nodes", metavar="HOSTLIST", help="nodes of the registry (default: Slurm's)")


def main(args: argparse.Namespace) -> int:
    """Print or prepare; raises KsiError."""
    if args.defaults:
        print(settings_file.new_text({}), end="")
        return 0
    used = site.of(args)
    if args.init_registry:
        return _init_registry(used, args.nodes)
    values = sources(used)
    disagreements = _disagreements(used)
    if args.json:
        settings = {name: {"value": value, "source": source} for name, value, source in values}
        show_json({"file": used.file, "settings": settings, "disagreements": disagreements})
        return 0
    print(f"settings file: {used.file or 'none, these are your own settings'}\n")
    rows = [(name, settings_file.yaml_text(value), source) for name, value, source in values]
    print(table(("SETTING", "VALUE", "SOURCE"), rows), end="")
    for disagreement in disagreements:
        warn(disagreement)
    if disagreements:
        print("ksi: hint: run ksi install again (as root, with the same --prefix)", file=sys.stderr)
    return 0


def sources(used: site.Site) -> list[tuple[str, object, str]]:
    """Return name, value and source of every setting."""
    raw = config.load_raw(used.file) if used.file else None
    given = set(raw) if isinstance(raw, dict) else set()
    if used.file is None:
        given = {"registry_dir", "run_dir"}
    source = "file" if used.file else "personal"
    return [
        (name, as_yaml_value(getattr(used.settings, name)), source if name in given else "default")
        for name in SETTINGS
    ]


def _disagreements(used: site.Site) -> list[str]:
    package = Path(ksi_hooks.__file__).resolve().parent
    installed = drift.site_of(used.file, python=sys.executable, package=package) if used.file else None
    return drift.differences(installed, used.settings) if installed else []


def _init_registry(used: site.Site, host_list: str | None) -> int:
    settings = used.settings
    if used.file is None:
        print(f"{settings.registry_dir} is your own registry and ready.")
        return 0
    tools = Tools(settings.tools_path, base_environment(settings.tools_path, os.getuid(), os.environ))
    nodes = nodes_of(host_list, tools)
    try:
        made = Registry.of(settings).prepare(nodes)
    except OSError as error:
        raise KsiError(
            f"cannot prepare the registry: {error.filename or settings.registry_dir}: {error.strerror}",
            hint="run it as root on a node that may write there (no root_squash)",
        ) from error
    for path in made:
        print(f"prepared  {path}")
    already = "" if made else " already"
    whom = ", ".join(nodes) if len(nodes) < 5 else f"{len(nodes)} nodes"
    print(f"{settings.registry_dir} is ready{already} for {whom}.")
    owner = settings.registry_dir.stat().st_uid
    if owner != 0:
        warn(f"the registry belongs to {user_name(owner)}, who can change all of it; root should own it")
    return 0
