"""Drives the emulated step daemon: starts a step's tasks, collects what their hooks said, ends them."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from ksi_hooks import proc

DAEMON = Path(__file__).with_name("slurmstepd.py")
LINE = re.compile(r"export [A-Za-z_][A-Za-z0-9_]*=[^\r\n]*|unset [A-Za-z0-9_]+|print .+")


@dataclass(frozen=True)
class Prolog:
    """What a TaskProlog did, its output parsed as slurmstepd does: three verbs in column 0."""

    status: int
    output: str
    seconds: float
    exports: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)
    prints: list[str] = field(default_factory=list)

    @classmethod
    def parse(cls, status: int, output: str, seconds: float) -> "Prolog":
        found = cls(status, output, seconds)
        for line in output.split("\n")[:-1]:
            verb, _, rest = line.partition(" ")
            if verb == "export" and "=" in rest:
                name, _, value = rest.lstrip().partition("=")
                found.exports[name.rstrip()] = value
            elif verb == "unset" and rest:
                found.unset.append(rest.strip())
            elif verb == "print" and rest:
                found.prints.append(rest)
        return found

    @property
    def dropped(self) -> list[str]:
        """Lines that slurmstepd would not obey, or only half."""
        lines = self.output.split("\n")
        return [line for line in lines[:-1] if not LINE.fullmatch(line)] + ([lines[-1]] if lines[-1] else [])

    @property
    def said(self) -> str:
        """What reaches the job's output."""
        return "\n".join(self.prints)


@dataclass(frozen=True)
class Epilog:
    """How a TaskEpilog ended; its output goes nowhere."""

    status: int
    seconds: float


class Step:
    """One step of a job on one node, with a real process tree: slurmstepd, its tasks, their hooks."""

    def __init__(
        self,
        site,
        job_id,
        kind="batch",
        *,
        tasks=1,
        node="n1",
        env=None,
        drop=(),
        uid=None,
        cwd=None,
        cwd_vanishes=False,
        umask=0o022,
        start_time=None,
    ):
        self.site = site
        self.tasks = tasks
        self.room = Path(tempfile.mkdtemp(prefix=f"step-{job_id}-", dir=site.base))
        self.room.chmod(0o1777)
        cwd = cwd or site.work_dir
        self.environment = {**site.environment(job_id, node, uid=uid, start_time=start_time), "PWD": str(cwd)}
        if kind not in ("batch", "interactive"):
            self.environment["SLURM_STEP_ID"] = str(kind)
        self.environment |= env or {}
        for name in drop:
            self.environment.pop(name, None)
        reader, self._commands = os.pipe()
        setup = {
            "room": str(self.room),
            "commands": reader,
            "cwd": str(cwd),
            "umask": umask,
            "uid": uid,
            "cwd_vanishes": cwd_vanishes,
            "prolog": str(site.task_prolog),
            "epilog": str(site.task_epilog),
        }
        with DAEMON.open() as program:
            self.daemon = subprocess.Popen(
                [f"slurmstepd: [{job_id}.{kind}]"],
                executable=sys.executable,
                stdin=program,
                env={"STEPD_SETUP": json.dumps(setup), "PYTHONHOME": f"{sys.base_prefix}:{sys.base_prefix}"},
                pass_fds=[reader],
                start_new_session=True,
            )
        os.close(reader)

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self.close()

    def start(self, *numbers):
        """Start these tasks' prologs and do not wait."""
        for number in numbers:
            self._command("start", number, "prolog_task")

    def finish(self, number=0, timeout=40):
        """Wait for a started prolog."""
        return Prolog.parse(**self._result(f"prolog-{number}", timeout))

    def prologs(self, timeout=40):
        """Start all tasks at once and wait for their prologs."""
        self.start(*range(self.tasks))
        return [self.finish(number, timeout) for number in range(self.tasks)]

    def prolog(self, number=0, timeout=40):
        """Start one task and wait for its prolog."""
        self.start(number)
        return self.finish(number, timeout)

    def end_task(self, number=0, timeout=40):
        """End a task and wait for its epilog."""
        self.start_end(number)
        result = self._result(f"epilog-{number}", timeout)
        return Epilog(result["status"], result["seconds"])

    def start_end(self, number=0):
        """End a task, and do not wait for its epilog."""
        self._command("end", number, "epilog_task")

    def kill_epilog(self, number=0):
        """SIGKILL a running epilog with its process group, and wait until slurmstepd has seen it end."""
        os.killpg(self._result(f"epilog-hook-{number}", 10)["pid"], signal.SIGKILL)
        self._result(f"epilog-{number}", 20)

    def end(self):
        """End all tasks, one after another."""
        return [self.end_task(number) for number in range(self.tasks)]

    def hook_pid(self, number=0):
        """Return the process id of a running prolog's sh gate, which also is its process group."""
        return self._result(f"hook-{number}", 10)["pid"]

    def signal_hook(self, signal_number, number=0):
        """Signal a prolog and everything in its process group, as scancel does without cgroups."""
        os.killpg(self.hook_pid(number), signal_number)

    def kill(self):
        """SIGKILL slurmstepd: no epilog runs."""
        self.daemon.kill()
        self.daemon.wait()

    def close(self):
        """End what is left of the step, without epilogs."""
        with contextlib.suppress(OSError):
            os.close(self._commands)
        self._commands = -1
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.daemon.wait(0 if self.daemon.poll() is not None else 5)
        self.daemon.kill()
        self.daemon.wait()
        for mark in (*self.room.glob("hook-*"), *self.room.glob("epilog-hook-*"), *self.room.glob("task-*")):
            with contextlib.suppress(ValueError):
                end_group(**json.loads(mark.read_text()))

    def _command(self, verb, number, context):
        local = {"SLURM_LOCALID": str(number), "SLURM_PROCID": str(number), "SLURM_SCRIPT_CONTEXT": context}
        line = json.dumps([verb, number, {**local, **self.environment}])
        os.write(self._commands, line.encode() + b"\n")

    def _result(self, name, timeout):
        path = self.room / name
        end = time.monotonic() + timeout
        while not path.exists():
            if time.monotonic() > end:
                raise AssertionError(f"no {name} after {timeout} s")
            time.sleep(0.005)
        return json.loads(path.read_text())


def end_group(pid, start):
    """Kill a process group that this test started; its leader may be gone, and its number used again."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, IndexError):
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            leader, began = int(fields[2]), int(fields[19])
            if leader == pid and began >= start and proc.find(pid) in (None, proc.Process(pid, start)):
                os.kill(int(entry.name), signal.SIGKILL)
