"""The cache of built artifacts: keyed by all they depend on, never half-made or built twice at once."""

import fcntl
import hashlib
import inspect
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.progress import Progress


def default_root() -> Path:
    """Where the testbed keeps what it builds: $KSI_TESTBED_CACHE, else below the user's cache directory."""
    named = os.environ.get("KSI_TESTBED_CACHE")
    return Path(named).absolute() if named else Path.home() / ".cache" / "ksi-testbed"


def key(*parts: object) -> str:
    """A short name for a set of inputs; a function counts by its source text, a path by its own name."""
    digest = hashlib.sha256()
    for part in parts:
        text = inspect.getsource(part) if callable(part) else str(part)
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()[:12]


class Cache:
    """A directory of artifacts named `<name>-<key>`."""

    def __init__(self, root: Path, progress: Progress) -> None:
        self.root = root
        self.progress = progress
        self.logs = root / "logs"

    def log(self, name: str) -> Path:
        """The log file of a step."""
        self.logs.mkdir(parents=True, exist_ok=True)
        return self.logs / f"{name}.log"

    def artifact(self, name: str, identity: str, make: Callable[[Path], None]) -> Path:
        """Return the artifact's directory; when missing, have `make` fill it and rename it into place."""
        target = self.root / "artifacts" / f"{name}-{identity}"
        if target.is_dir():
            self.progress.skip(name)
            return target
        scratch = target.with_name(f".{target.name}.partial")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        self.log(name).unlink(missing_ok=True)
        with self.progress.step(name):
            make(scratch)
            scratch.rename(target)
        self.forget_older(name, keep=target)
        return target

    def forget_older(self, name: str, keep: Path) -> None:
        """Remove artifacts of the same name that were built from other inputs."""
        for path in keep.parent.glob(f"{name}-*"):
            if path != keep and path.name.removeprefix(f"{name}-").isalnum():
                shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the cache against a second build at the same time; says so when it has to wait."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / ".lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.progress.say(f"waiting for another build that uses {self.root}")
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
