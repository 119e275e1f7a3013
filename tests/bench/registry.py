"""What the registry costs when it holds 10, 1,000 and 10,000 records: claim, find, release, and ksi-gc."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from testbed import cache, podman
from testbed.slurm import Site, new_state_dir

from bench import figures, machine, records
from bench.figures import Spread
from bench.installation import Installation, install
from ksi_hooks.lifecycle import claim
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.registry.record import Record

NODE = "n1"
OTHERS = 99  # other nodes
FEW = 10  # records of this node, where the others have the rest
SIZES = (10, 1000, 10000)
OWN = 100  # records of this node when ksi-gc looks
BUDGET_SECONDS = 20.0  # for one row of the table
LEAST = 5
FIRST_JOB = 1_000_000  # above the job ids in the records that are there already


def main(argv: list[str], data: Path) -> None:
    """Measure, write rows and summary below `data`, print two tables."""
    options = _parser().parse_args(argv)
    before = machine.load()
    rows = [
        row for layout in ("many nodes", "one node") for size in SIZES for row in _cell(layout, size, options)
    ]
    figures.write_csv(data / "registry.csv", rows)
    rounds = collect(options.rounds)
    figures.write_csv(data / "gc.csv", rounds)
    summary = {
        "machine": machine.facts(),
        "load": [before, machine.load()],
        "operations": summarise(rows),
        "gc": summarise_gc(rounds),
    }
    figures.write_json(data / "registry.json", summary)
    lines = [_line(entry) for entry in summary["operations"]]
    print(figures.table(("operation", "records", "ms", "min..max", "CPU ms", "CPU to 10"), lines))
    print()
    lines = [_gc_line(name, entry) for name, entry in summary["gc"].items()]
    print(figures.table(("ksi-gc --dry-run", "CPU s", "s", "CPU to 100"), lines))


def fill(context: Context, layout: str, size: int) -> None:
    """Write the records that are there already: all of this node, or few of it and many of others."""
    others = [f"m{number:02d}" for number in range(OTHERS)]
    for number in range(size):
        elsewhere = layout == "many nodes" and number >= FEW
        node = others[number % OTHERS] if elsewhere else NODE
        context.registry.claim(records.make(context, number + 1, node=node))


def _cell(layout: str, size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """One registry: repeat claim, find and release of one more job until the time is used up."""
    room = Path(tempfile.mkdtemp(prefix="ksi-bench-", dir="/var/tmp"))
    try:
        made = install(room / "ksi", node=f"{NODE},m[00-{OTHERS - 1}]")
        context = Context.make(made.settings, NODE, dict(os.environ))
        fill(context, layout, size)
        rows: list[dict[str, Any]] = []
        end = time.monotonic() + BUDGET_SECONDS
        for turn in range(options.number):
            if turn >= LEAST and time.monotonic() > end:
                break
            rows += [{"layout": layout, "records": size, **row} for row in life(context, FIRST_JOB + turn)]
        return rows
    finally:
        shutil.rmtree(room)


def life(context: Context, job: int) -> list[dict[str, Any]]:
    """Claim a job's cluster as a hook does, find it as an epilog does, release it."""
    rows = []

    def timed(name: str, action: Callable[[], Any]) -> Any:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        result = action()
        cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
        rows.append({"operation": name, "ms": wall / 1e6, "cpu_ms": cpu / 1e6})
        return result

    timed("claim", lambda: claim.new_record(context, job_id=job))
    found: list[Record] = timed("find", lambda: context.registry.of_job(NODE, job, context.uid))
    timed("release", lambda: context.registry.remove(found[0]))
    return rows


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians per operation, layout and size, and the ratio to the smallest size."""
    summary = []
    for layout in ("many nodes", "one node"):
        for operation in ("claim", "find", "release"):
            base = 0.0
            for size in SIZES:
                own = [
                    r
                    for r in rows
                    if (r["layout"], r["operation"], r["records"]) == (layout, operation, size)
                ]
                wall, cpu = Spread.of(r["ms"] for r in own), Spread.of(r["cpu_ms"] for r in own)
                base = base or cpu.median
                summary.append(
                    {
                        "operation": operation,
                        "layout": layout,
                        "records": size,
                        "ms": wall.as_json(),
                        "cpu_ms": cpu.as_json(),
                        "ratio": round(
                            cpu.median / base, 2
                        ),  # waiting for the disk depends on who else uses it
                    }
                )
    return summary


def collect(rounds: int) -> list[dict[str, Any]]:
    """Time ksi-gc --dry-run, with few records and many, on a real site that knows none of the jobs."""
    rows = []
    state = new_state_dir()
    try:
        with Site(state, nodes=(NODE,)) as site:
            small = _gc_registry(state / "small", OWN)
            large = _gc_registry(state / "large", SIZES[-1])
            for turn in range(rounds + 1):
                for size, made in ((OWN, small), (SIZES[-1], large)):
                    wall, cpu, status = _gc(made, site)
                    if turn:
                        rows.append({"records": size, "seconds": wall, "cpu_seconds": cpu, "status": status})
    finally:
        shutil.rmtree(state)
    return rows


def summarise_gc(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians per size, and the ratio of processor seconds to the small registry."""
    summary: dict[str, Any] = {}
    base = 0.0
    for size in (OWN, SIZES[-1]):
        own = [r for r in rows if r["records"] == size]
        cpu = Spread.of(r["cpu_seconds"] for r in own)
        base = base or cpu.median
        summary[f"{size:,} records, {OWN} of this node"] = {
            "cpu_seconds": cpu.as_json(),
            "seconds": Spread.of(r["seconds"] for r in own).as_json(),
            "ratio": round(cpu.median / base, 2),
            "status": sorted({r["status"] for r in own}),
        }
    return summary


def _gc_registry(prefix: Path, size: int) -> Installation:
    tools = f"[{podman.bin_dir(cache.default_root())}, /usr/bin, /usr/sbin]"
    made = install(prefix, node=f"{NODE},m[00-{OTHERS - 1}]", tools_path=tools)
    context = Context.make(made.settings, NODE, dict(os.environ))
    for number in range(size):
        node = NODE if number < OWN else f"m{number % OTHERS:02d}"
        context.registry.claim(records.make(context, number + 1, node=node))
    return made


def _gc(made: Installation, site: Site) -> tuple[float, float, int]:
    """Wall and processor seconds of one round with all it starts, and its status."""
    argv = [sys.executable, "-I", "-m", "ksi_hooks.gc.main", "--config", str(made.config_file)]
    argv += ["--dry-run", "--node", NODE]
    silent = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    began = time.monotonic()
    pid = os.posix_spawn(argv[0], argv, {**os.environ, **site.env}, file_actions=silent)
    _, status, used = os.wait4(pid, 0)
    return time.monotonic() - began, used.ru_utime + used.ru_stime, os.waitstatus_to_exitcode(status)


def _line(entry: dict[str, Any]) -> list[str]:
    wall = Spread(**entry["ms"])
    return [
        f"{entry['operation']}, {entry['layout']}",
        f"{entry['records']:,}",
        f"{wall.median:.2f}",
        f"{wall.low:.2f}..{wall.high:.2f}",
        f"{entry['cpu_ms']['median']:.2f}",
        f"{entry['ratio']:.2f}",
    ]


def _gc_line(name: str, entry: dict[str, Any]) -> list[str]:
    spreads = (Spread(**entry[key]).shown(2) for key in ("cpu_seconds", "seconds"))
    return [name, *spreads, f"{entry['ratio']:.2f}"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench registry", description=__doc__)
    parser.add_argument("-n", "--number", type=int, default=50, help="jobs per row at most (default: 50)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of ksi-gc per registry (default: 5)")
    return parser
