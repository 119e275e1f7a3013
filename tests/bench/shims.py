"""Programs in front of the real ones: each start is written into the journal, then the real one runs."""

from pathlib import Path

from bench.journal import Journal

COUNTED = ("podman", "kind", "kubectl")
HOOKS = ("task-prolog", "task-epilog", "prolog", "epilog")


def tools(directory: Path, real: Path, journal: Journal) -> Path:
    """Fill a directory for the head of PATH: kind, podman and kubectl that count themselves."""
    directory.mkdir()
    for name in COUNTED:
        # seven words tell one call from another; a whole manifest in the arguments would break the line
        words = " ".join(f"${{{number}-}}" for number in range(1, 8))
        _program(directory / name, f'{journal.say()}say call {name} "{words}"\nexec {real / name} "$@"\n')
    return directory


def hooks(directory: Path, real: dict[str, Path], journal: Journal) -> list[str]:
    """Put stamps before the hooks and return the lines of slurm.conf that switch them on."""
    directory.mkdir()
    for name in HOOKS:
        # exec keeps the process id and the parent, by which the hooks know their step
        _program(directory / name, f'{journal.say()}say stamp {name}\nexec {real[name]} "$@"\n')
    keys = {"task-prolog": "TaskProlog", "task-epilog": "TaskEpilog", "prolog": "Prolog", "epilog": "Epilog"}
    return [*(f"{key}={directory / name}" for name, key in keys.items()), "PrologFlags=Alloc"]


def _program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}", encoding="utf-8")
    path.chmod(0o755)
