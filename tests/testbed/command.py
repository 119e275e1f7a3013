"""The one place of the testbed that starts programs: list, log, one exception."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class TestbedError(Exception):
    """One sentence about what failed; the tail of the log that tells why, if there is one."""

    __test__ = False  # not a test class, whatever its name looks like to pytest

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(f"{message}\n{detail}" if detail else message)


def tail(log: Path, lines: int = 20) -> str:
    """Return the last lines of a log file, indented; empty when there is none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join("    " + line for line in text.splitlines()[-lines:])


def run(
    argv: Sequence[str | os.PathLike[str]],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: Path | None = None,
) -> None:
    """Run a program to its end with all output appended to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [os.fspath(word) for word in argv]
    with log.open("ab") as sink, (stdin or Path(os.devnull)).open("rb") as source:
        sink.write(f"+ {' '.join(words)}\n".encode())
        sink.flush()
        status = subprocess.run(
            words, stdin=source, stdout=sink, stderr=sink, env=merged(env), cwd=cwd, check=False
        ).returncode
    if status != 0:
        raise TestbedError(f"{words[0]} ended with status {status}, see {log}", tail(log))


def capture(
    argv: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> str:
    """Run a program that answers a question and return its standard output."""
    words = [os.fspath(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=merged(env),
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise TestbedError(f"{' '.join(words)} did not end within {timeout:g} s") from e
    if done.returncode != 0:
        raise TestbedError(f"{' '.join(words)} ended with status {done.returncode}", done.stderr.strip())
    return done.stdout


def succeeds(argv: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str] | None = None) -> bool:
    """Tell whether a program ends with status 0; its output is dropped."""
    return (
        subprocess.run(
            [os.fspath(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=merged(env),
            check=False,
        ).returncode
        == 0
    )


def daemon(
    argv: Sequence[str | os.PathLike[str]], *, log: Path, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a program that stays, in a session of its own, with its output in `log`."""
    with log.open("ab") as sink:
        return subprocess.Popen(
            [os.fspath(word) for word in argv],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            env=merged(env),
            start_new_session=True,
        )


def in_mount_namespace(script: str, *args: str | os.PathLike[str], log: Path) -> None:
    """Run a shell script whose mounts vanish with it, however it ends; args arrive as $1, $2 ..."""
    run(["unshare", "--mount", "--propagation", "private", "sh", "-euc", script, "sh", *args], log=log)


def merged(env: Mapping[str, str] | None) -> dict[str, str] | None:
    """The caller's environment with some variables set."""
    return None if env is None else {**os.environ, **env}
