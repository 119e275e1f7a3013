"""A record that is just being written is neither torn nor absent."""

import os
import threading
import time

import pytest

from ksi_hooks.errors import RecordError
from ksi_hooks.proc import Process
from ksi_hooks.registry import reading
from ksi_hooks.registry.record import Record, State
from ksi_hooks.registry.store import Registry

CLUSTER = "ksi-7-abcde"


@pytest.fixture
def registry(tmp_path):
    made = Registry(tmp_path / "registry", 1.0)
    made.prepare(["n1"])
    return made


def a_record():
    return Record(
        cluster=CLUSTER,
        node="n1",
        boot_id="",
        job_id=7,
        restart=0,
        port=30000,
        run_dir="/run/7",
        creator=Process(1, 1),
        held_by_creator=False,
        state=State.CREATING,
        created=1.0,
        changed=1.0,
        uid=os.getuid(),
    )


def test_empty_file_of_this_moment_is_being_written(registry):
    path = registry.path_of("n1", CLUSTER)
    path.touch()
    with pytest.raises(reading.BeingWritten):
        registry.read("n1", CLUSTER)


def test_empty_file_of_before_is_torn(registry):
    path = registry.path_of("n1", CLUSTER)
    path.touch()
    before = time.time() - reading.FRESH_SECONDS - 1
    os.utime(path, (before, before))
    with pytest.raises(RecordError, match="torn"):
        registry.read("n1", CLUSTER)


def test_listing_waits_for_a_record_that_is_being_written(registry):
    path = registry.path_of("n1", CLUSTER)
    path.touch()
    writer = threading.Timer(reading.PATIENCE_SECONDS / 4, lambda: path.write_bytes(a_record().to_bytes()))
    writer.start()
    listing = registry.of_node("n1")
    writer.join()
    assert [r.cluster for r in listing.records] == [CLUSTER]
    assert listing.problems == []


def test_listing_waits_once_for_all_that_stay_empty(registry, monkeypatch):
    waits = []
    monkeypatch.setattr("ksi_hooks.registry.store.time.sleep", waits.append)
    for number in range(50):
        registry.path_of("n1", f"ksi-{number}-abcde").touch()
    assert len(registry.of_node("n1").problems) == 50
    assert waits == [reading.PATIENCE_SECONDS]
