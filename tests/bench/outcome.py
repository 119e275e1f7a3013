"""What a trial comes to: its phases and counts, from the journal."""

from collections.abc import Iterable

from bench import journal
from bench.journal import Entry
from bench.trial import Trial

# what is compared; of a trial that failed, each time counts as its limit
TIMES = {
    "prolog_blocking": ("task-prolog", "usable"),
    "start_to_pod_accepted": ("task-prolog", "accepted"),  # the same readiness on both sides
    "start_to_first_pod": ("task-prolog", "pod"),
    "end": ("done", "gone"),
    "end_of_job": ("done", "epilog"),  # the node's Epilog starts: Slurm has seen all of the job end
}
MOMENTS = ("task-prolog", "script", "usable", "accepted", "pod", "done", "gone", "epilog")
COUNTS = ("processes", "processes_end", "cpu_seconds", "cpu_seconds_create")


def row(trial: Trial) -> dict[str, object]:
    """One line of the result: moments in seconds after submission, comparisons, phases, counts."""
    at = journal.stamps(trial.entries)
    reason = trouble(trial, at)
    origin = at["submit"]
    made: dict[str, object] = {"side": trial.side, "ok": int(not reason), "reason": reason}
    made |= {f"at {name}": _after(origin, at.get(name)) for name in MOMENTS}
    for name, (begin, end) in TIMES.items():
        made[name] = trial.stand.limit if reason else round(at[end] - at[begin], 2)
    made |= phases(trial.entries, at)
    usable, done = at.get("usable", float("inf")), at.get("done", float("inf"))
    made["processes"] = journal.count(trial.entries, origin, usable)
    made["processes_end"] = journal.count(trial.entries, done, float("inf"))
    made["cpu_seconds"] = trial.all_seconds
    made["cpu_seconds_create"] = trial.create_seconds
    made["cpu_seconds_container"] = trial.container_seconds
    made["others_busy"] = trial.others
    made["pods_refused"] = journal.note(trial.entries, "refused")
    return made


def trouble(trial: Trial, at: dict[str, float]) -> str:
    """Why a trial counts as failed; empty when all of it went well."""
    if reason := journal.note(trial.entries, "failure"):
        return reason
    missing = [name for name in MOMENTS if name not in at]
    if missing:
        return f"never reached: {' '.join(missing)}"
    return f"left behind: {', '.join(trial.left)}" if trial.left else ""


def phases(entries: list[Entry], at: dict[str, float]) -> dict[str, float | None]:
    """Seconds of each part of a start; kind's own from the calls of podman that it makes."""
    kind = _first(journal.calls(entries, "kind", "create cluster"))
    run = _first(journal.calls(entries, "podman", "run"))
    init = _first(e.at for e in entries if e.kind == "call" and "kubeadm init" in e.text)
    after_init = _first(e.at for e in entries if e.kind == "call" and init is not None and e.at > init)
    kubectl = _first(journal.calls(entries, "kubectl"))
    chain = {
        "hook": at.get("task-prolog"),
        "kind prepares": kind,
        "node boots": run,
        "kubeadm init": init,
        "kind finishes": after_init,
        "access": kubectl,
        "first pod": at.get("usable"),
        "": at.get("pod"),
    }
    moments = list(chain.values())
    return {
        f"s {name}": None if begin is None or end is None else round(end - begin, 2)
        for name, begin, end in zip(chain, moments, moments[1:], strict=False)
    }


def _first(moments: Iterable[float]) -> float | None:
    return next(iter(moments), None)


def _after(origin: float, moment: float | None) -> float | None:
    return None if moment is None else round(moment - origin, 2)
