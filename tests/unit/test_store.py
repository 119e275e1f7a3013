"""The directory of records: what is found in it, whatever others have put there."""

import dataclasses
import errno
import os
import signal
import stat
import time

import pytest
from unit.test_record import GOOD

from ksi_hooks import files
from ksi_hooks.errors import KsiError, RecordError
from ksi_hooks.registry.record import State
from ksi_hooks.registry.store import LOCK_NAME, Registry

UID = os.getuid()


@pytest.fixture
def registry(tmp_path):
    made = Registry(tmp_path / "registry", 1.0)
    made.prepare(["n1", "n2"])
    return made


def mine(suffix="0af3c", **changes):
    job_id = changes.get("job_id", 7)
    return dataclasses.replace(GOOD, uid=UID, cluster=f"ksi-{job_id}-{suffix}", **changes)


def plant(registry, record, name=None):
    path = registry.path_of(record.node, name or record.cluster)
    path.write_bytes(record.to_bytes())
    return path


def test_claim_update_read_remove(registry):
    record = mine()
    registry.claim(record)
    assert registry.read("n1", record.cluster) == record
    changed = registry.update(dataclasses.replace(record, state=State.DELETING))
    assert registry.read("n1", record.cluster) == changed
    assert changed.changed > record.changed
    registry.remove(changed)
    registry.remove(changed)
    assert registry.read("n1", record.cluster) is None
    assert [p.name for p in (registry.top / "n1").iterdir()] == [LOCK_NAME]


def test_claim_is_exclusive(registry):
    registry.claim(mine())
    with pytest.raises(FileExistsError):
        registry.claim(mine(port=30001))
    assert registry.read("n1", mine().cluster).port == GOOD.port


def test_of_job_is_the_users_own_newest_first_and_ignores_strangers(registry, monkeypatch):
    for record in (mine("00001", created=1), mine("00002", created=3), mine("00003", created=2)):
        registry.claim(record)
    registry.claim(mine("00004", job_id=71))
    registry.claim(mine("00005", node="n2"))
    plant(registry, mine("00006")).write_text("torn")
    read, stranger = files.read, mine("00003").cluster

    def as_others(path, *, limit):
        content = read(path, limit=limit)
        return dataclasses.replace(content, uid=UID + 1) if stranger in path.name else content

    monkeypatch.setattr(files, "read", as_others)
    assert [r.cluster for r in registry.of_job("n1", 7, UID)] == ["ksi-7-00002", "ksi-7-00001"]
    assert registry.of_job("n1", 8, UID) == []


def test_one_bad_file_is_one_problem(registry):
    registry.claim(mine("00001"))
    plant(registry, mine("00002")).write_bytes(b"")
    registry.claim(mine("00003"))
    listing = registry.of_node("n1")
    assert [r.cluster for r in listing.records] == ["ksi-7-00001", "ksi-7-00003"]
    (problem,) = listing.problems
    assert "ksi-7-00002.json" in problem


@pytest.mark.parametrize("name", ["ksi-7-00001", "ksi-8-0af3c"])
def test_record_under_another_name_is_refused(registry, name):
    plant(registry, mine(), name)
    with pytest.raises(RecordError, match=name):
        registry.read("n1", name)


def test_record_of_another_node_is_refused(registry):
    (registry.top / "n1" / "ksi-7-0af3c.json").write_bytes(mine(node="n2").to_bytes())
    with pytest.raises(RecordError, match="another cluster or node"):
        registry.read("n1", "ksi-7-0af3c")


@pytest.mark.parametrize(
    "name", ["--all.json", "a;touch pwn.json", ".json", "ksi-7-0af3c.json.bak", "KSI-7-0AF3C.json"]
)
def test_names_that_are_none_of_ours_are_not_opened(registry, name, monkeypatch):
    (registry.top / "n1" / name).write_text("{}")
    monkeypatch.setattr(files, "read", lambda *_args, **_kw: pytest.fail("opened"))
    assert registry.of_node("n1").records == registry.of_node("n1").problems == []


@pytest.mark.parametrize("node", ["../x", "a/b", "", "-x", "n1\n", "."])
def test_node_names_that_climb(registry, node):
    with pytest.raises(KsiError, match="not the name of a node"):
        registry.path_of(node, "ksi-7-0af3c")


def test_flat_names_where_root_made_no_directory_for_the_node(registry):
    record = mine(node="n9")
    registry.claim(record)
    assert [p.name for p in registry.top.glob("*.json")] == [f"n9~{record.cluster}.json"]
    assert registry.of_node("n9").records == registry.of_job("n9", 7, UID) == [record]
    assert "n9" in registry.nodes()


def test_directory_that_a_tenant_made_does_not_count(registry, monkeypatch):
    if UID != 0:
        pytest.skip("needs root to make a directory of another user")
    (registry.top / "n9").mkdir(mode=0o777)
    os.chown(registry.top / "n9", 4242, 4242)
    assert registry.path_of("n9", "ksi-7-0af3c").parent == registry.top


def test_link_in_place_of_a_nodes_directory_does_not_count(registry, tmp_path):
    (tmp_path / "victim").mkdir()
    (registry.top / "n9").symlink_to(tmp_path / "victim")
    registry.claim(mine(node="n9"))
    assert list((tmp_path / "victim").iterdir()) == []


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_kb_33_modes_whatever_the_umask(tmp_path, umask):
    registry = Registry(tmp_path / "registry", 1.0)
    before = os.umask(umask)
    try:
        registry.prepare(["n1"])
        registry.claim(mine())
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (registry.top, *registry.top.rglob("*"))}
    assert modes == {"registry": 0o1777, "n1": 0o1777, LOCK_NAME: 0o666, "ksi-7-0af3c.json": 0o644}


def test_prepare_twice_changes_nothing_and_keeps_records(registry):
    registry.claim(mine())
    assert registry.prepare(["n1", "n2"]) == []
    assert registry.read("n1", mine().cluster) == mine()


@pytest.mark.parametrize(
    ("number", "hint"),
    [(errno.ENOSPC, "free space"), (errno.EDQUOT, "quota"), (errno.EACCES, "init-registry")],
)
def test_kb_34_write_error_leaves_the_old_bytes_and_no_other_file(registry, monkeypatch, number, hint):
    record = mine()
    registry.claim(record)

    def fail(*_args):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KsiError, match="cannot write the registry") as caught:
        registry.update(dataclasses.replace(record, port=30001))
    assert hint in caught.value.hint
    monkeypatch.undo()
    assert registry.read("n1", record.cluster) == record
    assert sorted(p.name for p in (registry.top / "n1").iterdir()) == [LOCK_NAME, f"{record.cluster}.json"]


def test_cost_does_not_grow_with_the_records_of_other_nodes(registry, monkeypatch):
    for number in range(20):
        registry.claim(mine(f"{number:05x}", node="n2"))
    monkeypatch.setattr(files, "read", lambda *_args, **_kw: pytest.fail("opened"))
    assert registry.of_node("n1").records == []


def test_kb_34_writer_killed_at_any_moment_leaves_a_whole_record(registry):
    """What readers see is the old or the new bytes; a temporary file is no record."""
    record = mine()
    registry.claim(record)
    for round_ in range(10):
        child = os.fork()
        if child == 0:
            while True:
                registry.update(dataclasses.replace(record, port=30000 + round_))
        time.sleep(0.003 * (round_ + 1))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        listing = registry.of_node("n1")
        assert listing.problems == []
        assert [r.cluster for r in listing.records] == [record.cluster]
