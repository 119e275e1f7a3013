"""`ksi list`, `show`, `delete`: whose clusters, which ones, where."""

import dataclasses
import json
import os
from pathlib import Path

import pytest

from ksi_hooks import config, proc
from ksi_hooks.cli import choose, delete, main, output
from ksi_hooks.cli import list as listing
from ksi_hooks.errors import KsiError
from ksi_hooks.proc import Process
from ksi_hooks.registry import requests
from ksi_hooks.registry.record import Record, State, job_of
from ksi_hooks.registry.store import Registry

ME = os.getuid()


def record(cluster, node="n1", uid=ME, **changes):
    plain = Record(
        cluster=cluster,
        node=node,
        boot_id=proc.boot_id(),
        job_id=job_of(cluster),
        restart=0,
        port=30007,
        run_dir=Path("/var/lib/ksi/run/7") / cluster,
        creator=Process(os.getpid(), 0),
        held_by_creator=False,
        state=State.READY,
        created=1000.0,
        changed=1000.0,
        uid=uid,
        api="https://127.0.0.1:6443",
    )
    return dataclasses.replace(plain, **changes)


MINE = record("ksi-7-0a1b2")
ALSO_MINE = record("ksi-7-ffff0", node="n2")
THEIRS = record("ksi-8-0a1b2", uid=ME + 1)
ALL = [MINE, ALSO_MINE, THEIRS]


@pytest.fixture
def settings_file(tmp_path, monkeypatch):
    registry = Registry(tmp_path / "registry", 5.0)
    registry.prepare(["n1", "n2"])
    for each in (MINE, ALSO_MINE):
        registry.claim(each)
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    file = tmp_path / "ksi.yaml"
    file.write_text(f"registry_dir: {registry.top}\nrun_dir: {tmp_path}/run/%u\n")
    return file


def ksi(settings_file, *argv):
    return main.run(["--config", str(settings_file), *argv])


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("ksi-7-0a1b2", [MINE]),
        ("kind-ksi-7-0a1b2", [MINE]),
        ("7", [MINE, ALSO_MINE]),
        ("8", [THEIRS]),
        ("ksi-8-0a1b2", [THEIRS]),
    ],
)
def test_a_name_a_context_or_a_job(word, found):
    assert choose.clusters(ALL, word, uid=ME) == found


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("ksi-7", "perhaps ksi-7-0a1b2, ksi-7-ffff0"),
        ("ksi-7-0a1b3", "perhaps ksi-7-0a1b2"),
        ("7-0a", "perhaps ksi-7-0a1b2"),
        ("completely-else", "ksi list shows your clusters"),
        ("*", "ksi list shows your clusters"),
        ("", "perhaps ksi-7-0a1b2, ksi-7-ffff0"),
    ],
)
def test_an_unknown_name_gets_close_matches_and_no_pattern_works(word, hint):
    with pytest.raises(KsiError, match="no such cluster or job") as caught:
        choose.clusters(ALL, word, uid=ME)
    assert caught.value.hint.startswith(hint)


def test_own_clusters_before_what_strangers_planted_for_the_same_job():
    planted = record("ksi-7-bad00", uid=ME + 1)
    assert choose.clusters([planted, MINE], "7", uid=ME) == [MINE]


def test_a_job_of_several_strangers_is_ambiguous():
    with pytest.raises(KsiError, match="several users"):
        choose.clusters([record("ksi-9-00000", uid=ME + 1), record("ksi-9-00001", uid=ME + 2)], "9", uid=ME)


def test_list_shows_all_nodes(settings_file, capsys):
    assert ksi(settings_file, "list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["CLUSTER", "JOB", "NODE", "PORT", "STATE", "AGE"]
    assert [line.split()[:5] for line in lines[1:]] == [
        ["ksi-7-0a1b2", "7", "n1", "30007", "ready"],
        ["ksi-7-ffff0", "7", "n2", "30007", "ready"],
    ]


def test_list_tells_of_files_that_cannot_be_trusted(settings_file, tmp_path, capsys):
    (tmp_path / "registry/n1/ksi-9-00000.json").write_text("{torn")
    assert ksi(settings_file, "list") == 0
    assert "1 files in the registry cannot be trusted" in capsys.readouterr().err
    assert ksi(settings_file, "list", "--all") == 0
    assert "ksi-9-00000.json" in capsys.readouterr().err


def test_list_as_json(settings_file, capsys):
    assert ksi(settings_file, "list", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [c["cluster"] for c in told["clusters"]] == ["ksi-7-0a1b2", "ksi-7-ffff0"]
    assert told["clusters"][0]["kubeconfig"] == "/var/lib/ksi/run/7/ksi-7-0a1b2/kubeconfig"
    assert "token" not in json.dumps(told)


def test_others_are_shown_with_their_owner():
    text = listing.text([THEIRS], owners=True, now=1000.0 + 3 * 3600)
    assert text.splitlines()[0].split()[-1] == "USER"
    assert text.splitlines()[1].split() == [
        "ksi-8-0a1b2",
        "8",
        "n1",
        "30007",
        "ready",
        "3h00m",
        output.user_name(ME + 1),
    ]


def test_a_missing_registry_is_one_error(settings_file, tmp_path, capsys):
    (tmp_path / "registry").rename(tmp_path / "elsewhere")
    assert ksi(settings_file, "list") == 1
    err = capsys.readouterr().err
    assert str(tmp_path / "registry") in err and "ksi: hint: " in err


def test_show_tells_how_to_use_the_cluster(settings_file, capsys):
    assert ksi(settings_file, "show", "ksi-7-0a1b2") == 0
    out = capsys.readouterr().out
    assert "node:     n1 (this node)\n" in out
    assert "use it:   export KUBECONFIG=/var/lib/ksi/run/7/ksi-7-0a1b2/kubeconfig\n" in out


def test_show_of_a_job_shows_each_of_its_clusters(settings_file, capsys):
    assert ksi(settings_file, "show", "7") == 0
    assert capsys.readouterr().out.count("cluster: ") == 2


def test_show_does_not_offer_a_kubeconfig_of_another_node(settings_file, capsys):
    assert ksi(settings_file, "show", "ksi-7-ffff0") == 0
    assert "KUBECONFIG" not in capsys.readouterr().out


def test_show_tells_what_has_died(settings_file, tmp_path, capsys):
    registry = Registry(tmp_path / "registry", 5.0)
    registry.update(dataclasses.replace(MINE, boot_id="0" * 8))
    assert ksi(settings_file, "show", "ksi-7-0a1b2") == 0
    assert "started anew since: ksi delete ksi-7-0a1b2" in capsys.readouterr().out
    registry.update(dataclasses.replace(MINE, state=State.CREATING, creator=Process(1, 12345)))
    assert ksi(settings_file, "show", "ksi-7-0a1b2") == 0
    assert "its creator has ended" in capsys.readouterr().out


def test_delete_goes_through_the_lifecycle_with_epilog_timeout(settings_file, monkeypatch, capsys):
    calls = []

    def deleted(context, each, deadline):
        calls.append((each.cluster, context.node, deadline.seconds))
        return []

    monkeypatch.setattr(delete.deletion, "delete", deleted)
    assert ksi(settings_file, "delete", "ksi-7-0a1b2", "kind-ksi-7-0a1b2") == 0
    assert calls == [("ksi-7-0a1b2", "n1", 25.0)]
    assert capsys.readouterr().out == "deleted ksi-7-0a1b2\n"


def test_delete_tells_what_is_left_and_fails(settings_file, monkeypatch, capsys):
    monkeypatch.setattr(delete.deletion, "delete", lambda *_: ["container x", "volume y"])
    assert ksi(settings_file, "delete", "ksi-7-0a1b2") == 1
    assert "not deleted: ksi-7-0a1b2: container x, volume y" in capsys.readouterr().err


@pytest.mark.parametrize("names", [["ksi-7-0a1b2", "nope"], ["ksi-7-0a1b2", "ksi-9-00000"]])
def test_one_wrong_name_stops_it_before_the_first(settings_file, monkeypatch, capsys, names):
    monkeypatch.setattr(delete.deletion, "delete", lambda *_: pytest.fail("deleted something"))
    assert ksi(settings_file, "delete", *names) == 1


def test_a_cluster_of_another_node_is_left_to_that_nodes_ksi_gc(settings_file, monkeypatch, capsys):
    monkeypatch.setattr(delete.deletion, "delete", lambda *_: pytest.fail("deleted something"))
    assert ksi(settings_file, "delete", "ksi-7-ffff0") == 0
    assert "requested the deletion of ksi-7-ffff0: ksi-gc on n2" in capsys.readouterr().out
    registry = Registry.of(config.load(settings_file))
    (elsewhere,) = registry.of_node("n2").records
    assert requests.granted(registry, [elsewhere]) == {"ksi-7-ffff0"}


def test_only_root_deletes_for_others():
    with pytest.raises(KsiError, match="belongs to"):
        delete.chosen([record("ksi-8-0a1b2", uid=5000)], ["8"], uid=4000)
    theirs = record("ksi-8-0a1b2", uid=5000)
    assert delete.chosen([theirs], ["8"], uid=0) == [theirs]


def test_root_deletes_as_the_owner(monkeypatch, settings_file):
    from ksi_hooks.gc import tenants

    calls = []
    monkeypatch.setattr(tenants, "delete", lambda *args: calls.append(args) or {"ksi-8-0a1b2": []})
    settings = config.load(settings_file)
    assert delete._delete_theirs(settings_file, settings, "n1", [THEIRS]) == {"ksi-8-0a1b2": []}
    assert calls == [(settings_file, settings, "n1", ME + 1, ["ksi-8-0a1b2"])]
    with pytest.raises(KsiError):
        delete._delete_theirs(None, settings, "n1", [THEIRS])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h00m"),
        (86399, "23h59m"),
        (90000, "1d1h"),
    ],
)
def test_ages(seconds, text):
    assert output.age(seconds) == text


def test_text_from_files_cannot_move_the_cursor():
    assert output.table(["A", "B"], [["\x1b[2J", "x\ny"]]) == "A     B\n?[2J  x?y\n"
