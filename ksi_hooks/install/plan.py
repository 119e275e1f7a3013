"""Which files an installation consists of, as text; pure, nothing is written here."""

import math
from dataclasses import dataclass
from pathlib import Path

import ksi_hooks
from ksi_hooks import gate
from ksi_hooks.config import Settings
from ksi_hooks.install import quoting
from ksi_hooks.render import render

SETTINGS_FILE = Path("etc/ksi/ksi.yaml")
HOOK_DIR = Path("libexec/ksi")
SHARE_DIR = Path("share/ksi")
PROGRAM, DATA = 0o755, 0o644
NODE_MARGIN_SECONDS = 15.0  # for what the node hooks do before and after deleting


@dataclass(frozen=True)
class Site:
    """Where an installation lies and what its files name: interpreter, package, slurm.conf."""

    prefix: Path
    python: str
    package: Path
    slurm_conf: str = ""

    @property
    def settings_file(self) -> Path:
        """Return the settings file that is baked into the hooks."""
        return self.prefix / SETTINGS_FILE

    def hook(self, name: str) -> Path:
        """Return a program that slurm.conf names."""
        return self.usr / HOOK_DIR / f"ksi-{name}"

    @property
    def usr(self) -> Path:
        """Return where programs lie: nothing belongs into /libexec."""
        return Path("/usr") if self.prefix == Path("/") else self.prefix

    @property
    def gc_command(self) -> list[str]:
        """Return the command of the timer."""
        return [self.python, "-I", "-m", "ksi_hooks.gc.main", "--config", str(self.settings_file)]


@dataclass(frozen=True)
class Planned:
    """One file below the prefix."""

    path: Path
    text: str
    mode: int


def hooks(site: Site, settings: Settings) -> list[Planned]:
    """Return the four programs that slurm.conf names."""
    modules = {
        "task-prolog": ("task_prolog.py", settings.task_prolog_next),
        "task-epilog": ("task_epilog.py", settings.task_epilog_next),
        "prolog": ("node_prolog.py", None),
        "epilog": ("node_epilog.py", None),
    }
    return [
        Planned(
            site.hook(name),
            render(
                f"ksi-{name}.sh.j2",
                {
                    "version": ksi_hooks.__version__,
                    "node_state_dir": settings.node_state_dir,
                    "run_root": settings.run_root,
                    "python": site.python,
                    "hook": site.package / "hooks" / module,
                    "config": site.settings_file,
                    "on_failure": settings.on_failure,
                    "no_cluster": gate.NO_CLUSTER,
                    "feature": settings.feature,
                    "next": following,
                    "node_seconds": math.ceil(settings.epilog_timeout + NODE_MARGIN_SECONDS),
                },
            ),
            PROGRAM,
        )
        for name, (module, following) in modules.items()
    ]


def system_files(site: Site, settings: Settings) -> list[Planned]:
    """Return what systemd, cron, the kernel and slurmctld read."""
    values = {
        "version": ksi_hooks.__version__,
        "command_unit": quoting.systemd_command(site.gc_command),
        "command_cron": quoting.cron_command(site.gc_command),
        "slurm_conf": site.slurm_conf,
        "slurm_conf_unit": site.slurm_conf and quoting.systemd_words(f"SLURM_CONF={site.slurm_conf}"),
        "registry_unit": quoting.systemd_words(str(settings.registry_dir)),
        "run_root_tmpfiles": quoting.systemd_words(str(settings.run_root)),
        "feature": settings.feature,
        "may_request": settings.allow_request and not settings.partitions,
    }
    templates: dict[str | Path, str] = {
        "etc/systemd/system/ksi-gc.service": "ksi-gc.service.j2",
        "etc/systemd/system/ksi-gc.timer": "ksi-gc.timer.j2",
        "etc/systemd/system/user@.service.d/ksi.conf": "ksi.delegate.j2",
        "etc/cron.d/ksi-gc": "ksi-gc.cron.j2",
        "etc/tmpfiles.d/ksi.conf": "ksi.tmpfiles.j2",
        "etc/modules-load.d/ksi.conf": "ksi.modules.j2",
        site.usr / SHARE_DIR / "job_submit.lua": "job_submit.lua.j2",
    }
    return [Planned(site.prefix / path, render(name, values), DATA) for path, name in templates.items()]


def slurm_conf_lines(site: Site, settings: Settings) -> list[str]:
    """Return what the administrator puts into slurm.conf."""
    return [
        f"TaskProlog={site.hook('task-prolog')}",
        f"TaskEpilog={site.hook('task-epilog')}",
        f"Prolog={site.hook('prolog')}",
        f"Epilog={site.hook('epilog')}",
        "PrologFlags=Alloc",
        f"NodeName=... Features={settings.feature}",
    ]
