"""What a hostile user of the same node can do: anything, as himself."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path


def act_as(uid: int, action: Callable[[], object], umask: int = 0o022) -> None:
    """Run the action in a child that is this user; fails when it does."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.umask(umask)
            action()
            status = 0
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Program:
    """A process of the user's that says "ready" and stays; its title and environment are his to choose."""

    def __init__(
        self, python: str, uid: int, code: str = "", *, title: str = "", env: dict[str, str] | None = None
    ) -> None:
        text = f"{code}\nprint('ready', flush=True)\nimport time\ntime.sleep(120)"
        self._child = subprocess.Popen(
            [title or python, "-Ic", text],
            executable=python,
            env=env or {},
            user=uid,
            group=uid,
            extra_groups=[],
            stdout=subprocess.PIPE,
        )

    @property
    def pid(self) -> int:
        """Return its number."""
        return self._child.pid

    @property
    def lives(self) -> bool:
        """True while it runs."""
        return self._child.poll() is None

    def __enter__(self) -> "Program":
        assert self._child.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_exc: object) -> None:
        self._child.kill()
        self._child.wait()
        self._child.stdout.close()


def collect(site, *options: str, python: str = "", grace: str = "0") -> subprocess.CompletedProcess[str]:
    """Run ksi-gc on node n1 as root."""
    program = [python or sys.executable, "-I", "-m", "ksi_hooks.gc.main", "--config", str(site.settings_file)]
    command = [*program, "--node", "n1", "--older-than", grace, *options]
    return subprocess.run(command, env={}, capture_output=True, text=True, timeout=100)


def make_old(path: Path, seconds: float = 3600) -> None:
    """Let a file look older; its owner may do the same."""
    moment = time.time() - seconds
    os.utime(path, (moment, moment), follow_symlinks=False)
