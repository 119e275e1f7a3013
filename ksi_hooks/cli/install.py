"""`ksi install`: settings, hooks, units and snippets of a site below one directory; lines for slurm.conf."""

import argparse
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import ksi_hooks
from ksi_hooks import config
from ksi_hooks.cli.nodes import nodes_of
from ksi_hooks.cli.output import warn
from ksi_hooks.cli.parsing import Parser, Subparsers, add
from ksi_hooks.config import Settings
from ksi_hooks.doctor import lock_trial, storage
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import CommandFailed, ConfigError, KsiError
from ksi_hooks.install import apply, hindrances, plan, settings_file
from ksi_hooks.install.plan import Planned, Site
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Tools

PYTHON_SECONDS = 20.0
NODE_FILES = "{tmpfiles.d,modules-load.d,systemd/system/user@.service.d}/ksi.conf systemd/system/ksi-gc.*"
EXAMPLES = """
ksi install --set registry_dir=/shared/ksi
ksi install --prefix /opt/ksi --set registry_dir=/shared/ksi --set node_image=docker.io/kindest/node:v1.34.4
ksi install --set "port_range=31000-31999" --dry-run       what would change
ksi install --nodes 'node[01-16]'                          a directory in the registry for each node
"""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Describe the subcommand."""
    parser = add(subparsers, "install", "write hooks, units and settings for a site", EXAMPLES)
    parser.add_argument("--prefix", metavar="DIR", type=Path, default=Path("/"), help="where (default: /)")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="assignments",
        help="a setting, its value in YAML; in a file that exists only this line changes, comments stay",
    )
    parser.add_argument("--nodes", metavar="HOSTLIST", help="nodes of the registry (default: Slurm's)")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, write nothing")


@dataclass(frozen=True)
class Installation:
    """Everything decided and checked, nothing written yet."""

    site: Site
    settings: Settings
    files: list[Planned]
    nodes: list[str]


def main(args: argparse.Namespace) -> int:
    """Install and return 0; raises KsiError before anything is written when something is wrong."""
    prepared = prepare(args, os.environ)
    for warning in hindrances.warnings(prepared.settings, prepared.site):
        warn(warning)
    changes = _write(prepared, dry_run=args.dry_run)
    if changes:
        print(f"{changes} would change." if args.dry_run else f"{changes} changed.")
    else:
        print("Nothing to change: everything is installed as the settings say.")
    _print_next_steps(prepared)
    return 0


def prepare(args: argparse.Namespace, environ: Mapping[str, str]) -> Installation:
    """Check everything and render every file; raises KsiError that lists all problems."""
    package = Path(ksi_hooks.__file__).resolve().parent
    site = Site(Path.cwd() / args.prefix, sys.executable, package, environ.get("SLURM_CONF", ""))
    values = dict(map(settings_file.parse_assignment, args.assignments))
    text, settings = _settings_text(site, values)
    if "lock" not in values and not site.settings_file.exists() and not args.dry_run:
        text, settings = _settings_text(site, {**values, **_lock_kind(settings.registry_dir)})
    if problems := hindrances.errors(settings, site):
        raise ConfigError(f"{site.settings_file}: " + "; ".join(problems), hint="nothing was written")
    tools = Tools(settings.tools_path, base_environment(settings.tools_path, os.getuid(), environ))
    _require_package(site, tools)
    kept = Planned(site.settings_file.resolve(), text, plan.DATA)
    planned = [kept, *plan.hooks(site, settings), *plan.system_files(site, settings)]
    return Installation(site, settings, planned, nodes_of(args.nodes, tools))


def _settings_text(site: Site, values: dict[str, object]) -> tuple[str, Settings]:
    path = site.settings_file
    if not path.exists():
        try:
            settings = config.parse(values, f"cannot install {path}")
        except ConfigError as error:
            if "registry_dir" in values:
                raise
            where = "a directory that all nodes see"
            raise ConfigError(str(error), hint=f"--set registry_dir=/shared/ksi ({where})") from error
        return settings_file.new_text(values), settings
    raw = config.load_raw(path)
    before = raw if isinstance(raw, dict) else {}
    settings = config.parse({**before, **values} if raw is None or before else raw, str(path))
    return settings_file.changed_text(path.read_text(encoding="utf-8"), values), settings


def _lock_kind(registry_dir: Path) -> dict[str, object]:
    """Return the setting for the kind of lock that works where the registry will be, and say so.

    Never tried again: two nodes that tried for themselves might come to use different kinds.
    """
    place = next((p for p in (registry_dir, registry_dir.parent) if p.is_dir()), None)
    if place is None:
        warn(f"lock: not tried, since {registry_dir.parent} is not there; ksi doctor --lock tries it later")
        return {}
    risky = storage.risky_options(place.resolve(), Path("/proc/self/mounts").read_text())
    try:
        trial = lock_trial.resolve(place, risky=risky)
    except KsiError as error:
        warn(f"lock: not tried: {error}")
        return {}
    if trial is None:
        warn(f"lock: no kind of lock works in {place}; ksi doctor --lock tells why")
        return {}
    mounted = f", which is mounted with {', '.join(risky)}" if risky else ""
    print(f"lock: {trial.kind} ({lock_trial.PROCESSES} processes tried it in {place}{mounted})")
    return {"lock": trial.kind}


def _require_package(site: Site, tools: Tools) -> None:
    """Raise KsiError unless the interpreter finds the package by itself, as it must in a hook."""
    check = [site.python, "-I", "-c", "import ksi_hooks.hooks.task_prolog, yaml, jinja2, filelock"]
    try:
        tools.run(check, timeout=PYTHON_SECONDS)
    except CommandFailed as error:
        raise KsiError(
            f"{site.python} does not find ksi_hooks and what it needs by itself: {error}",
            hint=f"{site.python} -m pip install ksi_hooks (or the checkout's directory), then ksi install",
        ) from error


def _write(prepared: Installation, *, dry_run: bool) -> int:
    """Write, or only say; returns the number of changes."""
    states = {f.path: (apply.state_of if dry_run else apply.write)(f) for f in prepared.files}
    changes = 0
    for path, state in states.items():
        print(f"{state:>10}  {path}" if state != apply.LINK else f"{'kept':>10}  {path} ({state})")
        changes += state in (apply.MADE, apply.CHANGED)
    if os.geteuid() != 0:
        print("Not root: run_dir and registry are left to ksi config --init-registry as root")
    elif not dry_run:
        changes += _prepare_shared(prepared)
    return changes


def _prepare_shared(prepared: Installation) -> int:
    settings = prepared.settings
    state = apply.make_run_root(settings.run_root)
    print(f"{state:>10}  {settings.run_root}/")
    try:
        made = Registry.of(settings).prepare(prepared.nodes)
    except OSError as error:
        raise KsiError(
            f"cannot prepare the registry: {settings.registry_dir}: {error.strerror}",
            hint="make the directory where root may write, then: ksi config --init-registry",
        ) from error
    for path in made:
        print(f"{'prepared':>10}  {path}")
    return len(made) + (state != apply.SAME)


def _print_next_steps(prepared: Installation) -> None:
    site = prepared.site
    print("\nLines for slurm.conf (the same on all nodes; then scontrol reconfigure):")
    for line in plan.slurm_conf_lines(site, prepared.settings):
        print(f"    {line}")
    print("\nOn each node, as root:")
    if site.prefix != Path("/"):
        # Copies, not links: at boot the prefix may not be mounted yet.
        print(f"    cd {shlex.quote(str(site.prefix / 'etc'))} && cp --parents {NODE_FILES} /etc")
    print("    systemctl daemon-reload; systemctl enable --now ksi-gc.timer")
    print("    systemd-tmpfiles --create; systemctl restart systemd-modules-load")
    print(f"    ksi --config {shlex.quote(str(site.settings_file))} doctor")
