"""Choosing K8S_PORT: a number nobody here has claimed and the kernel lets us bind."""

import socket
from collections import Counter
from collections.abc import Iterable, Iterator

from ksi_hooks.checks import NODE_PORTS
from ksi_hooks.errors import KsiError, PortTaken
from ksi_hooks.registry.record import Record

# Other tenants' claims are hints: one who writes thousands of records must not use up the range.
HINTS_PER_USER = 64


def choose(
    claimed: set[int],
    port_range: tuple[int, int],
    address: str,
    seed: int,
    *,
    hints: frozenset[int] = frozenset(),
) -> int:
    """Return a free port, looked for from a place that the seed picks; raises KsiError when there is none.

    Hints are claims that may be made up: they are passed over only while there is another port.
    """
    for taken in (claimed | hints, claimed) if hints else (claimed,):
        for port in _candidates(port_range, seed):
            if port not in taken and can_bind(port, address):
                return port
    low, high = port_range
    in_range = sum(low <= port <= high for port in claimed)
    raise KsiError(
        f"no free port in {low}-{high}: {in_range} claimed by clusters on this node, the rest in use",
        hint="wait for other jobs to end, or ask the administrator for a wider port_range",
    )


def preset(text: str, claimed: set[int], address: str) -> int:
    """Return the port that the user set in K8S_PORT; raises KsiError or PortTaken when it cannot be had."""
    if not (len(text) == 5 and text.isascii() and text.isdecimal()) or int(text) not in NODE_PORTS:
        raise KsiError(
            f"K8S_PORT is not a port between {NODE_PORTS[0]} and {NODE_PORTS[-1]}: {text[:40]}",
            hint="unset K8S_PORT to get a free one",
            blame="user",
        )
    if int(text) in claimed or not can_bind(int(text), address):
        raise PortTaken(
            f"K8S_PORT is in use on this node: {text}", hint="unset K8S_PORT to get a free one", blame="user"
        )
    return int(text)


def claims(listing: Iterable[Record]) -> set[int]:
    """Return the ports that records of this node claim, at most a bounded number of each user's."""
    seen: Counter[int] = Counter()
    ports = set()
    for record in sorted(listing, key=lambda r: r.created):
        seen[record.uid] += 1
        if seen[record.uid] <= HINTS_PER_USER:
            ports.add(record.port)
    return ports


def can_bind(port: int, address: str) -> bool:
    """True when nothing listens on the port at this address."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def _candidates(port_range: tuple[int, int], seed: int) -> Iterator[int]:
    low, high = port_range
    size = high - low + 1
    return (low + (seed + step) % size for step in range(size))
