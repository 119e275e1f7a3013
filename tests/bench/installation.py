"""An installation of ksi_hooks to measure, made by `ksi install` below a directory of our own."""

import sys
from dataclasses import dataclass
from pathlib import Path

from testbed import command

from ksi_hooks import config
from ksi_hooks.config import Settings


@dataclass(frozen=True)
class Installation:
    """Where the hooks of an installation lie and what they were told."""

    prefix: Path

    @property
    def config_file(self) -> Path:
        """The settings file."""
        return self.prefix / "etc/ksi/ksi.yaml"

    @property
    def settings(self) -> Settings:
        """What the settings file says."""
        return config.load(self.config_file)

    def hook(self, name: str) -> Path:
        """A program that slurm.conf names, such as task-prolog."""
        return self.prefix / "libexec/ksi" / f"ksi-{name}"

    def slurm_conf_lines(self, *, root_pair: bool) -> list[str]:
        """The lines that switch the hooks on."""
        lines = [f"TaskProlog={self.hook('task-prolog')}", f"TaskEpilog={self.hook('task-epilog')}"]
        if root_pair:
            lines += [f"Prolog={self.hook('prolog')}", f"Epilog={self.hook('epilog')}", "PrologFlags=Alloc"]
        return lines


def install(prefix: Path, *, node: str = "n1", **settings: str) -> Installation:
    """Install below a directory with everything that hooks write kept below it, too."""
    places = {
        "registry_dir": str(prefix / "registry"),
        "run_dir": str(prefix / "run/%u"),
        "node_state_dir": str(prefix / "node"),
        "listen_address": "127.0.0.1",
        **settings,
    }
    # isolated as in a hook: with the current directory on its path another copy might be found
    prefix.mkdir(parents=True)
    program = [sys.executable, "-I", "-m", "ksi_hooks.cli.main"]
    argv = [*program, "install", "--prefix", str(prefix), "--nodes", node]
    for name, value in places.items():
        argv += ["--set", f"{name}={value}"]
    command.capture(argv)
    return Installation(prefix)
