"""Medians, ranges and ratios; rows as CSV, a summary as JSON, a table for people."""

import csv
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Spread:
    """What a series of measurements comes to."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        """Summarise at least one value."""
        series = sorted(values)
        return cls(statistics.median(series), series[0], series[-1], len(series))

    def shown(self, digits: int) -> str:
        """`median (low..high)`."""
        return f"{self.median:.{digits}f} ({self.low:.{digits}f}..{self.high:.{digits}f})"

    def as_json(self, digits: int = 4) -> dict[str, float]:
        """The numbers, rounded to what was measured."""
        return {name: round(value, digits) for name, value in asdict(self).items()}


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows with the first one's columns; floats get five decimals at most."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()})


def write_json(path: Path, value: object) -> None:
    """Write a summary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, numbers to the right."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = []
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
