"""ksi_hooks installed for a testbed site, with an interpreter that every user can reach."""

import importlib.util
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

from testbed import command

SYSTEM_PYTHON = Path("/usr/bin/python3")
NEEDED = ("ksi_hooks", "yaml", "jinja2", "markupsafe", "filelock")
HOOKS = {"TaskProlog": "ksi-task-prolog", "TaskEpilog": "ksi-task-epilog"}
ROOT_HOOKS = {"Prolog": "ksi-prolog", "Epilog": "ksi-epilog"}


def make_interpreter(directory: Path) -> Path:
    """Make a virtual environment with copies of the package and what it needs; return its python.

    The one that runs the tests may lie in a home directory, where a job's user cannot start it.
    """
    base = SYSTEM_PYTHON if SYSTEM_PYTHON.exists() else Path(sys.executable)
    command.run([base, "-m", "venv", "--without-pip", directory], log=directory.with_suffix(".log"))
    target = next(directory.glob("lib/python3*/site-packages"))
    for name in NEEDED:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise command.TestbedError(f"{sys.executable} has no module {name}")
        source = Path(spec.origin)
        if source.name == "__init__.py":
            copytree(source.parent, target / name, ignore=ignore_patterns("__pycache__"))
        else:
            copy(source, target)
    return directory / "bin" / "python"


class Installation:
    """What `ksi install --prefix` has made, and how to change and use it."""

    def __init__(
        self, python: Path, prefix: Path, settings: Mapping[str, object], nodes: Sequence[str]
    ) -> None:
        self.python = python
        self.prefix = prefix
        self.settings = {**settings}
        self.nodes = tuple(nodes)
        self.said = self.configure()

    @property
    def settings_file(self) -> Path:
        """The file that the hooks read."""
        return self.prefix / "etc/ksi/ksi.yaml"

    @property
    def run_root(self) -> Path:
        """The directory with one directory per user."""
        return Path(str(self.settings["run_dir"])).parent

    @property
    def registry(self) -> Path:
        """The directory of records."""
        return Path(str(self.settings["registry_dir"]))

    @property
    def node_state(self) -> Path:
        """Where the root pair leaves its markers."""
        return Path(str(self.settings["node_state_dir"]))

    def configure(self, **changed: object) -> str:
        """Run `ksi install`, which keeps what is there; returns what it said."""
        self.settings |= changed
        words = [f"--set={name}={json.dumps(value)}" for name, value in self.settings.items()]
        argv = ["install", f"--prefix={self.prefix}", f"--nodes={','.join(self.nodes)}", *words]
        return command.capture([self.python, "-I", "-m", "ksi_hooks.cli.main", *argv])

    def slurm_conf_lines(self, *, root_pair: bool) -> list[str]:
        """The lines of slurm.conf that switch the hooks on."""
        wanted = {**HOOKS, **(ROOT_HOOKS if root_pair else {})}
        lines = [f"{key}={self.prefix / 'libexec/ksi' / name}" for key, name in wanted.items()]
        return [*lines, *(["PrologFlags=Alloc"] if root_pair else [])]

    def gc_argv(self, *options: str) -> list[str]:
        """The command line of ksi-gc, as the timer has it."""
        return [str(self.python), "-I", "-m", "ksi_hooks.gc.main", f"--config={self.settings_file}", *options]

    def ksi_argv(self, *words: str) -> list[str]:
        """The command line of ksi."""
        program = [str(self.python), "-I", "-m", "ksi_hooks.cli.main"]
        return [*program, "--config", str(self.settings_file), *words]
