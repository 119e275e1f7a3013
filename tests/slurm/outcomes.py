"""The table of outcomes: what each test of this layer has observed, compared with what is written down."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

FILE = Path(__file__).with_name("OUTCOMES.md")
REMEDY = "tests/run slurm -- --write-outcomes"
OR = " or "
CLEANERS = {  # in the order in which they get their turn
    "task_epilog": "task epilog",
    "creating": "creating hook",
    "next": "next hook",
    "node_epilog": "node epilog",
    "gc": "ksi-gc",
}
TOP = f"""# How jobs end

Written by `{REMEDY}` from what the tests of `tests/slurm/` observe, with real
Slurm daemons and faked clusters; a later run compares. Do not edit.

- **root pair**: whether the site has `ksi-prolog` and `ksi-epilog` besides the task hooks.
- **clusters seen**: what `K8S_CLUSTER_NAME` said in the tasks that slurmstepd started.
- **left**: what is on the machine after the test (containers, volumes, networks, processes, ports,
  directories, records, notes, markers).
- **deleted by**: who looked into the Podman store to delete there. Where it is a matter of timing, several
  answers that were observed stand side by side with `or`.

| case | root pair | clusters seen | left | deleted by |
| --- | --- | --- | --- | --- |
"""
NOTES = """
Not tried here, and why:

- `proctrack/cgroup`, `task/cgroup`: these machines give a test no cgroup tree of its own. With
  `proctrack/linuxproc` scancel signals the hooks too; the tests that kill a hook stand for the other kind.
- Jobs in containers (`--container`): this Slurm (22.05) wants an OCI runtime that starts containers as the
  job's user, which the layer does not have. `job_container/tmpfs` needs mounts of its own.
- A real reboot: the boot id in the record is changed instead, and the node's processes are killed.
"""


@dataclass(frozen=True)
class Row:
    """One test on one site."""

    case: str
    root_pair: str
    seen: str
    left: str
    cleaned: str

    @property
    def key(self) -> tuple[str, str]:
        """What makes a row that row."""
        return self.case, self.root_pair

    def __str__(self) -> str:
        return f"| {self.case} | {self.root_pair} | {self.seen} | {self.left} | {self.cleaned} |"


class Outcomes:
    """The rows of the file."""

    def __init__(self) -> None:
        text = FILE.read_text(encoding="utf-8") if FILE.exists() else ""
        rows = re.findall(r"^\| (.+) \| (yes|no) \| (.+) \| (.+) \| (.+) \|$", text, re.MULTILINE)
        self.rows = {row.key: row for row in (Row(*cells) for cells in rows)}

    def difference(self, observed: Row) -> str:
        """How an observation differs from its row; empty when it does not."""
        written = self.rows.get(observed.key)
        if written is None:
            return f"no row for: {observed}"
        same = replace(written, cleaned=observed.cleaned) == observed
        if same and observed.cleaned in written.cleaned.split(OR):
            return ""
        return f"observed: {observed}\nwritten:  {written}"

    def add(self, observed: Row) -> None:
        """Take an observation over; who cleaned may be another one each time."""
        written = self.rows.get(observed.key)
        known = set(written.cleaned.split(OR)) if written else set()
        self.rows[observed.key] = replace(observed, cleaned=OR.join(sorted(known | {observed.cleaned})))

    def write(self) -> None:
        """Write the file; rows whose test has gone are left out."""
        rows = [row for row in self.rows.values() if row.case.partition(",")[0] in cases()]
        table = "".join(f"{row}\n" for row in sorted(rows, key=lambda row: row.key))
        FILE.write_text(TOP + table + NOTES, encoding="utf-8")


def case_of(test: str) -> str:
    """The case that a test is, from its name and parameters: `test_x_y[a-plain]` is `x y, a`."""
    name, _, parameters = test.removesuffix("]").partition("[")
    chosen = [word for word in parameters.split("-") if word not in ("", "plain", "paired")]
    return ", ".join([name.removeprefix("test_").replace("_", " "), *chosen])


def cases() -> set[str]:
    """All cases of the layer."""
    modules = FILE.parent.glob("test_*.py")
    return {case_of(name) for m in modules for name in re.findall(r"^def (test_\w+)", m.read_text(), re.M)}


def seen_by_tasks(lines: Iterable[str]) -> str:
    """The clusters in lines of `JOB CLUSTER`, as tasks have written them."""
    pairs = {tuple(line.split()) for line in lines}
    jobs, clusters = {job for job, _ in pairs}, {cluster for _, cluster in pairs} - {"none"}
    if not jobs:
        return "no task ran"
    others = " (some tasks none)" if clusters and "none" in {cluster for _, cluster in pairs} else ""
    return f"{count(len(clusters), 'cluster')} in {count(len(jobs), 'job')}{others}"


def count(number: int, noun: str) -> str:
    """A number of things in words."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def cleaners(calls: Iterable[dict]) -> str:
    """Who has looked for volumes, which is done only in order to delete."""
    creators, found = set(), set()
    for call in sorted(calls, key=lambda each: each["time"]):
        pid, _, part = call["env"]["FAKE_CALLER"].partition(" ")
        if call["program"] == "kind" and call["argv"][:1] == ["create"]:
            creators.add(pid)
        elif call["program"] == "podman" and call["argv"][:2] == ["volume", "ls"]:
            found.add(part if part != "task_prolog" else "creating" if pid in creators else "next")
    return ", ".join(text for part, text in CLEANERS.items() if part in found) or "nobody"
