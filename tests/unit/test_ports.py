"""Choosing K8S_PORT."""

import dataclasses
import socket

import pytest
from unit.test_record import GOOD

from ksi_hooks.errors import KsiError, PortTaken
from ksi_hooks.registry import ports

LOOPBACK = "127.0.0.1"


@pytest.fixture
def free(monkeypatch):
    """Ports that are not in this set are in use."""
    usable = set(range(30000, 30010))
    monkeypatch.setattr(ports, "can_bind", lambda port, _address: port in usable)
    return usable


def test_kb_26_claimed_and_used_ports_are_passed_over(free):
    free -= {30001}
    assert ports.choose({30000}, (30000, 30009), LOOPBACK, seed=0) == 30002


def test_search_begins_at_the_seed_and_goes_round(free):
    assert ports.choose(set(), (30000, 30009), LOOPBACK, seed=4711) == 30001
    assert ports.choose({30009}, (30000, 30009), LOOPBACK, seed=9) == 30000


def test_kb_26_none_left_tells_counts(free):
    free.clear()
    with pytest.raises(KsiError, match="no free port in 30000-30001: 1 claimed") as caught:
        ports.choose({30000, 31000}, (30000, 30001), LOOPBACK, seed=0)
    assert "port_range" in caught.value.hint


@pytest.mark.parametrize("text", ["80", "abc", "", "-1", "32768", "29999", "30000.5", "30000 ", "1" * 5000])
def test_kb_26_preset_that_is_no_port(free, text):
    with pytest.raises(KsiError, match="K8S_PORT is not a port") as caught:
        ports.preset(text, set(), LOOPBACK)
    assert len(str(caught.value)) < 200
    assert "unset K8S_PORT" in caught.value.hint


@pytest.mark.parametrize("claimed", [{30000}, set()])
def test_kb_26_preset_that_is_taken(free, claimed):
    free -= {30000} - claimed
    with pytest.raises(PortTaken, match="30000"):
        ports.preset("30000", claimed, LOOPBACK)


def test_preset_is_taken_as_given(free):
    free.add(32767)
    assert ports.preset("32767", set(), LOOPBACK) == 32767


def test_one_user_cannot_claim_the_whole_range():
    flood = [dataclasses.replace(GOOD, uid=1, port=30000 + n % 2768, created=n) for n in range(5000)]
    other = dataclasses.replace(GOOD, uid=2, port=32000, created=1)
    claimed = ports.claims([*flood, other])
    assert 32000 in claimed
    assert len(claimed) == ports.HINTS_PER_USER + 1


def test_can_bind_tells_the_truth():
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert not ports.can_bind(port, LOOPBACK)
        assert not ports.can_bind(port, "0.0.0.0")
    assert ports.can_bind(port, LOOPBACK)
