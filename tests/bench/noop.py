"""What the task hooks cost a job that is not ours, beside `sh -c :` in the same run."""

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import command

from bench import figures, machine, steps
from bench.figures import Spread
from bench.installation import Installation, install

JOB = "4711"
START = "1700000000"
TASK = {
    "PATH": "/usr/bin:/bin",
    "SLURM_JOB_ID": JOB,
    "SLURM_JOB_UID": str(os.getuid()),
    "SLURM_JOB_START_TIME": START,
    "SLURM_PROCID": "0",
}
BASE = "sh -c :"
SILENT = [(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in (0, 1, 2)]


@dataclass(frozen=True)
class Case:
    """One program to start again and again."""

    name: str
    argv: list[str]
    environment: Mapping[str, str]


def main(argv: list[str], data: Path) -> None:
    """Measure, write rows and summary below `data`, print a table."""
    options = _parser().parse_args(argv)
    room = Path(tempfile.mkdtemp(prefix="ksi-bench-", dir="/var/tmp"))
    try:
        found = cases(room)
        machine.await_quiet(options.quiet)
        before = machine.load()
        rows = measure(found, options.number)
    finally:
        shutil.rmtree(room)
    figures.write_csv(data / "noop.csv", rows)
    names = [case.name for case in found]
    summary = {
        "machine": machine.facts(),
        "load": [before, machine.load()],
        "wall_ms": {n: Spread.of(r[f"{n} ms"] for r in rows).as_json() for n in names},
        "cpu_ms": {n: Spread.of(r[f"{n} cpu ms"] for r in rows).as_json() for n in names},
        "cpu_seconds_of_1000_epilogs": round(sum(r["epilog cpu ms"] for r in rows) / len(rows), 3),
    }
    figures.write_json(data / "noop.json", summary)
    print(figures.table(("no-op", "wall ms", "min", "max", "CPU ms", "above sh -c :"), _lines(rows, names)))
    if options.rounds:
        steps.main(options.rounds, options.quiet, data)


def cases(room: Path) -> list[Case]:
    """Prepare what a node has after a job that is none of ours, with the root pair and without."""
    asked = install(room / "asked")
    marked = install(room / "marked")
    (marked.settings.node_state_dir / "jobs").mkdir(parents=True)
    answers = asked.settings.user_run_dir(os.getuid()) / "answers"
    answers.mkdir(parents=True)
    (answers / f"{JOB}-{START}.no").touch()
    empty = room / "empty"
    empty.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    empty.chmod(0o755)
    prolog = str(asked.hook("task-prolog"))
    return [
        Case(BASE, ["/bin/sh", "-c", ":"], TASK),
        Case("empty hook", [str(empty)], TASK),
        Case("KSI=0", [prolog], {**TASK, "KSI": "0"}),
        Case("not marked", [str(marked.hook("task-prolog"))], TASK),
        Case("cached no", [prolog], TASK),
        Case("epilog", [str(asked.hook("task-epilog"))], TASK),
        Case("python without gate", behind_the_gate(asked), {**TASK, "KSI": "0"}),
    ]


def behind_the_gate(asked: Installation) -> list[str]:
    """What the gate of the prolog spares: the interpreter that comes to the same no."""
    for line in asked.hook("task-prolog").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if "-I" in words:
            program = words[: words.index("$PPID")]
            return [*program, "1", str(asked.settings.node_state_dir), str(asked.settings.run_root)]
    raise command.TestbedError("the task prolog starts no interpreter")


def measure(found: list[Case], number: int) -> list[dict[str, float]]:
    """Start every program in turn, `number` times; the first round only warms up."""
    rows = []
    for turn in range(number + 1):
        row: dict[str, float] = {}
        for case in found[turn % len(found) :] + found[: turn % len(found)]:
            row[f"{case.name} ms"], row[f"{case.name} cpu ms"] = once(case)
        rows.append({name: row[name] for c in found for name in (f"{c.name} ms", f"{c.name} cpu ms")})
    return rows[1:]


def once(case: Case) -> tuple[float, float]:
    """Milliseconds on the clock and of the processor for one start."""
    began = time.perf_counter_ns()
    pid = os.posix_spawn(case.argv[0], case.argv, case.environment, file_actions=SILENT)
    _, status, used = os.wait4(pid, 0)
    wall = time.perf_counter_ns() - began
    if status != 0:
        raise command.TestbedError(f"{case.name}: {' '.join(case.argv)} ended with {status}")
    return wall / 1e6, (used.ru_utime + used.ru_stime) * 1e3


def _lines(rows: list[dict[str, float]], names: list[str]) -> list[list[str]]:
    base = Spread.of(r[f"{BASE} ms"] for r in rows).median
    lines = []
    for name in names:
        wall, cpu = Spread.of(r[f"{name} ms"] for r in rows), Spread.of(r[f"{name} cpu ms"] for r in rows)
        numbers = (wall.median, wall.low, wall.high, cpu.median, wall.median - base)
        lines.append([name, *(f"{number:.2f}" for number in numbers)])
    return lines


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench noop", description=__doc__)
    parser.add_argument("-n", "--number", type=int, default=500, help="starts of each (default: 500)")
    parser.add_argument(
        "--rounds",
        type=int,
        default=0,
        metavar="N",
        help="measure `srun -n 64 true` as well, N times on each of three Slurm sites (default: 0)",
    )
    parser.add_argument(
        "--quiet", type=float, default=20, metavar="S", help="wait so long for idle processors (default: 20)"
    )
    return parser
