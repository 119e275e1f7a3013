"""What the task hooks add to `srun -n 64 true` of a job that is not ours: sites with and without them."""

import contextlib
import re
import shutil
import time
from pathlib import Path

from testbed import command
from testbed.slurm import Site, new_state_dir

from bench import figures, machine
from bench.figures import Spread
from bench.installation import install

TASKS = 64
CASES = ("no hooks", "empty hooks", "root pair", "cached answer")
EMPTY = "#!/bin/sh\nexit 0\n"  # what Slurm itself takes for starting a hook per task


def main(rounds: int, quiet: float, data: Path) -> None:
    """Measure, write rows and summary below `data`, print a table."""
    before = machine.load()
    with contextlib.ExitStack() as stack:
        allocations = {case: _allocation(case, stack) for case in CASES}
        rows = measure(allocations, rounds, quiet)
    figures.write_csv(data / "steps.csv", rows)
    spreads = {case: Spread.of(row[case] for row in rows) for case in CASES}
    base = spreads[CASES[0]].median
    summary = {
        "machine": machine.facts(),
        "load": [before, machine.load()],
        "seconds": {case: spread.as_json() for case, spread in spreads.items()},
        "ratios": {case: round(spread.median / base, 4) for case, spread in spreads.items()},
    }
    figures.write_json(data / "steps.json", summary)
    lines = [[case, s.shown(3), f"{s.median / base:.2f}"] for case, s in spreads.items()]
    print(figures.table((f"srun -n {TASKS} true", "seconds", "ratio"), lines))


def measure(allocations: dict[str, tuple[Site, str]], rounds: int, quiet: float) -> list[dict[str, float]]:
    """Run the step in each allocation in turn; the first round only warms up and fills the cache."""
    rows = []
    for turn in range(rounds + 1):
        row = {}
        machine.await_quiet(quiet)
        for case in CASES[turn % len(CASES) :] + CASES[: turn % len(CASES)]:
            site, job = allocations[case]
            began = time.monotonic()
            command.capture(["srun", f"--jobid={job}", f"--ntasks={TASKS}", "true"], env=site.env)
            row[case] = time.monotonic() - began
        rows.append({case: row[case] for case in CASES})
    return rows[1:]


def _conf_lines(case: str, state: Path) -> list[str]:
    if case == "no hooks":
        return []
    if case == "empty hooks":
        empty = state / "empty"
        empty.write_text(EMPTY, encoding="utf-8")
        empty.chmod(0o755)
        return [f"TaskProlog={empty}", f"TaskEpilog={empty}"]
    return install(state / "ksi").slurm_conf_lines(root_pair=case == "root pair")


def _allocation(case: str, stack: contextlib.ExitStack) -> tuple[Site, str]:
    """Start a site for one case and allocate all of it; both end with the stack."""
    state = new_state_dir()
    stack.callback(shutil.rmtree, state)
    site = stack.enter_context(Site(state, cpus=TASKS, slurm_conf_lines=_conf_lines(case, state)))
    # salloc tells the number on its standard error, which the shell turns round
    said = command.capture(
        ["sh", "-c", f"exec salloc --no-shell --ntasks={TASKS} --mem=1G 2>&1"], env=site.env
    )
    found = re.search(r"job allocation (\d+)", said)
    if not found:
        raise command.TestbedError("salloc gave no allocation", said)
    return site, found[1]
