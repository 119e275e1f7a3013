"""The pinned Go toolchain, on machines that have a recent Go, an old one, or none."""

import json
import re
import shutil
from pathlib import Path

from testbed import command, packages, versions
from testbed.cache import Cache, key

OLDEST_THAT_SWITCHES = (1, 21)  # from here on `go` fetches the toolchain named by GOTOOLCHAIN itself
MODULE = f"golang.org/toolchain@v0.0.1-go{versions.GO}.linux-amd64"
BUILD_ENV = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"}


class Go:
    """A `go` command of the pinned version."""

    def __init__(self, program: str, env: dict[str, str]) -> None:
        self.program = program
        self.env = {**BUILD_ENV, **env}

    def download(self, module: str, version: str) -> Path:
        """Fetch one module from the module proxy and return its directory."""
        text = command.capture(
            [self.program, "mod", "download", "-json", f"{module}@{version}"], env=self.env, timeout=600
        )
        return Path(json.loads(text)["Dir"])


def find(cache: Cache) -> Go:
    """Return the pinned Go, fetched first when need be."""
    present = shutil.which("go")
    if present and version_of(present) >= OLDEST_THAT_SWITCHES:
        return Go(present, {"GOTOOLCHAIN": f"go{versions.GO}"})
    directory = cache.artifact("go-toolchain", key(MODULE, fetch), lambda out: fetch(out, cache))
    return Go(str(directory / "go" / "bin" / "go"), {"GOTOOLCHAIN": "local"})


def fetch(out: Path, cache: Cache) -> None:
    """Get the toolchain as a module, by an older go; the module's zip has no executable bits."""
    log = cache.log("go-toolchain")
    if not shutil.which("go"):
        packages.install(list(packages.GO), log)
    empty = out / "module"
    empty.mkdir()
    (empty / "go.mod").write_text("module testbed.local/toolchain\n", encoding="utf-8")
    old = shutil.which("go") or "/usr/bin/go"
    text = command.capture(
        [old, "mod", "download", "-json", MODULE], env={"GOFLAGS": "-mod=mod"}, cwd=empty, timeout=1800
    )
    shutil.copytree(json.loads(text)["Dir"], out / "go")
    command.run(["chmod", "-R", "u+w", out / "go"], log=log)
    for program in [*(out / "go" / "bin").iterdir(), *(out / "go" / "pkg" / "tool").rglob("*")]:
        if program.is_file():
            program.chmod(0o755)


def version_of(program: str) -> tuple[int, int]:
    """Major and minor version of a go command; (0, 0) when it does not tell."""
    found = re.search(r"go(\d+)\.(\d+)", command.capture([program, "version"], env={"GOTOOLCHAIN": "local"}))
    return (int(found[1]), int(found[2])) if found else (0, 0)
