"""The site's settings: one YAML file, checked whole, frozen."""

import difflib
import os
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from ksi_hooks import checks
from ksi_hooks.checks import USER_ID, Check
from ksi_hooks.errors import ConfigError

DEFAULT_FILE = Path("/etc/ksi/ksi.yaml")
BELOW_PREFIX = Path("etc/ksi/ksi.yaml")


def _setting(default: Any, check: Check, about: str) -> Any:  # noqa: ANN401 - as dataclasses.field
    return field(default=default, metadata={"check": check, "help": about})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting with its default; times in seconds. The names are a public interface."""

    registry_dir: Path = field(
        metadata={
            "check": checks.absolute_path,
            "help": "Directory on shared storage, one small file per cluster; required.",
        }
    )
    feature: str = _setting(
        "k8s", checks.feature, "Feature in slurm.conf that a job asks for with --constraint."
    )
    partitions: tuple[str, ...] = _setting(
        (), checks.list_of(checks.text), "Partitions that may have clusters; empty: all."
    )
    allow_request: bool = _setting(
        True, checks.flag, "Let users ask for a cluster with KSI=1 instead of the constraint."
    )
    run_dir: Path = _setting(
        Path("/var/lib/ksi/run/%u"),
        checks.user_path,
        "Node-local directory per user, 0700; %u is the numeric user id. Not shared, not below /tmp.",
    )
    node_state_dir: Path = _setting(
        Path("/run/ksi"),
        checks.absolute_path,
        "Root's directory on the node: the marks of k8s jobs that ksi-prolog leaves.",
    )
    tools_path: tuple[Path, ...] = _setting(
        (Path("/usr/local/bin"), Path("/usr/bin"), Path("/usr/sbin")),
        checks.list_of(checks.absolute_path),
        "Where kind, podman, kubectl and Slurm's commands are looked for, in this order.",
    )
    node_image: str | None = _setting(
        None,
        checks.optional(checks.text),
        "Image of the cluster node, for instance docker.io/kindest/node:v1.34.4; null: kind's own.",
    )
    port_range: tuple[int, int] = _setting(
        (30000, 32767), checks.port_range, "Ports for K8S_PORT, LOW-HIGH within Kubernetes' node ports."
    )
    listen_address: str = _setting(
        "0.0.0.0",
        checks.ipv4_address,
        "Address on which K8S_PORT listens; 0.0.0.0 shows a job's service to the whole network.",
    )
    on_failure: Literal["fail", "continue"] = _setting(
        "fail",
        checks.one_of("fail", "continue"),
        "When a cluster cannot be made: end the job, or run it without.",
    )
    print: bool = _setting(True, checks.flag, "Tell in the job's output what it got.")
    export_token: bool = _setting(
        True,
        checks.flag,
        "Export K8S_CLUSTER_API_TOKEN; false leaves only the file, since Slurm logs exports at debug level.",
    )
    create_timeout: float = _setting(600.0, checks.seconds, "Time for making a cluster, retries included.")
    attach_timeout: float = _setting(
        660.0, checks.seconds, "Time that the job's other tasks wait for the cluster."
    )
    query_timeout: float = _setting(
        3.0, checks.seconds, "Time for asking Slurm whether a job wants a cluster; no retry."
    )
    lock_timeout: float = _setting(30.0, checks.seconds, "Time to wait for the registry's lock.")
    epilog_timeout: float = _setting(
        25.0, checks.seconds, "Time for deleting in the task epilog; keep it below KillWait of slurm.conf."
    )
    gc_grace: float = _setting(
        600.0, checks.seconds, "How long ksi-gc leaves alone what may still be cleaned by a hook."
    )
    gc_tenant_timeout: float = _setting(
        60.0, checks.seconds, "Time that one round of ksi-gc spends on one user."
    )
    accelerate: bool = _setting(
        True,
        checks.flag,
        "Start clusters faster than kind's own configuration does; see how in the built-in template.",
    )
    create_slots: int = _setting(
        0, checks.count, "Clusters that may be made at the same time on a node; 0: no limit."
    )
    lock: Literal["flock", "soft", "strict"] = _setting(
        "flock",
        checks.one_of("flock", "soft", "strict"),
        "Kind of lock that the registry's file system supports.",
    )
    kind_config: Path | None = _setting(
        None,
        checks.optional(checks.absolute_path),
        "Jinja2 template of a kind configuration used instead of the built-in "
        "ksi_hooks/templates/kind-config.yaml.j2.",
    )
    images: tuple[str, ...] = _setting(
        (),
        checks.list_of(checks.text),
        "Images of the node's Podman store that every new cluster gets loaded.",
    )
    task_prolog_next: Path | None = _setting(
        None,
        checks.optional(checks.absolute_path),
        "A TaskProlog of the site that runs after ours, for all jobs.",
    )
    task_epilog_next: Path | None = _setting(
        None,
        checks.optional(checks.absolute_path),
        "A TaskEpilog of the site that runs after ours, for all jobs.",
    )
    log_keep_days: float = _setting(
        14.0, checks.seconds, "Days that the log of a job's cluster is kept below run_dir."
    )

    def user_run_dir(self, uid: int) -> Path:
        """Return one user's directory on this node."""
        return Path(str(self.run_dir).replace(USER_ID, str(uid)))

    @property
    def run_root(self) -> Path:
        """Return the directory that holds the users' directories."""
        return self.run_dir.parent


SETTINGS: dict[str, Field[Any]] = {f.name: f for f in fields(Settings)}


def parse(raw: object, source: str) -> Settings:
    """Turn what the YAML file holds into settings; raises ConfigError that lists every problem at once."""
    if raw is None:
        raw = {}
    if not isinstance(raw, Mapping):
        raise ConfigError(f"{source}: wants `key: value` lines, got {type(raw).__name__}")
    problems = [_unknown(str(key)) for key in raw if key not in SETTINGS]
    values: dict[str, Any] = {}
    for name, setting in SETTINGS.items():
        if name not in raw:
            if setting.default is MISSING:
                problems.append(f"{name}: required")
            continue
        try:
            values[name] = setting.metadata["check"](raw[name])
        except ValueError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise ConfigError(
            f"{source}: " + "; ".join(sorted(problems)), hint="every setting: ksi config --defaults"
        )
    return Settings(**values)


def load(path: Path) -> Settings:
    """Read the settings file; raises ConfigError with the file's name and, for broken YAML, the line."""
    return parse(load_raw(path), str(path))


def load_raw(path: Path) -> object:
    """Read the settings file without judging its keys; raises ConfigError."""
    import yaml  # 20 ms that a hook without its own job never pays

    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(
            f"cannot read the settings: {path}: {reason}", hint="the administrator runs ksi install"
        ) from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise ConfigError(f"{path}:{line} {problem}", hint="mend the settings file") from error


def find(asked: Path | None, environ: Mapping[str, str], installed: Path = Path(sys.prefix)) -> Path | None:
    """Return the settings file: --config, else $KSI_CONFIG, else the installation's; None when there is none.

    The installation's is the first etc/ksi/ksi.yaml in or above the directory of the interpreter's venv,
    up to /etc/ksi/ksi.yaml: whoever keeps the environment below `ksi install --prefix` has nothing to say.
    """
    if asked or environ.get("KSI_CONFIG"):
        return Path.cwd() / (asked or environ["KSI_CONFIG"])
    candidates = (directory / BELOW_PREFIX for directory in (installed, *installed.parents))
    return next((path for path in candidates if _is_trusted(path)), None)


def _is_trusted(path: Path) -> bool:
    """True for a file of root's or of the user's own: in /tmp or a shared home anybody may plant one."""
    try:
        return path.is_file() and path.stat().st_uid in (0, os.geteuid())
    except OSError:
        return False


def personal(environ: Mapping[str, str]) -> Settings:
    """Return settings for a user on a machine without a site's settings: everything below his own state
    directory.
    """
    home = Path(environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "ksi"
    return Settings(registry_dir=home / "registry", run_dir=home / "run" / USER_ID)


def as_yaml_value(value: object) -> object:
    """Return a setting's value as it would stand in the YAML file."""
    if isinstance(value, Path):
        return os.fspath(value)
    if isinstance(value, tuple):
        if len(value) == 2 and all(isinstance(part, int) for part in value):
            return f"{value[0]}-{value[1]}"
        return [as_yaml_value(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _unknown(key: str) -> str:
    near = difflib.get_close_matches(key, SETTINGS, n=1)
    return f"{key}: unknown setting" + (f", perhaps {near[0]}" if near else "")
