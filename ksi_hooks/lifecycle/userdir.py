"""One user's directory on one node: the lock of his hooks, secrets, logs, and who holds what."""

import contextlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import files, locks, proc
from ksi_hooks.config import Settings
from ksi_hooks.errors import AlreadyTold, KsiError, LockTimeout
from ksi_hooks.gate import ANSWER_DIR
from ksi_hooks.proc import Process
from ksi_hooks.slurm.job import Step

DAY = 86400.0
FORGET_SECONDS = 3.0


@dataclass(frozen=True)
class Holder:
    """A task that uses a job's cluster, and the slurmstepd of its step."""

    stepd: Process
    task: Process
    owns_job: bool


@dataclass(frozen=True)
class UserDir:
    """The directory, 0700 and on node-local disk; everything in it belongs to the user."""

    path: Path
    lock_timeout: float

    @classmethod
    def make(cls, settings: Settings, uid: int) -> "UserDir":
        """Make or accept the user's directory; raises KsiError when a stranger owns it."""
        path = files.private_dir(settings.user_run_dir(uid))
        for name in ("logs", "jobs"):
            (path / name).mkdir(mode=0o700, exist_ok=True)
        return cls(path, settings.lock_timeout)

    @contextlib.contextmanager
    def locked(self, *, at_most: float = float("inf")) -> Iterator[None]:
        """Hold the lock between the user's hooks on this node; only they can open it. Raises LockTimeout."""
        with locks.hold(self.path / "lock", timeout=min(self.lock_timeout, at_most)):
            yield

    def cluster_dir(self, cluster: str) -> Path:
        """Return where a cluster's kubeconfig, token and certificate lie."""
        return self.path / cluster

    def log_file(self, cluster: str) -> Path:
        """Return the log of a cluster: every command with its output; it outlives the cluster."""
        return self.path / "logs" / f"{cluster}.log"

    def prune(self, keep_days: float) -> None:
        """Remove logs older than the site keeps them, answers and notes of jobs after a day without use."""
        for old in _older(self.path / "logs", keep_days * DAY):
            old.unlink(missing_ok=True)
        for old in _older(self.path / ANSWER_DIR, DAY):
            old.unlink(missing_ok=True)
        self.forget_unheld(older_than=DAY)

    def forget_unheld(self, *, older_than: float) -> None:
        """Remove the notes about jobs that no living slurmstepd holds, changed so many seconds ago."""
        for old in _older(self.path / "jobs", older_than):
            with self.locked():
                if old.name.isdecimal() and not self.holders(int(old.name)):
                    self.forget_job(int(old.name))

    def add_holder(self, job_id: int, step: Step) -> None:
        """Note that a task of this step uses the job's cluster."""
        job_dir = self._job_dir(job_id)
        job_dir.mkdir(mode=0o700, exist_ok=True)
        parts = (
            step.stepd.pid,
            step.stepd.start,
            step.task.pid,
            step.task.start,
            "own" if step.owns_job else "step",
        )
        (job_dir / ("holder-" + "-".join(map(str, parts)))).touch(mode=0o600)

    def holders(self, job_id: int) -> list[Holder]:
        """Return the holders whose slurmstepd is alive; the marks of dead ones are removed."""
        alive = []
        for mark in self._job_dir(job_id).glob("holder-*"):
            with contextlib.suppress(ValueError):
                _, pid, start, task_pid, task_start, kind = mark.name.split("-")
                stepd, task = Process(int(pid), int(start)), Process(int(task_pid), int(task_start))
                # Where /proc hides who started the task, the task itself tells.
                if proc.is_alive(stepd if stepd.pid else task):
                    alive.append(Holder(stepd, task, kind == "own"))
                    continue
            mark.unlink(missing_ok=True)
        return alive

    def drop_holder(self, job_id: int, step: Step) -> None:
        """Forget that tasks of this step used the job's cluster."""
        for mark in self._job_dir(job_id).glob(f"holder-{step.stepd.pid}-{step.stepd.start}-*"):
            mark.unlink(missing_ok=True)

    def note_failure(self, job_id: int, step: Step, error: KsiError) -> None:
        """Tell the job's other tasks why there is no cluster, so that they do not all try again."""
        kind = "own" if step.owns_job else "step"
        mark = self._job_dir(job_id) / f"failed-{step.stepd.pid}-{step.stepd.start}-{kind}"
        mark.parent.mkdir(mode=0o700, exist_ok=True)
        mark.write_text(json.dumps([str(error), error.hint]))

    def failure(self, job_id: int, step: Step) -> AlreadyTold | None:
        """Return why a task of the same step, or of the living step that owns the job, made no cluster."""
        for mark in self._job_dir(job_id).glob("failed-*"):
            with contextlib.suppress(OSError, ValueError):
                _, pid, start, kind = mark.name.split("-")
                stepd = Process(int(pid), int(start))
                if stepd == step.stepd or (kind == "own" and proc.is_alive(stepd)):
                    message, hint = json.loads(mark.read_text())
                    return AlreadyTold(message, hint=hint)
        return None

    def forget_if_unheld(self, job_id: int) -> None:
        """Remove what is noted about a job unless a step holds it, perhaps one that came meanwhile."""
        with contextlib.suppress(LockTimeout), self.locked(at_most=FORGET_SECONDS):
            if not self.holders(job_id):
                self.forget_job(job_id)

    def forget_job(self, job_id: int) -> None:
        """Remove what is noted about a job that nothing holds any more."""
        shutil.rmtree(self._job_dir(job_id), ignore_errors=True)

    def _job_dir(self, job_id: int) -> Path:
        return self.path / "jobs" / str(job_id)


def _older(directory: Path, seconds: float) -> list[Path]:
    """Return the entries that were last changed more than these seconds ago."""
    limit = time.time() - seconds
    found = []
    for entry in directory.glob("*"):
        with contextlib.suppress(FileNotFoundError):
            found += [entry] if entry.lstat().st_mtime < limit else []
    return found
