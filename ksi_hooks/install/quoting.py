"""Writing paths and commands for systemd, tmpfiles.d and cron, each with its own special characters; pure."""

import re
import shlex
from collections.abc import Sequence

PLAIN = re.compile(r"[A-Za-z0-9_@/.:=,+-]+")


def systemd_command(words: Sequence[str]) -> str:
    """Return the value of ExecStart=: quoted words, `%` and `$` doubled (systemd.service(5))."""
    return " ".join(_quoted(word.replace("%", "%%").replace("$", "$$")) for word in words)


def systemd_words(*words: str) -> str:
    """Return words for Environment=, RequiresMountsFor= and tmpfiles.d, where only `%` is special."""
    return " ".join(_quoted(word.replace("%", "%%")) for word in words)


def cron_command(words: Sequence[str]) -> str:
    """Return a command for a crontab, where `%` means a new line unless escaped (crontab(5))."""
    return shlex.join(words).replace("%", r"\%")


def _quoted(word: str) -> str:
    if PLAIN.fullmatch(word):
        return word
    escaped = word.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'
