"""`ksi install`: everything below the prefix, nothing on an error, nothing the second time."""

import os
import shlex
import stat
from pathlib import Path

import pytest
import yaml

from ksi_hooks.cli import install
from ksi_hooks.cli.main import run
from ksi_hooks.config import Settings
from ksi_hooks.install import apply, drift, hindrances, plan, quoting
from ksi_hooks.install.plan import Planned, Site

FILES = {
    "etc/ksi/ksi.yaml": 0o644,
    "libexec/ksi/ksi-task-prolog": 0o755,
    "libexec/ksi/ksi-task-epilog": 0o755,
    "libexec/ksi/ksi-prolog": 0o755,
    "libexec/ksi/ksi-epilog": 0o755,
    "etc/systemd/system/ksi-gc.service": 0o644,
    "etc/systemd/system/ksi-gc.timer": 0o644,
    "etc/systemd/system/user@.service.d/ksi.conf": 0o644,
    "etc/cron.d/ksi-gc": 0o644,
    "etc/tmpfiles.d/ksi.conf": 0o644,
    "etc/modules-load.d/ksi.conf": 0o644,
    "share/ksi/job_submit.lua": 0o644,
}
HOSTILE = "/opt/a b/it's $HOME%u\"x"


@pytest.fixture(autouse=True)
def _no_programs(monkeypatch):
    monkeypatch.setattr(install, "_require_package", lambda site, tools: None)
    monkeypatch.setattr(install.os, "geteuid", lambda: 1000)
    monkeypatch.delenv("SLURM_CONF", raising=False)


@pytest.fixture
def prefix(tmp_path):
    return tmp_path / "site"


def ksi_install(prefix, *assignments, nodes="n1", options=()):
    words = [word for assignment in assignments for word in ("--set", assignment)]
    return run(["install", "--prefix", str(prefix), "--nodes", nodes, *words, *options])


def everything(prefix):
    return {
        str(p.relative_to(prefix)): (p.read_bytes(), p.stat().st_mtime_ns)
        for p in prefix.rglob("*")
        if p.is_file()
    }


def test_every_file_is_there_with_its_mode(prefix, capsys):
    previous = os.umask(0o077)
    try:
        assert ksi_install(prefix, "registry_dir=/shared/ksi") == 0
    finally:
        os.umask(previous)
    assert {name: stat.S_IMODE((prefix / name).stat().st_mode) for name in everything(prefix)} == FILES
    assert all(d.stat().st_mode & 0o777 == 0o755 for d in prefix.rglob("*") if d.is_dir())
    out = capsys.readouterr().out
    for key, hook in (
        ("TaskProlog", "task-prolog"),
        ("TaskEpilog", "task-epilog"),
        ("Prolog", "prolog"),
        ("Epilog", "epilog"),
    ):
        assert f"    {key}={prefix}/libexec/ksi/ksi-{hook}\n" in out
    assert "    PrologFlags=Alloc\n" in out and "Features=k8s\n" in out


def test_the_second_time_nothing_changes_and_it_says_so(prefix, capsys):
    ksi_install(prefix, "registry_dir=/shared/ksi")
    before = everything(prefix)
    capsys.readouterr()
    assert ksi_install(prefix, "registry_dir=/shared/ksi") == 0
    assert everything(prefix) == before
    assert "Nothing to change" in capsys.readouterr().out


def test_one_setting_changes_its_line_and_the_hooks_that_use_it(prefix, capsys):
    ksi_install(prefix, "registry_dir=/shared/ksi")
    file = prefix / "etc/ksi/ksi.yaml"
    file.write_text(file.read_text() + "# a note of the administrator\n")
    before = everything(prefix)
    assert ksi_install(prefix, "feature=kube") == 0
    changed = {name for name, content in everything(prefix).items() if content != before[name]}
    assert changed == {"etc/ksi/ksi.yaml", "libexec/ksi/ksi-prolog", "share/ksi/job_submit.lua"}
    assert "# a note of the administrator\n" in file.read_text()
    assert yaml.safe_load(file.read_text()) == {"registry_dir": "/shared/ksi", "feature": "kube"}


def test_dry_run_writes_nothing(prefix, capsys):
    assert ksi_install(prefix, "registry_dir=/shared/ksi", options=["--dry-run"]) == 0
    assert not prefix.exists()
    assert "12 would change" in capsys.readouterr().out


def test_without_registry_dir_the_hint_says_how(prefix, capsys):
    assert ksi_install(prefix) == 78
    err = capsys.readouterr().err
    assert "registry_dir: required" in err and "--set registry_dir=/shared/ksi" in err
    assert not prefix.exists()


def test_all_problems_are_told_and_nothing_is_written(prefix, capsys):
    assert ksi_install(prefix, "registry_dir=relative", "bogus=1", "print=perhaps") == 78
    err = capsys.readouterr().err
    assert all(f"{key}: " in err for key in ("registry_dir", "bogus", "print"))
    assert not prefix.exists()


def test_a_broken_settings_file_stops_it_and_stays(prefix, capsys):
    ksi_install(prefix, "registry_dir=/shared/ksi")
    file = prefix / "etc/ksi/ksi.yaml"
    file.write_text("registry_dir: [\n")
    before = everything(prefix)
    assert ksi_install(prefix, "feature=kube") == 78
    assert everything(prefix) == before
    assert str(file) in capsys.readouterr().err


@pytest.mark.parametrize("nodes", ["", "a b", "../x", "n1,-rf"])
def test_bad_node_names_are_usage_errors(prefix, nodes, capsys):
    assert ksi_install(prefix, "registry_dir=/shared/ksi", nodes=nodes) == 2
    assert not prefix.exists()


def test_a_masked_unit_stays_masked(prefix, capsys):
    unit = prefix / "etc/systemd/system/ksi-gc.timer"
    unit.parent.mkdir(parents=True)
    unit.symlink_to("/dev/null")
    assert ksi_install(prefix, "registry_dir=/shared/ksi") == 0
    assert unit.is_symlink()
    assert "left alone" in capsys.readouterr().out


def test_a_linked_settings_file_is_changed_where_it_lies(prefix, tmp_path, capsys):
    shared = tmp_path / "shared.yaml"
    shared.write_text("registry_dir: /shared/ksi\n")
    link = prefix / "etc/ksi/ksi.yaml"
    link.parent.mkdir(parents=True)
    link.symlink_to(shared)
    assert ksi_install(prefix, "feature=kube") == 0
    assert link.is_symlink() and yaml.safe_load(shared.read_text())["feature"] == "kube"


def test_slurm_conf_of_the_installation_reaches_the_timer(prefix, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_CONF", "/opt/slurm etc/slurm.conf")
    ksi_install(prefix, "registry_dir=/shared/ksi")
    service = (prefix / "etc/systemd/system/ksi-gc.service").read_text()
    assert 'Environment="SLURM_CONF=/opt/slurm etc/slurm.conf"\n' in service
    assert f"--config {prefix}/etc/ksi/ksi.yaml\n" in service
    assert "SLURM_CONF=/opt/slurm etc/slurm.conf\n" in (prefix / "etc/cron.d/ksi-gc").read_text()


def test_cron_line_is_commented(prefix, capsys):
    ksi_install(prefix, "registry_dir=/shared/ksi")
    lines = (prefix / "etc/cron.d/ksi-gc").read_text().splitlines()
    assert [line for line in lines if "root" in line] == [lines[-1]]
    assert lines[-1].startswith("# */5 * * * * root /")


def test_node_state_is_never_made_at_boot(prefix, capsys):
    ksi_install(prefix, "registry_dir=/shared/ksi")
    directives = [
        line
        for line in (prefix / "etc/tmpfiles.d/ksi.conf").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert directives == ["d /var/lib/ksi/run 1777 root root -"]


def test_hostile_paths_reach_the_shell_whole():
    site = Site(Path(HOSTILE), "/py thon", Path("/pkg $x"))
    settings = Settings(registry_dir=Path("/r"), task_prolog_next=Path("/next; rm -rf x"))
    hooks = {f.path.name: f.text for f in plan.hooks(site, settings)}
    words = shlex.split(hooks["ksi-task-prolog"], comments=True)
    assert f"{HOSTILE}/etc/ksi/ksi.yaml" in words
    assert "/next; rm -rf x" in words and "/pkg $x/hooks/task_prolog.py" in words


def test_system_files_quote_for_their_readers():
    assert quoting.systemd_command(["/a b", "x%y", "$HOME"]) == '"/a b" x%%y "$$HOME"'.replace(
        "x%%y", '"x%%y"'
    )
    assert quoting.systemd_words('/a"b\\') == '"/a\\"b\\\\"'
    assert quoting.cron_command(["/a b", "100%"]) == r"'/a b' 100\%"


def test_without_prefix_programs_lie_below_usr():
    site = Site(Path("/"), "/py", Path("/pkg"))
    assert site.hook("task-prolog") == Path("/usr/libexec/ksi/ksi-task-prolog")
    assert site.settings_file == Path("/etc/ksi/ksi.yaml")


def test_next_hook_has_to_exist_and_run(prefix, tmp_path, capsys):
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    plain.chmod(0o644)
    assert ksi_install(prefix, "registry_dir=/r", "task_prolog_next=/nope", f"task_epilog_next={plain}") == 78
    err = capsys.readouterr().err
    assert "task_prolog_next: no such file: /nope" in err
    assert f"task_epilog_next: not executable for everyone: {plain}" in err
    assert not prefix.exists()


def test_next_hook_may_not_be_our_own(prefix, capsys):
    ksi_install(prefix, "registry_dir=/r")
    assert ksi_install(prefix, f"task_prolog_next={prefix}/libexec/ksi/ksi-task-prolog") == 78
    assert "for ever" in capsys.readouterr().err


def test_paths_that_strangers_cannot_reach_are_told():
    modes = {
        "/": 0o40755,
        "/root": 0o40700,
        "/root/py": 0o100755,
        "/usr": 0o40755,
        "/usr/py": 0o100755,
        "/usr/x": 0o100700,
    }
    found = hindrances.unreachable(map(Path, ("/root/py", "/usr/py", "/usr/x")), lambda p: modes[str(p)])
    assert found == [(Path("/root/py"), Path("/root")), (Path("/usr/x"), Path("/usr/x"))]


def test_drift_is_seen_and_mended(prefix, capsys):
    ksi_install(prefix, "registry_dir=/r")
    site = Site(prefix, install.sys.executable, Path(install.ksi_hooks.__file__).resolve().parent)
    settings = Settings(registry_dir=Path("/r"))
    assert drift.differences(site, settings) == []
    other = Settings(registry_dir=Path("/r"), on_failure="continue")
    assert drift.differences(site, other) == [
        f"{site.hook('task-prolog')} differs from what ksi install would write now"
    ]
    site.hook("epilog").unlink()
    assert drift.differences(site, settings) == [f"{site.hook('epilog')} is not installed"]


def test_a_settings_file_elsewhere_belongs_to_no_installation():
    assert drift.site_of(Path("/home/me/ksi.yaml"), python="/py", package=Path("/pkg")) is None
    site = drift.site_of(Path("/opt/etc/ksi/ksi.yaml"), python="/py", package=Path("/pkg"))
    assert site is not None and site.prefix == Path("/opt")


def test_what_cannot_be_written_names_the_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(apply.KsiError, match=str(tmp_path / "file/x")):
        apply.write(Planned(tmp_path / "file/x", "text", 0o644))


@pytest.mark.skipif(os.getuid() != 0, reason="makes directories that belong to root")
def test_root_prepares_run_root_and_registry(prefix, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(install.os, "geteuid", lambda: 0)
    wanted = (f"registry_dir={tmp_path}/registry", f"run_dir={tmp_path}/run/%u")
    assert ksi_install(prefix, *wanted, nodes="n[1-2]") == 0
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o1777
    assert sorted(p.name for p in (tmp_path / "registry").iterdir()) == [".lock", "n1", "n2"]
    capsys.readouterr()
    assert ksi_install(prefix, nodes="n[1-2]") == 0
    assert "Nothing to change" in capsys.readouterr().out
