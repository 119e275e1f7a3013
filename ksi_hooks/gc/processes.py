"""What the processes on this node prove: steps that live, creators that run, users with containers."""

import os
import re
from collections.abc import Iterable

from ksi_hooks import proc
from ksi_hooks.proc import Process
from ksi_hooks.registry.record import Record
from ksi_hooks.slurm.job import STEP_TITLE


def jobs_with_stepd() -> frozenset[int]:
    """Return the jobs that have a slurmstepd here.

    Anybody can give that title to his own process, and to a set-uid program, whose real user stays his own.
    """
    trusted = {0, os.geteuid()}
    titles = ((pid, proc.title_of(pid)) for pid in proc.pids())
    matches = ((pid, re.match(STEP_TITLE, title)) for pid, title in titles)
    return frozenset(int(m.group(1)) for pid, m in matches if m and proc.real_owner_of(pid) in trusted)


def living_creators(recorded: Iterable[Record]) -> frozenset[Process]:
    """Return the creators that run and belong to their record's owner: a record may name any process."""
    return frozenset(
        r.creator for r in recorded if proc.is_alive(r.creator) and proc.owner_of(r.creator.pid) == r.uid
    )


def owners_of_containers() -> set[int]:
    """Return the users of conmon, which stays with every container of Podman's."""
    owners = set()
    for pid in proc.pids():
        if proc.name_of(pid) == "conmon" and (uid := proc.owner_of(pid)) is not None:
            owners.add(uid)
    return owners
