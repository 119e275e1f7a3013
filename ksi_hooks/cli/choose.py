"""Which clusters a person means: a cluster's name, its context, or a job id; never a pattern."""

import difflib
from collections.abc import Sequence

from ksi_hooks.cli.output import user_name
from ksi_hooks.errors import KsiError
from ksi_hooks.registry.record import Record
from ksi_hooks.registry.store import Listing, Registry

NEAR = 3


def everywhere(registry: Registry) -> Listing:
    """Return the records of all nodes."""
    listings = [registry.of_node(node) for node in registry.nodes()]
    return Listing([r for at in listings for r in at.records], [p for at in listings for p in at.problems])


def clusters(records: Sequence[Record], word: str, *, uid: int) -> list[Record]:
    """Return the clusters with this name or of this job, the user's own if there are any.

    Raises KsiError with close matches when there is none, and when strangers' records answer for one job.
    """
    name = word.removeprefix("kind-")
    found = [r for r in records if r.cluster == name or (word.isdecimal() and r.job_id == int(word))]
    found = [r for r in found if r.uid == uid] or found
    owners = sorted({user_name(r.uid) for r in found})
    if len(owners) > 1:
        names = ", ".join(f"{r.cluster} ({user_name(r.uid)})" for r in found)
        raise KsiError(f"job {word} has clusters of several users: {names}", hint="give the cluster's name")
    if not found:
        raise KsiError(f"no such cluster or job: {word}", hint=_hint(records, name, uid), blame="user")
    return found


def _hint(records: Sequence[Record], word: str, uid: int) -> str:
    own = [r.cluster for r in records if r.uid == uid]
    begun = [name for name in own if name.startswith((word, f"ksi-{word}"))]
    near = begun or [n for w in (word, f"ksi-{word}") for n in difflib.get_close_matches(w, own, n=NEAR)]
    if near:
        return f"perhaps {', '.join(dict.fromkeys(near[:NEAR]))}"
    return "ksi list shows your clusters" if own else "you have no clusters; ksi list --all shows others'"
