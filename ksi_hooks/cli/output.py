"""How commands show things: aligned tables, ages, JSON, warnings."""

import json
import pwd
import sys
from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows below their head, columns aligned; text from files cannot move the cursor."""
    lines = [head, *([clean(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)


def pairs(rows: Sequence[tuple[str, str]]) -> str:
    """Return `name: value` lines with the values aligned."""
    width = max(len(name) for name, _ in rows) + 1
    return "".join(f"{name + ':':<{width}} {clean(value)}".rstrip() + "\n" for name, value in rows)


def clean(text: str) -> str:
    """Return text without control characters."""
    return "".join(c if c.isprintable() else "?" for c in text)


def age(seconds: float) -> str:
    """Return a duration as a person would say it: 45s, 12m, 3h05m, 2d4h."""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if minutes < 1:
        return f"{max(0, int(seconds))}s"
    if hours < 1:
        return f"{minutes}m"
    return f"{days}d{hours % 24}h" if days else f"{hours}h{minutes % 60:02}m"


def user_name(uid: int) -> str:
    """Return a user's name, or the number when the node does not know it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def show_json(value: object) -> None:
    """Print one JSON document."""
    print(json.dumps(value, indent=2, default=str))


def warn(text: str) -> None:
    """Tell on stderr what does not stop the command."""
    print(f"ksi: warning: {clean(text)}", file=sys.stderr)
