"""One round of ksi-gc on one node: gather facts, decide, act for each tenant, tell."""

import itertools
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ksi_hooks import proc
from ksi_hooks.config import Settings
from ksi_hooks.environment import base_environment
from ksi_hooks.errors import KsiError
from ksi_hooks.gc import processes, reclaim, sweep, tenants
from ksi_hooks.gc.sweep import Decision, Facts, Found, Verdict
from ksi_hooks.registry import record as records
from ksi_hooks.registry import requests
from ksi_hooks.registry.record import Record
from ksi_hooks.registry.store import Registry
from ksi_hooks.run import Tools
from ksi_hooks.slurm import query

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
        if self.uid is None and not self.dry_run:
            reclaim.run_dirs(self.settings)
        listing = registry.of_node(self.node)
        recorded = [r for r in listing.records if self.uid in (None, r.uid)]
        outcome = Outcome(problems=list(listing.problems) if self.uid is None else [])
        facts = self._facts(registry, recorded, [])
        self._act([sweep.judge(r, facts) for r in recorded], outcome, tell)
        # Only then the stores are looked at: one that does not answer keeps no known one from being deleted.
        found = [
            f for f in self._unrecorded(registry, recorded, outcome) if not self._is_recorded(registry, f)
        ]
        if found:
            facts = self._facts(registry, recorded, found)
            self._act([sweep.judge_unrecorded(f, facts) for f in found], outcome, tell)
        if self.uid is None and not self.dry_run:
            reclaim.stale_locks(registry, self.node)
            reclaim.remove_marks(self.settings, facts.jobs, facts.jobs_with_stepd)
            known = {r.cluster for r in registry.of_node(self.node).records}
            requests.clear(registry, self.node, requests.noted(registry, self.node) - known)
        return outcome

    def _unrecorded(self, registry: Registry, recorded: list[Record], outcome: Outcome) -> list[Found]:
        found: list[Found] = []
        for uid in self._tenants(registry):
            try:
                found += tenants.clusters(
                    self.config_file, self.settings, self.node, uid, tidy=not self.dry_run
                )
            except KsiError as error:
                outcome.problems.append(str(error))
        return sweep.unrecorded(found, recorded)

    def _tenants(self, registry: Registry) -> list[int]:
        """Return who may have clusters here: owners of records, of run directories, of conmon processes."""
        if self.uid is not None:
            return [self.uid]
        uids = set(filter(tenants.is_known, registry.owners(self.node)))
        own = reclaim.users_with_run_dir(self.settings.run_root, own=True)
        uids |= {uid for uid in own if reclaim.has_traces(self.settings.user_run_dir(uid))}
        # A conmon of no user is one inside a container.
        return sorted(uids | set(filter(tenants.is_known, processes.owners_of_containers())))

    def _is_recorded(self, registry: Registry, found: Found) -> bool:
        """True when the owner claimed it after the registry was listed, or when that cannot be told."""
        try:
            record = registry.read(self.node, found.cluster)
        except records.Torn:
            return False
        except KsiError:
            return True
        return record is not None and record.uid == found.uid

    def _facts(self, registry: Registry, recorded: list[Record], found: list[Found]) -> Facts:
        asked = [(r.uid, r.job_id) for r in recorded]
        asked += [(f.uid, records.job_of(f.cluster)) for f in found]
        if self.uid is None:
            old = time.time() - self.grace
            asked += [(0, job_id) for job_id, made in reclaim.marks(self.settings).items() if made < old]
        path = self.settings.tools_path
        tools = Tools(path, base_environment(path, os.getuid(), os.environ))
        return Facts(
            now=time.time(),
            boot_id=proc.boot_id(),
            grace=self.grace,
            hook_seconds=2 * self.settings.epilog_timeout,
            jobs=query.job_facts(tools, fair_order(asked), timeout=SLURM_SECONDS),
            jobs_with_stepd=processes.jobs_with_stepd(),
            alive=processes.living_creators(recorded),
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


def fair_order(asked: Iterable[tuple[int, int | None]]) -> list[int]:
    """Return the jobs so that users take turns: one who made up thousands delays only himself."""
    of_user: dict[int, list[int]] = {}
    for uid, job_id in asked:
        if job_id is not None:
            of_user.setdefault(uid, []).append(job_id)
    turns = itertools.zip_longest(*of_user.values())
    return list(dict.fromkeys(job_id for turn in turns for job_id in turn if job_id is not None))
