"""Two hundred hooks at once on one node: as many ports, and nothing left when they are killed at random."""

import contextlib
import json
import os
import random
import signal
import statistics
import time

import pytest
from fakes.strangers import collect

from ksi_hooks import proc
from ksi_hooks.lifecycle import claim
from ksi_hooks.lifecycle.context import Context
from ksi_hooks.registry import store
from ksi_hooks.registry.record import State

HOOKS = 200
REAL_HOOKS = 6
# Another run of these tests has steps on this machine, too: their jobs must be others.
FIRST_JOB = 100_000_000 + 1000 * os.getpid()


def claim_at(context, start, job_id, report):
    """Wait for the common start, claim as a hook does, tell how long the lock was waited for, and stay."""
    waits = []
    real_hold = store.locks.hold

    @contextlib.contextmanager
    def timed(*args, **kwargs):
        asked = time.monotonic()
        with real_hold(*args, **kwargs):
            waits.append(time.monotonic() - asked)
            yield

    store.locks.hold = timed
    time.sleep(max(0.0, start - time.monotonic()))
    record = claim.new_record(context, job_id=job_id)
    os.write(report, json.dumps({"port": record.port, "wait": max(waits)}).encode() + b"\n")
    signal.pause()


@pytest.fixture
def start_claims(site):
    """Start processes that claim at the same moment; they are ended with the test."""
    children, readers = [], []

    def start(count, step=1):
        # An address of its own: looking at so many ports must not disturb tests beside this one.
        # Nobody goes on without the lock here, however busy the machine is.
        site.configure(port_range="30000-32767", listen_address="127.0.0.2", lock_timeout=300)
        context = Context.make(site.settings, "n1", {})
        reader, writer = os.pipe()
        moment = time.monotonic() + 1.0
        for number in range(count):
            child = os.fork()
            if child == 0:
                try:
                    claim_at(context, moment, FIRST_JOB + step * number, writer)
                except BaseException as error:
                    os.write(writer, json.dumps({"error": repr(error)}).encode() + b"\n")
                finally:
                    os._exit(1)
            children.append(child)
        os.close(writer)
        readers.append(os.fdopen(reader))
        return list(children), readers[-1]

    yield start
    for reader in readers:
        reader.close()
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("step", [1, 32768 - 30000], ids=["ports apart", "one wished port"])
def test_two_hundred_claims_have_two_hundred_ports(site, start_claims, step, capsys):
    _, answers = start_claims(HOOKS, step)
    told = [json.loads(answers.readline()) for _ in range(HOOKS)]
    assert [a["error"] for a in told if "error" in a] == []
    assert len({answer["port"] for answer in told}) == HOOKS
    records = site.records()
    assert len({record.port for record in records}) == len(records) == HOOKS
    p95 = statistics.quantiles((answer["wait"] for answer in told), n=20)[-1]
    with capsys.disabled():
        print(f"\n{HOOKS} claims at once: p95 of the wait for the lock {p95:.2f} s")


def test_claims_killed_at_random_leave_nothing_after_one_round(site, start_claims, capsys):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with capsys.disabled():
        print(f"\nseed {seed}")
    site.slurm_says()
    children, _ = start_claims(HOOKS)
    time.sleep(0.9)
    for child in chance.sample(children, HOOKS):
        time.sleep(chance.expovariate(1 / 0.005))
        os.kill(child, signal.SIGKILL)
    time.sleep(2.1)  # what is younger may still be written
    assert len(list((site.registry.top / "n1").iterdir())) > 1
    done = collect(site, "--json")
    assert json.loads(done.stdout)["actions"], done
    left = [f.name for f in (site.registry.top / "n1").iterdir() if f.name != ".lock"]
    assert left == [], done
    assert site.leftovers() == []


def test_real_hooks_at_once_killed_at_random_leave_nothing_after_one_round(site, capsys):
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with capsys.disabled():
        print(f"\nseed {seed}")
    jobs = [FIRST_JOB + number for number in range(REAL_HOOKS)]
    for job in jobs:
        site.mark(job)
    steps = [site.step(job) for job in jobs]
    try:
        for step in steps:
            step.start(0)
        for step in chance.sample(steps, REAL_HOOKS):
            time.sleep(chance.uniform(0, 0.7))
            with contextlib.suppress(ProcessLookupError):  # it was quicker
                step.signal_hook(signal.SIGKILL)
            step.kill()
    finally:
        for step in steps:
            step.close()
    site.slurm_says(*({"A": job, "N": "n1", "T": "NODE_FAIL", "S": "1"} for job in jobs))
    time.sleep(2.1)
    done = collect(site)
    assert site.leftovers() == [], done
    assert not [p for p in proc.pids() if f"/{site.base.name}/tools/kind" in proc.title_of(p)]


def test_thousands_of_made_up_claims_keep_no_port_from_anybody(site, capsys):
    """As from one stranger: the listing is what a hook sees of them."""
    site.configure(port_range="30000-32767", listen_address="127.0.0.2")
    context = Context.make(site.settings, "n1", {})
    real = claim.new_record(context, job_id=FIRST_JOB)
    text = json.loads(real.to_bytes())
    uid = 4242
    for number in range(5000):
        name = f"ksi-{number}-00000"
        path = site.registry.path_of("n1", name)
        fields = {"cluster": name, "job_id": number, "port": 30000 + number % 10}
        path.write_text(json.dumps({**text, **fields}))
        if os.getuid() == 0:
            os.chown(path, uid, uid)
    started = time.monotonic()
    record = claim.new_record(context, job_id=FIRST_JOB)
    with capsys.disabled():
        print(f"\na claim beside 5,000 made-up ones: {time.monotonic() - started:.2f} s")
    assert record.state is State.CREATING
    if os.getuid() == 0:  # with a narrow range, all of which the stranger claims
        site.configure(port_range="30000-30009", listen_address="127.0.0.2")
        narrow = Context.make(site.settings, "n1", {})
        assert claim.new_record(narrow, job_id=7).port in range(30000, 30010)
