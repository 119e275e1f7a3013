"""What ksi-gc believes of tenants: nothing that can stop it, steer it or lie to whoever reads its lines."""

import dataclasses
import json
import os
import syslog
import time
from pathlib import Path

import pytest

from ksi_hooks.config import Settings
from ksi_hooks.errors import CommandFailed, KsiError
from ksi_hooks.gc import main, sweep, tenants
from ksi_hooks.gc.round import Action, Outcome, fair_order
from ksi_hooks.gc.sweep import Decision, Facts, Found, Verdict
from ksi_hooks.proc import Process
from ksi_hooks.registry import record as records
from ksi_hooks.registry import remains
from ksi_hooks.registry.record import Record, State
from ksi_hooks.registry.store import Registry
from ksi_hooks.slurm import query
from ksi_hooks.slurm.query import JobFacts, JobState

SETTINGS = Settings(registry_dir=Path("/nonexistent"))
FILE = Path("/nonexistent/ksi.yaml")
RECORD = Record(
    cluster="ksi-7-0af3c",
    node="n1",
    boot_id="b",
    job_id=7,
    restart=0,
    port=30000,
    run_dir=Path("/r/ksi-7-0af3c"),
    creator=Process(1, 1),
    held_by_creator=False,
    state=State.READY,
    created=1000.0,
    changed=1000.0,
    uid=1000,
)


@pytest.fixture
def answers(monkeypatch):
    """Let the tenant's process give this answer."""

    def give(status, text):
        def start(*_args):
            if status is None:
                raise CommandFailed(["python"], None, text)
            return status, text

        monkeypatch.setattr(tenants, "_start", start)
        monkeypatch.setattr(tenants.os, "geteuid", lambda: 0)

    return give


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, ""),
        (0, "null"),
        (0, "7"),
        (0, "[" * 100_000),
        (0, '[["ksi-7-0af3c"]]'),
        (0, '[["ksi-7-0af3c", "x"]]'),
        (0, '[["ksi-7-0af3c", 1' + "0" * 400 + "]]"),
        (0, "[7]"),
        (0, "{}"),
        (1, "\x1b]0;evil\x07\nJan 1 kernel: all is well"),
        (-9, ""),
        (None, "\x1b[2J"),
    ],
)
def test_answer_that_cannot_be_read_is_one_printable_problem(answers, status, text):
    answers(status, text)
    with pytest.raises(KsiError) as caught:
        tenants.clusters(FILE, SETTINGS, "n1", 4000)
    assert str(caught.value).isprintable()
    assert "user 4000" in str(caught.value)


def test_clusters_that_a_tenant_makes_up_are_bounded(answers):
    answers(0, json.dumps([[f"ksi-{n}-00000", 1] for n in range(50_000)]))
    assert len(tenants.clusters(FILE, SETTINGS, "n1", 4000)) == tenants.MAX_CLUSTERS


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ({"ksi-7-0af3c": []}, []),
        ({}, ["not tried"]),
        ({"ksi-7-0af3c": 5}, ["not tried"]),
        ({"ksi-7-0af3c": "abc"}, ["not tried"]),
        ({"ksi-7-0af3c": ["a\nb\x1b"]}, ["a?b?"]),
    ],
)
def test_what_a_tenant_says_is_left(answers, answer, left):
    answers(0, json.dumps(answer))
    assert tenants.delete(FILE, SETTINGS, "n1", 4000, ["ksi-7-0af3c"]) == {"ksi-7-0af3c": left}


def test_phrases_of_a_tenant_are_bounded(answers):
    answers(0, json.dumps({"a": ["x" * 10**6] * 10**3}))
    (left,) = tenants.delete(FILE, SETTINGS, "n1", 4000, ["a"]).values()
    assert len(left) == tenants.MAX_PHRASES
    assert max(map(len, left)) == tenants.MAX_CHARACTERS


def test_no_proxy_with_its_password_reaches_a_tenants_process(monkeypatch):
    seen = []
    monkeypatch.setattr(tenants.os, "geteuid", lambda: 0)
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy:3128")
    monkeypatch.setattr(tenants, "_start", lambda *args: seen.append(args) or (0, "[]"))
    tenants.clusters(FILE, SETTINGS, "n1", 4000)
    assert "secret" not in str(seen)


def test_users_take_turns_when_slurm_is_asked():
    asked = [*((1, n) for n in range(5000)), (2, 9001), (3, None), (3, 9002), (2, 9003)]
    order = fair_order(asked)
    assert order[:5] == [0, 9001, 9002, 1, 9003]
    assert sorted(order) == [*range(5000), 9001, 9002, 9003]


def test_thousands_of_ids_are_asked_in_batches_and_single_ones_in_the_given_order(monkeypatch):
    calls = []

    class Slurm:
        def extended(self, **_variables):
            return self

        def status(self, argv, *, timeout):
            calls.append(argv[3])
            if "," in argv[3]:
                return 0, "7|RUNNING|1\n"
            return 1, "slurm_load_jobs error: Invalid job id specified"

    facts = query.job_facts(Slurm(), [9, 7, *range(100, 3000), 8], timeout=30)
    assert facts[7].state is JobState.ALIVE
    assert facts[9].state is facts[8].state is JobState.GONE
    assert [c.count(",") + 1 for c in calls[:3]] == [1000, 1000, 903]
    assert calls[3] == "9"
    assert calls[-1] == "8"
    assert max(map(len, calls)) < 128 * 1024


@pytest.mark.parametrize("ahead", [60, 86400, 9e10])
def test_times_that_lie_ahead_buy_no_grace(ahead):
    now = time.time()
    gone = {7: JobFacts(JobState.GONE)}
    facts = Facts(now=now, boot_id="b", grace=600, hook_seconds=50, jobs=gone)
    record = dataclasses.replace(RECORD, created=now + ahead, changed=now + ahead)
    assert sweep.judge(record, facts).verdict is Verdict.DELETE
    found = Found("ksi-7-0af3c", 1000, now + ahead)
    assert sweep.judge_unrecorded(found, facts).verdict is Verdict.DELETE
    fresh = dataclasses.replace(RECORD, changed=now + 1)
    assert sweep.judge(fresh, facts).verdict is Verdict.KEEP


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "x"])
def test_grace_that_is_none_is_a_usage_error(text, capsys):
    with pytest.raises(SystemExit) as caught:
        main.main(["--older-than", text])
    assert caught.value.code == 2


def test_every_deletion_is_one_audit_line_and_a_dry_run_none(monkeypatch, capsys):
    lines = []
    monkeypatch.setattr(syslog, "syslog", lambda _level, text: lines.append(text))
    decision = Decision("ksi-7-0af3c", 1000, Verdict.DELETE, "the job has ended")
    kept = Decision("ksi-8-0af3c", 1000, Verdict.KEEP, "the job lives")
    actions = [Action(decision, True), Action(decision, False, ["volume v"]), Action(kept, False)]
    for action in actions:
        main._Teller(as_json=False, dry_run=False, verbose=False).tell(action)
        main._Teller(as_json=False, dry_run=True, verbose=False).tell(action)
    assert lines == [
        "ksi-gc: cluster=ksi-7-0af3c uid=1000 reason='the job has ended' deleted",
        "ksi-gc: cluster=ksi-7-0af3c uid=1000 reason='the job has ended' left: volume v",
    ]
    assert capsys.readouterr().out.splitlines()[0] == ("deleted ksi-7-0af3c of user 1000 (the job has ended)")
    assert Outcome(actions=actions).failed


@pytest.fixture
def registry(tmp_path):
    made = Registry(tmp_path / "registry", 5)
    made.prepare(["n1"])
    return made


@pytest.mark.parametrize("data", [b"", b'{"version": 1, "clu', b"\0" * 300])
def test_record_whose_writer_was_killed_is_found_by_its_owner(registry, tmp_path, data):
    path = registry.path_of("n1", "ksi-7-0af3c")
    path.write_bytes(data)
    uid = path.stat().st_uid
    assert remains.torn_records(registry, "n1", uid) == []  # it may still be written
    old = time.time() - 10
    os.utime(path, (old, old))
    assert [name for name, _ in remains.torn_records(registry, "n1", uid)] == ["ksi-7-0af3c"]
    assert remains.torn_records(registry, "n1", uid + 1) == []


def test_record_of_a_newer_version_is_not_torn(registry):
    path = registry.path_of("n1", "ksi-7-0af3c")
    path.write_bytes(json.dumps({"version": records.VERSION + 1}).encode())
    old = time.time() - 10
    os.utime(path, (old, old))
    assert remains.torn_records(registry, "n1", path.stat().st_uid) == []


def test_new_version_that_never_took_its_place_is_removed(registry):
    room = registry.top / "n1"
    mine = [f".ksi-7-0af3c.json.{pid}.123" for pid in (2**22 + 7,)]
    others = [f".ksi-7-0af3c.json.{os.getpid()}.5", ".ksi-7-0af3c.json", ".lock", "x.json.1.2"]
    for name in (*mine, *others):
        (room / name).touch()
    remains.remove_unfinished(registry, "n1", room.stat().st_uid)
    assert sorted(f.name for f in room.iterdir()) == sorted(others)
