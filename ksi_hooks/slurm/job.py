"""Who a hook works for: the job as slurmd's variables and the kernel describe it."""

import itertools
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ksi_hooks import proc
from ksi_hooks.errors import KsiError
from ksi_hooks.proc import Process

HOST_PART = re.compile(r"([^\[\],]+)|\[([^\]]*)\]")
MAX_HOSTS = 20000
STEP_TITLE = re.compile(r"slurmstepd: \[(\d+)\.([^\]]+)\]")
OWNING_STEPS = ("batch", "interactive")
HIDDEN = Process(0, 0)
SPECIAL_STEPS = {
    "batch": "batch",
    "-5": "batch",
    "4294967291": "batch",
    "interactive": "interactive",
    "-6": "interactive",
    "4294967290": "interactive",
}


@dataclass(frozen=True)
class Job:
    """One job as its task hooks see it on one node; times in epoch seconds, 0 when Slurm does not tell."""

    id: int
    node: str
    home_node: str
    nodes: int
    restart: int
    start: int
    end: int
    partition: str
    work_dir: Path | None  # None: it is missing
    asked_dir: str  # what PWD says it should be

    @property
    def is_home(self) -> bool:
        """True on the node that carries the job's cluster."""
        return self.node == self.home_node


@dataclass(frozen=True)
class Step:
    """The slurmstepd that started a hook, and whether its step is the one a job stands and falls with."""

    stepd: Process
    owns_job: bool
    task: Process


def job_id(environ: Mapping[str, str]) -> int | None:
    """Return the job's id; `123+1` and `123_4` are written by some tools and mean the number in front."""
    text = environ.get("SLURM_JOB_ID") or environ.get("SLURM_JOBID") or ""
    found = re.match(r"\d+", text)
    return int(found.group()) if found else None


def node_name(environ: Mapping[str, str]) -> str:
    """Return Slurm's name of this node, else the short host name."""
    return environ.get("SLURMD_NODENAME") or socket.gethostname().split(".")[0]


def from_environ(environ: Mapping[str, str]) -> Job:
    """Describe the job of a task hook; raises KsiError when there is no job id."""
    number = job_id(environ)
    if number is None:
        raise KsiError("not in a Slurm job: SLURM_JOB_ID is not set", blame="user")
    node = node_name(environ)
    home_node, nodes = _component(environ, number, node) or _nodes(environ, node)
    return Job(
        id=number,
        node=node,
        home_node=home_node,
        nodes=nodes,
        restart=_number(environ, "SLURM_RESTART_COUNT", "SLURM_JOB_RESTART_COUNT"),
        start=_number(environ, "SLURM_JOB_START_TIME"),
        end=_number(environ, "SLURM_JOB_END_TIME"),
        partition=environ.get("SLURM_JOB_PARTITION", ""),
        work_dir=work_dir(environ),
        asked_dir=environ.get("PWD", ""),
    )


def hosts(node_list: str) -> Iterator[str]:
    """Expand a Slurm host list: `rack[1-2]n[07,09],login` gives rack1n07, rack1n09, rack2n07, ... login."""
    for item in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", node_list):
        choices = [
            [text] if text else list(_range_members(ranges)) for text, ranges in HOST_PART.findall(item)
        ]
        yield from map("".join, itertools.product(*choices))


def work_dir(environ: Mapping[str, str]) -> Path | None:
    """Return the kernel's word, unless Slurm fell back to /tmp because the wanted directory is missing."""
    try:
        current = Path.cwd()
    except OSError:
        return None
    wanted = environ.get("PWD", "")
    if current == Path("/tmp") and wanted and wanted != "/tmp" and not Path(wanted).is_dir():
        return None
    return current


def step_of_task(task_pid: int, environ: Mapping[str, str]) -> Step:
    """Describe the step of a TaskProlog, whose parent is the waiting task and grandparent slurmstepd."""
    return _step(proc.parent_of(task_pid), environ, proc.find(task_pid) or Process(task_pid, 0))


def step_of_epilog(stepd_pid: int, environ: Mapping[str, str]) -> Step:
    """Describe the step of a TaskEpilog, whose parent is slurmstepd."""
    return _step(proc.find(stepd_pid), environ, HIDDEN)


def _nodes(environ: Mapping[str, str], node: str) -> tuple[str, int]:
    """Return the job's first node and the number of its nodes."""
    node_list = environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST") or node
    return next(hosts(node_list), node), max(1, _number(environ, "SLURM_JOB_NUM_NODES", "SLURM_NNODES"))


def _component(environ: Mapping[str, str], number: int, node: str) -> tuple[str, int] | None:
    """Return the same of the heterogeneous job's component on this node, None for other jobs.

    A step that spans components shows the nodes of all of them in SLURM_JOB_NODELIST.
    """
    if environ.get("SLURM_JOB_ID_HET_GROUP_0") != str(number):  # variables of another job count for nothing
        return None
    lists = (environ.get(f"SLURM_JOB_NODELIST_HET_GROUP_{group}", "") for group in itertools.count())
    groups = [list(hosts(node_list)) for node_list in itertools.takewhile(bool, lists)]
    home_node = next((group[0] for group in groups if node in group), None)
    if home_node is None:
        return None
    return home_node, max(len(group) for group in groups if group[0] == home_node)


def _range_members(ranges: str) -> Iterator[str]:
    for part in ranges.split(","):
        low, dash, high = part.partition("-")
        if dash and low.isdecimal() and high.isdecimal():
            last = min(int(high), int(low) + MAX_HOSTS)
            yield from (str(number).zfill(len(low)) for number in range(int(low), last + 1))
        else:
            yield part


def _step(stepd: Process | None, environ: Mapping[str, str], task: Process) -> Step:
    # slurmstepd's title is root's word (`slurmstepd: [7.batch]`); the variables may be the submitter's.
    title = STEP_TITLE.match(proc.title_of(stepd.pid)) if stepd else None
    if title:
        return Step(stepd or HIDDEN, title.group(2) in OWNING_STEPS, task)
    step_id = environ.get("SLURM_STEP_ID") or environ.get("SLURM_STEPID") or "batch"
    return Step(stepd or HIDDEN, SPECIAL_STEPS.get(step_id) in OWNING_STEPS, task)


def _number(environ: Mapping[str, str], *names: str) -> int:
    return next((int(environ[n]) for n in names if environ.get(n, "").isdecimal()), 0)
