"""Jobs of a testbed site: submitted, looked at and ended with Slurm's own commands, as any user would."""

import contextlib
import os
import pwd
import re
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import command, processes
from testbed.processes import Process
from testbed.slurm import Site

POLL_SECONDS = 0.1
ENDED = frozenset({"CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "BOOT_FAIL"})


@dataclass(frozen=True)
class Result:
    """How a command that a user typed ended."""

    status: int
    out: str
    err: str


class Jobs:
    """The commands of a site's users; nothing of the tests' own environment reaches a job."""

    def __init__(self, site: Site, work_dir: Path, env: Mapping[str, str] | None = None) -> None:
        self.site = site
        self.work_dir = work_dir
        self.extra = dict(env or {})
        work_dir.mkdir(parents=True, exist_ok=True)
        work_dir.chmod(0o1777)

    def environment(self, user: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """What a login shell of the user would have."""
        entry = pwd.getpwnam(user)
        basic = {"PATH": "/usr/bin:/bin", "HOME": entry.pw_dir, "USER": user, "LANG": "C.UTF-8"}
        return {**basic, **self.site.env, **self.extra, **(env or {})}

    def start(
        self, *argv: str | Path, user: str = "root", env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a command in the work directory as a user; the caller waits for it."""
        entry = pwd.getpwnam(user)
        as_other = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []} if entry.pw_uid else {}
        return subprocess.Popen(
            [os.fspath(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.work_dir,
            env=self.environment(user, env),
            **as_other,
        )

    def command(
        self,
        *argv: str | Path,
        user: str = "root",
        env: Mapping[str, str] | None = None,
        timeout: float = 120,
    ) -> Result:
        """Run a command to its end."""
        with self.start(*argv, user=user, env=env) as child:
            try:
                out, err = child.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                child.kill()
                raise
        return Result(child.returncode, out, err)

    def submit(
        self,
        script: str | Path,
        *options: str,
        user: str = "root",
        env: Mapping[str, str] | None = None,
        constraint: str | None = "k8s",
    ) -> "Job":
        """Submit a batch script, given as a file or as the lines after `#!/bin/bash`."""
        if isinstance(script, str):
            script = self._write_script(script)
        wish = [f"--constraint={constraint}"] if constraint else []
        argv = ["sbatch", "--parsable", *wish, "--output=%A_%a.out", *options, str(script)]
        result = self.command(*argv, user=user, env=env)
        if result.status != 0:
            raise command.TestbedError(f"sbatch ended with status {result.status}", result.err)
        return Job(self, int(result.out.split(";")[0]))

    def _write_script(self, lines: str) -> Path:
        number = len(list(self.work_dir.glob("script-*.sh")))
        path = self.work_dir / f"script-{number}.sh"
        path.write_text(f"#!/bin/bash\n{lines}\n", encoding="utf-8")
        path.chmod(0o755)
        return path


class Job:
    """One submitted job."""

    def __init__(self, jobs: Jobs, number: int, element: int | None = None) -> None:
        self.jobs = jobs
        self.id = number
        self.element = element

    @property
    def name(self) -> str:
        """What Slurm's commands call it."""
        return str(self.id) if self.element is None else f"{self.id}_{self.element}"

    @property
    def output_file(self) -> Path:
        """Where its output goes; Slurm writes %a of a job that is no array element as its largest number."""
        element = 4294967294 if self.element is None else self.element
        return self.jobs.work_dir / f"{self.id}_{element}.out"

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self.output_file.read_text(errors="replace") if self.output_file.exists() else ""

    def element_of(self, element: int) -> "Job":
        """One element of the array that this is."""
        return Job(self.jobs, self.id, element)

    def fact(self, name: str) -> str:
        """One field of `scontrol show job`."""
        text = command.capture(["scontrol", "--oneliner", "show", "job", self.name], env=self.jobs.site.env)
        found = re.search(rf"\b{name}=(\S+)", text)
        return found.group(1) if found else ""

    @property
    def state(self) -> str:
        """Its state, such as RUNNING."""
        return self.fact("JobState")

    @property
    def exit_status(self) -> int:
        """Its script's exit status."""
        return int(self.fact("ExitCode").split(":")[0])

    def wait_running(self, timeout: float = 30) -> "Job":
        """Wait until it runs."""
        wait_for(lambda: self.state == "RUNNING", timeout, f"job {self.name} runs", lambda: self.state)
        return self

    def wait_output(self, text: str, timeout: float = 90) -> "Job":
        """Wait until it has printed something."""

        def printed() -> bool:
            if text in self.output:
                return True
            if self.state in ENDED:
                raise AssertionError(f"job {self.name} ended without {text!r}: {self.output}")
            return False

        wait_for(printed, timeout, f"job {self.name} prints {text!r}", lambda: self.output)
        return self

    def wait_end(self, timeout: float = 120) -> "Job":
        """Wait until it has ended, epilogs included; COMPLETING is a state of its own."""
        wait_for(
            lambda: self.state in ENDED,
            timeout,
            f"job {self.name} ends",
            lambda: f"{self.state}: {self.output}",
        )
        return self

    def stepds(self) -> list[Process]:
        """Its slurmstepd processes on this machine."""
        return processes.with_title(f"slurmstepd: [{self.id}.")

    def kill_stepds(self) -> None:
        """Kill slurmstepd, so that no epilog of a task runs."""
        processes.kill(self.stepds())

    def kill_script(self) -> None:
        """Kill what a killed slurmstepd has left of the script."""
        processes.kill(processes.with_variable("SLURM_JOB_ID", str(self.id)))

    def cancel(self, *options: str) -> "Job":
        """Send scancel."""
        command.capture(["scancel", *options, self.name], env=self.jobs.site.env)
        return self


def wait_for(
    true: Callable[[], object],
    timeout: float,
    what: str,
    saw: Callable[[], object] = lambda: "",
    *,
    pause: float = POLL_SECONDS,
) -> None:
    """Poll until something is true; an AssertionError tells what was waited for and what was seen instead."""
    deadline = time.monotonic() + timeout
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not so after {timeout:g} s: {what} (saw: {saw()})")
        time.sleep(pause)


def free_node_port() -> int:
    """A port of Kubernetes' range that nobody uses at the moment."""
    for port in range(30500, 32768):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise command.TestbedError("no free node port")


@contextlib.contextmanager
def listening(port: int) -> Iterator[None]:
    """Be the program that uses a port of loopback."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        yield
