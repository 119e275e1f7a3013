"""Starting programs, which only this module does: a built environment, a time limit, no pipe."""

import contextlib
import dataclasses
import os
import pwd
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ksi_hooks.errors import CommandFailed, ProgramMissing

TAIL_BYTES = 4000
MAX_TEXT_BYTES = 32 * 2**20  # what runs as a tenant may write without end


class Deadline:
    """A moment that several steps share: each may take what is left."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self, at_most: float = float("inf")) -> float:
        """Return the seconds that are left, never below 0.1 so that a started step can say what it waited
        for.
        """
        return max(0.1, min(at_most, self._end - time.monotonic()))

    @property
    def passed(self) -> bool:
        """True when no time is left."""
        return time.monotonic() >= self._end


@dataclass(frozen=True)
class Tools:
    """Where programs are looked for, and the environment they get: built, never copied from the job."""

    path: Sequence[Path]
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    prefix: tuple[str, ...] = ()  # what starts the program in a cgroup of its own

    def find(self, program: str) -> str:
        """Return the absolute path of a program; raises ProgramMissing with the directories searched."""
        for directory in self.path:
            candidate = directory / program
            if os.access(candidate, os.X_OK) and candidate.is_file():
                return os.fspath(candidate)
        searched = ":".join(map(str, self.path))
        raise ProgramMissing(
            f"program not found: {program} (searched {searched})",
            hint=f"install {program} there, or set tools_path in ksi.yaml",
        )

    def extended(self, **variables: str) -> "Tools":
        """Return the same tools with more variables in their environment."""
        return dataclasses.replace(self, environment={**self.environment, **variables})

    def run(
        self, argv: Sequence[str], *, timeout: float, ok: Sequence[int] = (0,), stdin: bytes = b""
    ) -> None:
        """Run a program whose output belongs in the job's log; raises CommandFailed."""
        self._execute(argv, timeout, ok, stdin, keep=False)

    def capture(
        self, argv: Sequence[str], *, timeout: float, ok: Sequence[int] = (0,), stdin: bytes = b""
    ) -> str:
        """Run a program that answers a question and return its standard output; raises CommandFailed.

        The answer goes to memory, not through a pipe: Podman's helpers outlive it and would hold a pipe open.
        """
        return self._execute(argv, timeout, ok, stdin, keep=True)[1]

    def status(self, argv: Sequence[str], *, timeout: float) -> tuple[int, str]:
        """Run a program whose status is its answer; return what it said, with its complaints if it failed.

        Raises CommandFailed only when its time runs out.
        """
        status, answer, complaint = self._execute(argv, timeout, range(-64, 256), b"", keep=True)
        return status, answer if status == 0 else answer + complaint

    def _execute(
        self, argv: Sequence[str], timeout: float, ok: Sequence[int], stdin: bytes, *, keep: bool
    ) -> tuple[int, str, str]:
        command = [self.find(argv[0]), *argv[1:]]
        if self.prefix:
            command = [self.find(self.prefix[0]), *self.prefix[1:], *command]
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(_Sink(self.log))
            log.write(f"+ {shlex.join(command)}\n")
            out = stack.enter_context(_Sink(None)) if keep else log
            start = log.position()
            status = _wait_for(
                command, dict(self.environment), (_stdin(stack, stdin), out.fd, log.fd), timeout
            )
            answer = out.text() if keep else ""
            tail = log.text(start)[-TAIL_BYTES:]
        if status is None or status not in ok:
            raise CommandFailed(command, status, tail or answer[-TAIL_BYTES:], timeout=timeout)
        return status, answer, tail


def replace_process(argv: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a user's own program with our terminal and return its status as a shell would (128 + signal)."""
    with subprocess.Popen(list(argv), env=dict(environment)) as child:
        forwarded = {
            number: signal.signal(number, lambda n, _frame: child.send_signal(n))
            for number in (signal.SIGTERM, signal.SIGHUP)
        }
        ignored = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to the child as well
        try:
            status = child.wait()
        finally:
            signal.signal(signal.SIGINT, ignored)
            for number, handler in forwarded.items():
                signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def as_user(
    argv: Sequence[str], uid: int, *, timeout: float, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run one of our own programs as another user (needs root) and return its status and output.

    Raises KeyError when the uid has no passwd entry and CommandFailed when the time runs out.
    """
    entry = pwd.getpwuid(uid)
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    with _Sink(None) as out, _Sink(None) as err, contextlib.ExitStack() as stack:
        child = subprocess.Popen(
            list(argv),
            stdin=_stdin(stack, b""),
            stdout=out.fd,
            stderr=err.fd,
            env=dict(environment),
            cwd="/",
            user=uid,
            group=entry.pw_gid,
            extra_groups=groups,
            umask=0o077,
            start_new_session=True,
        )
        status = _end_of(child, timeout)
        if status is None:
            raise CommandFailed(list(argv), None, err.text(), timeout=timeout)
        return status, out.text() or err.text()


class _Sink:
    """A place for output: a log file that is appended to, or memory when there is none."""

    def __init__(self, path: Path | None) -> None:
        if path is None:
            self.fd = os.memfd_create("ksi-output", os.MFD_CLOEXEC)
        else:
            self.fd = os.open(
                path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
            )

    def __enter__(self) -> "_Sink":
        return self

    def __exit__(self, *_exc: object) -> None:
        os.close(self.fd)

    def write(self, text: str) -> None:
        os.write(self.fd, text.encode("utf-8", "replace"))

    def position(self) -> int:
        return os.fstat(self.fd).st_size

    def text(self, start: int = 0) -> str:
        size = min(os.fstat(self.fd).st_size - start, MAX_TEXT_BYTES)
        return os.pread(self.fd, max(0, size), start).decode("utf-8", "replace")


def _stdin(stack: contextlib.ExitStack, data: bytes) -> int:
    if not data:
        return subprocess.DEVNULL
    sink = stack.enter_context(_Sink(None))  # secrets travel in memory, not in the argument list
    os.write(sink.fd, data)
    os.lseek(sink.fd, 0, os.SEEK_SET)
    return sink.fd


def _wait_for(
    command: list[str], environment: dict[str, str], streams: tuple[int, int, int], timeout: float
) -> int | None:
    try:
        child = subprocess.Popen(
            command,
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            env=environment,
            cwd="/",  # Podman refuses to start in a directory that is gone or not readable
            start_new_session=True,
        )
    except OSError as error:
        raise ProgramMissing(
            f"cannot start {command[0]}: {error.strerror}", hint="install it again"
        ) from error
    return _end_of(child, timeout)


def _end_of(child: "subprocess.Popen[bytes]", timeout: float) -> int | None:
    """Wait; at the time limit, or when we are asked to stop, end the child's whole group."""
    try:
        return child.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.returncode is None:
            _stop(child)


def _stop(child: "subprocess.Popen[bytes]") -> None:
    for number, grace in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(grace)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
