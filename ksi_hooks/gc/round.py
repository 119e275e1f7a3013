"""One round of ksi-gc on one node: gather facts, decide, act for each tenant, tell."""

import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ksi_hooks import gate, proc
from ksi_hooks.config import Settings
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import KsiError
from ksi_hooks.gc import sweep, tenants
from ksi_hooks.gc.sweep import Decision, Facts, Found, Verdict
from ksi_hooks.registry import record as records
from ksi_hooks.registry import requests
from ksi_hooks.registry.record import Record
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Tools
from ksi_hooks.slurm import query
from ksi_hooks.slurm.job import STEP_TITLE
from ksi_hooks.slurm.query import JobState

SLURM_SECONDS = 30.0


@dataclass(frozen=True)
class Action:
    """What became of a decision: the reasons of what is left, nothing when all of it is gone."""

    decision: Decision
    done: bool
    left: list[str] = field(default_factory=list)


@dataclass
class Outcome:
    """What a round found and did."""

    actions: list[Action] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """True when something could not be read, asked or deleted."""
        return bool(self.problems) or any(a.left for a in self.actions)

    @property
    def slurm_unknown(self) -> bool:
        """True when Slurm did not tell about some job."""
        return any(a.decision.verdict is Verdict.UNKNOWN for a in self.actions)


@dataclass(frozen=True)
class Round:
    """The inputs of a round; uid None means every tenant, which only root can see."""

    config_file: Path
    settings: Settings
    node: str
    grace: float
    uid: int | None
    dry_run: bool

    def run(self, tell: Callable[[Action], None]) -> Outcome:
        """Decide and act; each action is told at once. Raises KsiError when the registry cannot be read."""
        registry = Registry.of(self.settings)
        registry.require_usable()
        listing = registry.of_node(self.node)
        recorded = [r for r in listing.records if self.uid in (None, r.uid)]
        outcome = Outcome(problems=list(listing.problems) if self.uid is None else [])
        found = self._unrecorded(recorded, outcome)
        facts = self._facts(registry, recorded, found)
        decisions = [sweep.judge(r, facts) for r in recorded]
        decisions += [sweep.judge_unrecorded(f, facts) for f in found]
        self._act(decisions, outcome, tell)
        if self.uid is None and not self.dry_run:
            self._remove_markers(facts)
            known = {r.cluster for r in registry.of_node(self.node).records}
            requests.clear(registry, self.node, requests.noted(registry, self.node) - known)
        return outcome

    def _unrecorded(self, recorded: list[Record], outcome: Outcome) -> list[Found]:
        found: list[Found] = []
        for uid in self._tenants(recorded):
            try:
                found += tenants.clusters(self.config_file, self.settings, self.node, uid)
            except KsiError as error:
                outcome.problems.append(str(error))
        return sweep.unrecorded(found, recorded)

    def _tenants(self, recorded: Iterable[Record]) -> list[int]:
        """Return who may have clusters here: owners of records, of run directories, of conmon processes."""
        if self.uid is not None:
            return [self.uid]
        uids = {record.uid for record in recorded}
        root = self.settings.run_root
        for entry in os.scandir(root) if root.is_dir() else ():
            if entry.name.isdecimal() and entry.stat(follow_symlinks=False).st_uid == int(entry.name):
                uids.add(int(entry.name))
        return sorted(uids | _conmon_owners())

    def _facts(self, registry: Registry, recorded: list[Record], found: list[Found]) -> Facts:
        job_ids = {r.job_id for r in recorded} | {records.job_of(f.cluster) for f in found}
        path = self.settings.tools_path
        tools = Tools(path, base_environment(path, os.getuid(), os.environ))
        return Facts(
            now=time.time(),
            boot_id=proc.boot_id(),
            grace=self.grace,
            hook_seconds=2 * self.settings.epilog_timeout,
            jobs=query.job_facts(tools, (i for i in job_ids if i is not None), timeout=SLURM_SECONDS),
            jobs_with_stepd=_jobs_with_stepd(),
            alive=frozenset(r.creator for r in recorded if proc.is_alive(r.creator)),
            requested=requests.granted(registry, recorded),
        )

    def _act(self, decisions: list[Decision], outcome: Outcome, tell: Callable[[Action], None]) -> None:
        stale: dict[int, list[Decision]] = {}
        for decision in decisions:
            if decision.verdict is Verdict.DELETE and not self.dry_run:
                stale.setdefault(decision.uid, []).append(decision)
            else:
                outcome.actions.append(Action(decision, done=False))
                tell(outcome.actions[-1])
        for uid, of_user in stale.items():
            names = [d.cluster for d in of_user]
            try:
                left = tenants.delete(self.config_file, self.settings, self.node, uid, names)
            except KsiError as error:
                left = {name: [str(error)] for name in names}
            for decision in of_user:
                action = Action(decision, done=not left[decision.cluster], left=left[decision.cluster])
                outcome.actions.append(action)
                tell(action)

    def _remove_markers(self, facts: Facts) -> None:
        """Remove the marks of jobs whose node epilog never ran."""
        directory = self.settings.node_state_dir / gate.MARKER_DIR
        marks = (
            {int(p.name): p for p in directory.glob("*") if p.name.isdecimal()} if directory.is_dir() else {}
        )
        old = {i: p for i, p in marks.items() if p.stat().st_mtime < facts.now - self.grace}
        path = self.settings.tools_path
        tools = Tools(path, base_environment(path, os.getuid(), os.environ))
        for job_id, state in query.job_facts(tools, old, timeout=SLURM_SECONDS).items():
            if state.state is JobState.GONE and job_id not in facts.jobs_with_stepd:
                old[job_id].unlink(missing_ok=True)


def _jobs_with_stepd() -> frozenset[int]:
    titles = (proc.title_of(pid) for pid in proc.pids())
    return frozenset(int(m.group(1)) for title in titles if (m := re.match(STEP_TITLE, title)))


def _conmon_owners() -> set[int]:
    owners = set()
    for pid in proc.pids():
        if proc.name_of(pid) == "conmon" and (uid := proc.owner_of(pid)) is not None:
            owners.add(uid)
    return owners
