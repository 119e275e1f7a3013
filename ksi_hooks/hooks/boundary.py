"""Where a hook's exceptions stop: told to user, syslog and the job's log, and turned into a status."""

import contextlib
import os
import signal
import syslog
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from ksi_hooks.errors import Interrupted, KsiError


def guard(action: Callable[[], None], report: "Report") -> KsiError | None:
    """Run the action; returns what went wrong, a bug included, after writing it down."""
    try:
        action()
    except KsiError as error:
        report.result = "interrupted" if isinstance(error, Interrupted) else "failed"
        report.detail = str(error)
        return error
    except Exception as error:
        report.result = "bug"
        report.detail = f"{type(error).__name__}: {error}"
        report.keep_traceback(traceback.format_exc())
        where = f"; traceback: {report.log}" if report.log else ""
        return KsiError(f"internal error: {report.detail}", hint=f"report it to the administrator{where}")
    return None


class Report:
    """One line for the administrator about one hook, and the place for a traceback."""

    def __init__(self, hook: str, **facts: object) -> None:
        self.hook = hook
        self.facts: dict[str, object] = facts
        self.result = "ok"
        self.detail = ""
        self.log: Path | None = None
        self._started = time.monotonic()

    def send(self) -> None:
        """Write the line to syslog; user text is made one line."""
        facts = {**self.facts, "seconds": f"{time.monotonic() - self._started:.1f}", "result": self.result}
        line = " ".join(f"{name}={value}" for name, value in facts.items())
        detail = "".join(c if c.isprintable() else " " for c in self.detail)
        syslog.openlog("ksi", syslog.LOG_PID, syslog.LOG_DAEMON)
        level = syslog.LOG_INFO if self.result == "ok" else syslog.LOG_ERR
        syslog.syslog(level, f"{self.hook}: {line}" + (f" error={detail[:500]}" if detail else ""))

    def keep_traceback(self, text: str) -> None:
        """Append a traceback to the job's log, or to syslog when there is none."""
        if self.log:
            with contextlib.suppress(OSError), self.log.open("a") as log:
                log.write(text)
                return
        syslog.syslog(syslog.LOG_ERR, f"{self.hook}: {text[-900:]}")


def take_stdout() -> int:
    """Keep slurmstepd's pipe for directives alone; whatever else writes to stdout or stderr writes to
    nowhere.

    The returned descriptor is close-on-exec, so no child can hold the pipe open.
    """
    directives = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return directives


def say(directives: int, lines: list[str]) -> None:
    """Write all lines at once; the reader may have gone."""
    with contextlib.suppress(OSError):
        data = "".join(lines).encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(directives, data) :]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turn the first SIGTERM, SIGINT or SIGHUP into Interrupted; more of them do not disturb the clean-up."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Interrupted(f"stopped by signal {signal.Signals(number).name}")

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
