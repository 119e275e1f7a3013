"""The fakes of kind, Podman and kubectl for jobs of several users: programs, state, and what exists in it."""

import json
import pwd
import shutil
import socket
from pathlib import Path

from testbed.census import Thing, cluster_in

FAKES = Path(__file__).parents[1] / "fakes"
CALLER = Path(__file__).with_name("caller.py")
PYTHON = "/usr/bin/python3"  # every user can start it
IMAGE = "docker.io/kindest/node:v1.34.4"
LAUNCHER = """import os, sys
sys.path.insert(0, {library!r})
import caller, programs
os.environ["FAKE_CALLER"] = caller.of(os.getppid(), {epilog_seconds!r})
programs.main()
"""
# Every bash reads this first; those that slurmstepd has started as tasks write down what they see.
WITNESS = """read -r _parent 2>/dev/null < "/proc/$PPID/comm"
[ "$_parent" != slurmstepd ] || echo "$SLURM_JOB_ID ${{K8S_CLUSTER_NAME:-none}}" 2>/dev/null >> {seen}
unset _parent
"""
# Root's transient services are real where there is a systemd; a user's manager is not there in these tests.
SYSTEMD_RUN = """#!/bin/sh
[ "$1" = --user ] || exec /usr/bin/systemd-run "$@"
exec "{user_side}" "$@"
"""


class FakeTools:
    """A directory of programs that act on files, with what a test wants them to do."""

    def __init__(self, directory: Path, *, epilog_seconds: float) -> None:
        self.directory = directory
        self.epilog_seconds = f"{epilog_seconds:g}"
        self.seen, self.witness = directory / "seen", directory / "witness.sh"
        self.bin, self.state, self.library = (directory / name for name in ("bin", "state", "library"))
        for each in (self.bin, self.state, self.library, self.bin / "user"):
            each.mkdir(parents=True)
        directory.chmod(0o755)
        self.state.chmod(0o1777)
        self.seen.touch()
        self.seen.chmod(0o666)
        self._write(self.witness, WITNESS.format(seen=self.seen))
        shutil.copy(CALLER, self.library)
        shutil.copytree(FAKES / "programs", self.library / "programs")
        for name in ("kind", "podman", "kubectl", "systemctl"):
            self._write_program(self.bin / name)
        (self.bin / "state").symlink_to(self.state)
        self._write_program(self.bin / "user" / "systemd-run")
        self._write(self.bin / "systemd-run", SYSTEMD_RUN.format(user_side=self.bin / "user" / "systemd-run"))
        for source in (FAKES / "data").glob("*.pem"):
            shutil.copy(source, self.state)
        (self.state / "images.json").write_text(json.dumps([IMAGE]))

    def script(self, call: str, **rule: object) -> None:
        """Make calls with these words behave differently: status, stderr, delay, at, times."""
        (self.state / "script.json").write_text(json.dumps([{"call": call, **rule}]))

    def forget_script(self) -> None:
        """Let all calls succeed again."""
        (self.state / "script.json").unlink(missing_ok=True)
        for mark in self.state.glob("store-*/rule-*"):
            mark.unlink()

    def called(self, program: str, *words: str) -> int:
        """How many calls of a program there were whose arguments begin with these words."""
        wanted = list(words)
        return sum(c["program"] == program and c["argv"][: len(wanted)] == wanted for c in self.calls())

    def calls(self, *, since: float = 0) -> list[dict]:
        """All calls since a moment (epoch seconds)."""
        logs = [log.read_text().splitlines() for log in self.state.glob("store-*/calls.jsonl")]
        return [call for lines in logs for line in lines if (call := json.loads(line))["time"] >= since]

    def refused(self) -> list[str]:
        """The calls that no fake knows."""
        return [log.read_text() for log in self.state.glob("store-*/refused.jsonl")]

    def things(self) -> set[Thing]:
        """Containers, volumes and networks of all users."""
        found = set()
        for file in self.state.glob("store-*/*.json"):
            kind, _, name = file.stem.partition("-")
            if kind in ("container", "volume", "network"):
                found.add(Thing(kind, f"{name} in {file.parent.name}", cluster_in(file.read_text())))
        return found

    def session_of(self, user: str) -> dict[str, str]:
        """The environment of a user with a session on the node: a runtime directory with a bus."""
        entry = pwd.getpwnam(user)
        runtime = self.directory / f"runtime-{entry.pw_uid}"
        if not runtime.exists():
            runtime.mkdir(mode=0o700)
            with socket.socket(socket.AF_UNIX) as bus:
                bus.bind(str(runtime / "bus"))
            shutil.chown(runtime, entry.pw_uid)
        return {"XDG_RUNTIME_DIR": str(runtime)}

    def _write_program(self, path: Path) -> None:
        launcher = LAUNCHER.format(library=str(self.library), epilog_seconds=self.epilog_seconds)
        self._write(path, f"#!{PYTHON} -IS\n{launcher}")

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def close(self) -> None:
        """Remove everything; what still runs was counted before."""
        shutil.rmtree(self.directory, ignore_errors=True)
