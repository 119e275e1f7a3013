"""A cluster per job: A, the predecessor's way, beside B, ksi_hooks, alternating on one Slurm site."""

import argparse
import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed import cache, podman, processes, versions
from testbed.slurm import Site, new_state_dir

from bench import figures, machine, outcome, shims
from bench.figures import Spread
from bench.installation import install
from bench.journal import Journal
from bench.processor import Group
from bench.trial import Stand, Trial
from ksi_hooks.lifecycle.context import Context

NODE = "n1"
PHASES = ("hook", "kind prepares", "node boots", "kubeadm init", "kind finishes", "access", "first pod")
CPU_IS = (
    "cpuacct of slurmd with all it starts (steps, hooks, kind, podman, kubectl) and of the node container;"
    " not conmon, the clean-up that conmon starts, and the kernel's own threads"
)


def main(argv: list[str], data: Path) -> None:
    """Run the pairs, write rows and summary below `data`, print a table."""
    options = _parser().parse_args(argv)
    with stand(options.limit, dict(word.split("=", 1) for word in options.settings)) as made:
        before = machine.load()
        for side in "AB"[: 2 * options.warm]:
            _say(Trial(made, side).run(), "warm")
        rows = measure(made, options.pairs, options.quiet)
    figures.write_csv(data / f"{options.name}.csv", rows)
    summary = summarise(rows)
    summary |= {"machine": machine.facts(), "load": [before, machine.load()], "settings": options.settings}
    summary["cpu_seconds_counts"] = CPU_IS
    figures.write_json(options.json or data / f"{options.name}.json", summary)
    print(shown(summary))


def measure(made: Stand, pairs: int, quiet: float) -> list[dict[str, Any]]:
    """ABBA: each side is as often first as second."""
    rows = []
    for pair in range(1, pairs + 1):
        for side in "AB" if pair % 2 else "BA":
            machine.await_quiet(quiet)
            load = machine.load()
            trial = Trial(made, side).run()
            rows.append({"pair": pair, "load": round(load, 2), **_say(trial, f"pair {pair}")})
    return rows


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians and ranges per side, and the median of B/A over the pairs."""
    summary: dict[str, Any] = {"pairs": max(row["pair"] for row in rows), "failed": {}, "sides": {}}
    names = (*outcome.TIMES, *outcome.COUNTS, *(f"s {phase}" for phase in PHASES), "others_busy")
    for side in "AB":
        of_side = [row for row in rows if row["side"] == side]
        summary["failed"][side] = sum(not row["ok"] for row in of_side)
        values = {name: [row[name] for row in of_side if row[name] is not None] for name in names}
        summary["sides"][side] = {name: Spread.of(v).as_json(3) for name, v in values.items() if v}
    ratios = {name: _ratios(rows, name) for name in (*outcome.TIMES, *outcome.COUNTS)}
    summary["ratios"] = {name: round(Spread.of(found).median, 3) for name, found in ratios.items() if found}
    summary["ratios_of_pairs"] = {name: [round(r, 3) for r in found] for name, found in ratios.items()}
    return summary


def shown(summary: dict[str, Any]) -> str:
    """The table for people."""
    lines = []
    for name in (*outcome.TIMES, *outcome.COUNTS, *(f"s {phase}" for phase in PHASES), "others_busy"):
        cells = [name]
        for side in "AB":
            found = summary["sides"][side].get(name)
            cells.append(Spread(**found).shown(1 if "processes" in name else 2) if found else "-")
        ratio = summary["ratios"].get(name)
        lines.append([*cells, "" if ratio is None else f"{ratio:.2f}"])
    failed = summary["failed"]
    head = (f"{summary['pairs']} pairs", "A: in the job", "B: ksi_hooks", "B/A")
    return figures.table(head, [*lines, ["failed", str(failed["A"]), str(failed["B"]), ""]])


@contextmanager
def stand(limit: float, settings: dict[str, str]) -> Iterator[Stand]:
    """A Slurm site with our hooks, counting programs and a cgroup; all of it gone afterwards."""
    state = new_state_dir()
    real = podman.bin_dir(cache.default_root())
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, state)
        (state / "work").mkdir()
        book = Journal(state / "journal")
        tools = shims.tools(state / "tools", real, book)
        path = f"[{tools}, /usr/local/bin, /usr/bin, /usr/sbin]"
        wanted = {"tools_path": path, "node_image": versions.NODE_IMAGE, **settings}
        made = install(state / "ksi", node=NODE, **wanted)
        lines = shims.hooks(state / "hooks", {name: made.hook(name) for name in shims.HOOKS}, book)
        book.begin()
        group = Group()
        stack.callback(group.remove)
        site = stack.enter_context(Site(state, nodes=(NODE,), slurm_conf_lines=lines))
        slurmd = processes.recall(state / "run" / f"slurmd-{NODE}.pid")
        if slurmd:
            group.add(slurmd.pid)
        context = Context.make(made.settings, NODE, dict(os.environ))
        yield Stand(site, state, context, book, tools, real, group, limit)


def _say(trial: Trial, name: str) -> dict[str, Any]:
    found = outcome.row(trial)
    times = ", ".join(f"{key} {found[key]} s" for key in outcome.TIMES)
    print(f"{name} {trial.side}: {found['reason'] or times}", file=sys.stderr, flush=True)
    if found["reason"]:
        log = trial.stand.room / f"job-{trial.job}.log"
        if log.exists():
            print(log.read_text(errors="replace")[-2000:], file=sys.stderr)
    return found


def _ratios(rows: list[dict[str, Any]], name: str) -> list[float]:
    found = []
    for pair in sorted({row["pair"] for row in rows}):
        sides = {row["side"]: row[name] for row in rows if row["pair"] == pair}
        if sides["A"] and sides["B"] is not None:
            found.append(sides["B"] / sides["A"])
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench cluster", description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, metavar="N", help="pairs of trials (default: 3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the summary goes")
    parser.add_argument(
        "--limit", type=float, default=600, metavar="S", help="seconds a trial may take (default: 600)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="KEY=VALUE",
        help="a setting of B, for instance accelerate=false",
    )
    parser.add_argument(
        "--quiet", type=float, default=20, metavar="S", help="wait so long for idle processors (default: 20)"
    )
    parser.add_argument("--name", default="cluster", help="of the files written (default: cluster)")
    parser.add_argument("--cold", dest="warm", action="store_false", help="no discarded trials first")
    return parser
