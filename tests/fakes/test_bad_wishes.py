"""What a user asks for and cannot have: a port, a directory; and what is missing around him."""

import re
import socket
import time

import pytest

from fakes.failing import fails, nothing_left


def test_kb_26_no_free_port(site):
    with socket.socket() as first, socket.socket() as second:
        for number, taken in ((31990, first), (31991, second)):
            taken.bind(("127.0.0.1", number))
            taken.listen()
        site.configure(port_range="31990-31991")
        fails(site, text="no free port in 31990-31991", creates=0)
    nothing_left(site)


@pytest.mark.parametrize("value", ["80", "abc"])
def test_kb_26_preset_port_that_is_none(site, value):
    fails(site, text=re.escape(value), env={"K8S_PORT": value}, creates=0)
    nothing_left(site)


def test_kb_26_preset_port_that_is_taken(site):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 31992))
        taken.listen()
        fails(site, text="K8S_PORT is in use on this node: 31992", env={"K8S_PORT": "31992"}, creates=0)
    nothing_left(site)


def test_kb_26_preset_port_is_honoured(site):
    site.mark(101)
    with site.step(101, env={"K8S_PORT": "31993"}) as step:
        assert step.prolog().exports["K8S_PORT"] == "31993"


def test_kb_26_port_taken_between_looking_and_binding(site):
    site.script(
        "kind create", status=1, stderr="listen tcp: bind: address already in use\n", at="container", times=2
    )
    site.mark(101)
    with site.step(101) as step:
        prolog = step.prolog()
        assert prolog.status == 0
        step.end()
    tries = site.calls("kind create")
    assert len(tries) == 3
    assert len({c.argv[3] for c in tries}) == 1
    nothing_left(site)


def test_kb_26_ten_jobs_at_once_have_ten_ports(site):
    site.script("kind create", status=1, stderr="xyzzy", delay=2)
    steps = [site.step(600 + number) for number in range(10)]
    try:
        for number, step in enumerate(steps):
            site.mark(600 + number)
            step.start(0)
        seen = {}
        end = time.monotonic() + 15
        while len(seen) < 10 and time.monotonic() < end:
            seen |= {r.cluster: r.port for r in site.records()}
            time.sleep(0.05)
        assert len(set(seen.values())) == 10, seen
    finally:
        for step in steps:
            step.close()


@pytest.mark.parametrize(("name", "shown"), [("co:lon", "':'"), ("new\nline", r"'\\n'")])
def test_kb_30_directory_that_cannot_be_mounted(site, name, shown):
    directory = site.work_dir / name
    directory.mkdir()
    fails(
        site,
        text=re.escape(shown) if ":" in shown else shown.replace("\\\\", r"\\"),
        cwd=directory,
        creates=0,
    )
    nothing_left(site)


def test_kb_30_root_directory_is_refused(site):
    fails(site, text="working directory /", cwd="/", creates=0)


def test_working_directory_that_is_missing(site):
    """Slurm falls back to /tmp in silence."""
    fails(
        site, text=f"directory is missing on this node: {site.base}/gone", cwd=site.base / "gone", creates=0
    )
    nothing_left(site)


def test_working_directory_that_vanishes(site):
    """The shell of the gate complains before it reads its script, which slurmstepd drops."""
    vanishing = site.base / "vanishing"
    vanishing.mkdir()
    site.mark(101)
    with site.step(101, cwd=vanishing, cwd_vanishes=True) as step:
        prolog = step.prolog()
        assert (prolog.status, prolog.exports) == (1, {})
        assert f"directory is missing on this node: {vanishing}" in prolog.said
        assert "ksi: hint: " in prolog.said
        assert all(line.startswith("sh: ") for line in prolog.dropped)
    with site.step(102, cwd=site.base / "gone") as step:
        assert step.prolog().status == 0


def test_home_that_is_missing(site):
    site.mark(101)
    with site.step(101, env={"HOME": "/nonexistent"}) as step:
        assert step.prolog().status == 0
        step.end()
    nothing_left(site)


def test_home_and_user_that_are_not_set(site):
    site.mark(101)
    with site.step(101, drop=("HOME", "USER", "SLURM_JOB_UID")) as step:
        assert step.prolog().status == 0
        step.end()
    nothing_left(site)


def test_run_directory_that_is_a_link(site):
    victim = site.base / "victim"
    victim.mkdir()
    site.user_dir().symlink_to(victim)
    fails(site, text=f"{site.user_dir()}", creates=0)
    assert list(victim.iterdir()) == []
