"""Records as others may have written them: exactly one of ours, or an error that names the file."""

import dataclasses
import json
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksi_hooks.errors import RecordError
from ksi_hooks.proc import Process
from ksi_hooks.registry import record as records
from ksi_hooks.registry.record import Record, State

GOOD = Record(
    cluster="ksi-7-0af3c",
    node="n1",
    boot_id="b3b9d8a2-2f4f-4f0d-9b0e-1f1f9d1d2c3b",
    job_id=7,
    restart=0,
    port=30000,
    run_dir=Path("/var/lib/ksi/run/1000/ksi-7-0af3c"),
    creator=Process(4711, 123456),
    held_by_creator=False,
    state=State.READY,
    created=1.5e9,
    changed=1.5e9,
    uid=1000,
    api="https://127.0.0.1:6443",
    secrets_dir=Path("/shared/ksi/secrets-ksi-7-0af3c"),
)
JSON = json.loads(GOOD.to_bytes())


def parse(**changes):
    return records.parse(json.dumps({**JSON, **changes}).encode(), uid=1000, source="FILE")


def test_what_is_written_is_what_is_read():
    assert records.parse(GOOD.to_bytes(), uid=1000, source="x") == GOOD


def test_owner_is_the_files_whatever_it_says():
    assert parse(uid=0).uid == 1000
    assert "uid" not in JSON


def test_unknown_fields_are_kept_out():
    assert parse(later="x") == GOOD


def test_no_secret_is_in_a_record():
    assert set(JSON) == {f.name for f in dataclasses.fields(Record)} - {"uid"} | {"version"}


BAD = {
    "cluster": [
        "--all",
        "../../x",
        "a;touch T/pwn",
        "x\ny",
        "",
        "ksi-7-0af3c\n",
        "ksi-8-0af3c",
        "KSI-7-0AF3C",
        7,
        None,
    ],
    "node": ["", "../x", "a/b", "-x", "n\n", 7, None, "n" * 300],
    "job_id": ["7", -1, 2**33, True, 7.0, []],
    "restart": [-1, "0", None, 2**40],
    "port": ["x", "30000", 80, 0, 32768, -1, True, 30000.5, None],
    "run_dir": ["etc", "", "/a/../b", "/x\0y", 7, None, "/" + "x" * 2000],
    "secrets_dir": ["etc", "/a/../b", 7],
    "creator": [
        7,
        None,
        {},
        {"pid": 1},
        {"pid": -1, "start": 0},
        {"pid": "1", "start": 0},
        {"pid": 2**40, "start": 0},
    ],
    "held_by_creator": ["false", 0, None],
    "state": ["READY", "gone", "", 7, None, []],
    "created": ["1", -1, 1e300, None, True],
    "changed": ["now", -1],
    "api": [
        "http://x",
        "https://x y",
        "file:///etc/passwd",
        "https://x/\nhttps://y",
        7,
        None,
        "https://" + "x" * 500,
    ],
    "boot_id": ["../x", "Z", 7, None],
    "version": [0, 2, 99, "1", None],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_kb_39_hostile_values(name, value):
    with pytest.raises(RecordError, match="FILE"):
        parse(**{name: value})


@pytest.mark.parametrize("name", sorted(JSON))
def test_kb_34_missing_fields(name):
    torn = {key: value for key, value in JSON.items() if key != name}
    with pytest.raises(RecordError, match="FILE"):
        records.parse(json.dumps(torn).encode(), uid=1000, source="FILE")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b'{"clusters": [',
        GOOD.to_bytes() + b"\0\0",
        b"[]",
        b"null",
        b"7",
        b"\xff\xfe",
        GOOD.to_bytes()[:-20],
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"version": NaN}',
        b'{"version": 1' + b"1" * 5000 + b"}",
    ],
)
def test_kb_34_torn_and_foreign_files(data):
    with pytest.raises(RecordError, match="FILE"):
        records.parse(data, uid=1000, source="FILE")


def test_newer_version_says_what_to_do():
    with pytest.raises(RecordError, match="version '99', this program knows 1") as caught:
        parse(version=99)
    assert "upgrade" in caught.value.hint


@given(st.binary(max_size=300))
def test_any_bytes_are_a_record_or_a_record_error(data):
    with pytest.raises(RecordError):
        records.parse(data, uid=1, source="FILE")


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


@given(st.sampled_from(sorted(JSON)), VALUES)
def test_any_value_in_any_field_is_a_record_or_a_record_error(name, value):
    try:
        parse(**{name: value})
    except RecordError as error:
        assert "FILE" in str(error)


@given(st.integers(0, 2**32) | st.none(), st.text("0123456789abcdef", min_size=5, max_size=5))
def test_kb_30_names_fit_kind_and_the_nodes_host_name(job_id, suffix):
    name = records.cluster_name(job_id, suffix)
    assert set(name) <= set(string.ascii_lowercase + string.digits + "-")
    assert len(f"{name}-control-plane") <= 63
    assert records.CLUSTER_NAME.fullmatch(name)
    assert records.job_of(name) == job_id


@pytest.mark.parametrize(
    "name", ["ksi-7-0af3c-x", "kind", "ksi--0af3c", "ksi-٣-0af3c", "xksi-7-0af3c", "ksi-7-0af3"]
)
def test_names_that_are_none_of_ours(name):
    assert records.CLUSTER_NAME.fullmatch(name) is None
    assert records.job_of(name) is None
