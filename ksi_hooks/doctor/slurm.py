"""Judges slurm.conf as the controller tells it, and whether the hooks are what the settings ask for; pure."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ksi_hooks.config import Settings
from ksi_hooks.doctor.finding import Finding, error, ok, warning

LINE = re.compile(r"^(\w+)(?:\[\d+\])?\s*=\s?(.*)$")  # since 24.05 Prolog and Epilog are lists: Prolog[0]
UNSET = ("", "(null)", "N/A")
NO_LIMIT = 65534  # how scontrol prints a PrologEpilogTimeout that is not set
HOOKS = {
    "TaskProlog": "ksi-task-prolog",
    "TaskEpilog": "ksi-task-epilog",
    "Prolog": "ksi-prolog",
    "Epilog": "ksi-epilog",
}
Facts = dict[str, list[str]]


def parse(text: str) -> Facts:
    """Return the values of `scontrol show config`; what is not set is left out."""
    found: Facts = {}
    for line in text.splitlines():
        match = LINE.match(line.strip())
        if match and match.group(2).strip() not in UNSET:
            found.setdefault(match.group(1), []).append(match.group(2).strip())
    return found


def version(facts: Facts) -> Finding:
    """Say which Slurm this is."""
    return ok("slurm", next(iter(facts.get("SLURM_VERSION", [])), "version unknown"))


def task_hook(key: str, facts: Facts, wanted: Path | None, state: Callable[[str], str]) -> Finding:
    """Judge TaskProlog or TaskEpilog; state says what is wrong with a program, nothing when it can run."""
    values = facts.get(key, [])
    setting = f"{key.lower().replace('task', 'task_')}_next"
    remedy = f"slurm.conf: {key}={wanted or 'PREFIX/libexec/ksi/' + HOOKS[key]}"
    if not values:
        effect = "jobs get no cluster" if key == "TaskProlog" else "clusters stay until ksi-gc finds them"
        return error(key, "not set", effect, remedy)
    if problem := state(values[0]):
        return error(key, f"{values[0]}: {problem}", "every job of the site fails or gets no cluster", remedy)
    if wanted and values[0] != str(wanted):
        return warning(
            key,
            values[0],
            "not the hook of this installation, unless it calls that",
            f"{remedy}, and the present one as {setting} in ksi.yaml",
        )
    return ok(key, values[0])


def node_hook(key: str, facts: Facts, wanted: Path | None, state: Callable[[str], str]) -> Finding:
    """Judge Prolog or Epilog; several may be set, and patterns."""
    values = facts.get(key, [])
    remedy = f"slurm.conf: {key}={wanted or 'PREFIX/libexec/ksi/' + HOOKS[key]}"
    if not values:
        effect = "Slurm is asked for each job" if key == "Prolog" else "no safety net at a job's end"
        return warning(key, "not set", effect, remedy)
    broken = [f"{v}: {p}" for v in values if not _is_pattern(v) and (p := state(v))]
    if broken:
        return error(key, "; ".join(broken), "slurmd drains nodes whose hook fails", remedy)
    if wanted and str(wanted) not in values and not any(map(_is_pattern, values)):
        return warning(key, ", ".join(values), "the hook of this installation is not among them", remedy)
    return ok(key, ", ".join(values))


def times(facts: Facts, settings: Settings) -> list[Finding]:
    """Judge epilog_timeout against Slurm's own limits."""
    found = []
    kill_wait = _seconds(facts, "KillWait")
    if kill_wait is not None:
        seen = f"{kill_wait} s, epilog_timeout is {settings.epilog_timeout:g} s"
        if settings.epilog_timeout >= kill_wait:
            effect = "a task epilog at work is killed, in the end the node is drained"
            remedy = f"epilog_timeout below {kill_wait} in ksi.yaml, or a longer KillWait"
            found.append(error("KillWait", seen, effect, remedy))
        else:
            found.append(ok("KillWait", seen))
    limit = _seconds(facts, "PrologEpilogTimeout")
    if limit is not None and limit not in (0, NO_LIMIT) and limit <= settings.epilog_timeout:
        found.append(
            error(
                "PrologEpilogTimeout",
                f"{limit} s, epilog_timeout is {settings.epilog_timeout:g} s",
                "ksi-epilog is killed while it deletes and the node is drained",
                "a longer PrologEpilogTimeout in slurm.conf",
            )
        )
    return found


def prolog_flags(facts: Facts) -> list[Finding]:
    """Judge PrologFlags, which matter only with a Prolog."""
    if not facts.get("Prolog"):
        return []
    flags = ",".join(facts.get("PrologFlags", []))
    if {"alloc", "contain", "runinjob"} & set(flags.lower().split(",")):
        return [ok("PrologFlags", flags)]
    effect = "the Prolog runs with a job's first step on a node, not when the job gets the node"
    return [warning("PrologFlags", flags or "not set", effect, "slurm.conf: PrologFlags=Alloc")]


def marks(directory: Path, facts: Facts, *, present: bool) -> list[Finding]:
    """Judge the marks of k8s jobs: their directory promises that a Prolog leaves them."""
    if not present or facts.get("Prolog"):
        return []
    effect = "no job gets a cluster: one without a mark there counts as none of ours"
    remedy = f"set Prolog in slurm.conf, or remove {directory} on each node"
    return [error("marks", f"{directory} exists, but slurm.conf has no Prolog", effect, remedy)]


def feature(wanted: str, features: Sequence[str]) -> Finding:
    """Judge whether nodes have the feature; one line of features per node."""
    count = sum(wanted in re.split(r"[,&|]", line.strip()) for line in features)
    seen = f"{wanted} on {count} of {len(features)} nodes"
    if count == 0:
        effect = f"sbatch refuses --constraint={wanted}"
        return error("feature", seen, effect, f"slurm.conf: NodeName=... Features={wanted}")
    return ok("feature", seen)


def installed(differences: Sequence[str] | None) -> Finding:
    """Judge the installed hooks; None: the settings file belongs to no installation."""
    if differences is None:
        return warning(
            "installed hooks",
            "not known from this settings file",
            "not checked",
            "ksi --config PREFIX/etc/ksi/ksi.yaml",
        )
    if differences:
        effect = "hooks work with other values than the settings say"
        return error("installed hooks", "; ".join(differences), effect, "run ksi install again")
    return ok("installed hooks", "as the settings say")


def _seconds(facts: Facts, key: str) -> int | None:
    number = re.match(r"\d+", next(iter(facts.get(key, [])), ""))
    return int(number.group()) if number else None


def _is_pattern(value: str) -> bool:
    return any(c in value for c in "*?[")
