"""`ksi config`: values and sources, the template, the registry."""

import json

import pytest

from ksi_hooks import config
from ksi_hooks.cli import main, nodes
from ksi_hooks.errors import CommandFailed, UsageError
from ksi_hooks.install import settings_file as texts
from ksi_hooks.run import Tools


@pytest.fixture
def settings_file(tmp_path):
    file = tmp_path / "etc/ksi/ksi.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"registry_dir: {tmp_path}/registry\nprint: false\n")
    return file


def ksi(settings_file, *argv):
    return main.run(["--config", str(settings_file), "config", *argv])


def test_values_and_sources(settings_file, capsys):
    assert ksi(settings_file) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"settings file: {settings_file}"
    rows = {line.split()[0]: line.split()[1:] for line in lines[3:]}
    assert rows["print"] == ["false", "file"]
    assert rows["feature"] == ["k8s", "default"]


def test_json(settings_file, capsys):
    assert ksi(settings_file, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["file"] == str(settings_file)
    assert told["settings"]["print"] == {"value": False, "source": "file"}
    assert told["settings"]["port_range"] == {"value": "30000-32767", "source": "default"}


def test_it_says_when_the_hooks_are_not_what_the_settings_ask_for(settings_file, capsys):
    ksi(settings_file)
    err = capsys.readouterr().err
    assert "ksi-task-prolog is not installed" in err and "ksi install" in err


def test_defaults_need_no_settings_file(capsys):
    assert main.run(["--config", "/nope", "config", "--defaults"]) == 0
    assert capsys.readouterr().out == texts.new_text({})


def test_the_registry_is_prepared_once(settings_file, tmp_path, capsys):
    assert ksi(settings_file, "--init-registry", "--nodes", "n[1-2]") == 0
    registry = tmp_path / "registry"
    assert sorted(p.name for p in registry.iterdir()) == [".lock", "n1", "n2"]
    assert all(p.stat().st_mode & 0o7777 == 0o1777 for p in (registry, registry / "n1", registry / "n2"))
    capsys.readouterr()
    assert ksi(settings_file, "--init-registry", "--nodes", "n[1-2]") == 0
    assert "ready already for n1, n2" in capsys.readouterr().out


def test_a_registry_that_cannot_be_made_is_one_error(settings_file, tmp_path, capsys):
    (tmp_path / "registry").write_text("a file")
    assert ksi(settings_file, "--init-registry", "--nodes", "n1") == 1
    assert f"cannot prepare the registry: {tmp_path}/registry" in capsys.readouterr().err


class Sinfo(Tools):
    answer = "n2\nn1\nn2\n"

    def capture(self, argv, **_options):
        assert argv == ["sinfo", "-h", "-N", "-o", "%N"]
        if self.answer is None:
            raise CommandFailed(["sinfo"], 1, "no controller")
        return self.answer


def test_nodes_are_asked_for_known_or_this_one(monkeypatch):
    assert nodes.nodes_of("r[1-2]n1,login", Sinfo([])) == ["r1n1", "r2n1", "login"]
    assert nodes.nodes_of(None, Sinfo([])) == ["n1", "n2"]
    monkeypatch.setattr(Sinfo, "answer", None)
    monkeypatch.setattr(nodes.socket, "gethostname", lambda: "me.example.org")
    assert nodes.nodes_of(None, Sinfo([])) == ["me"]


@pytest.mark.parametrize("text", ["", ",", "a/b", "..", "n[1-2"])
def test_bad_host_lists_are_usage_errors(text):
    with pytest.raises(UsageError):
        nodes.nodes_of(text, Sinfo([]))


def test_personal_settings_say_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(config, "find", lambda asked, environ: None)
    assert main.run(["config"]) == 0
    out = capsys.readouterr().out
    assert "these are your own settings" in out and f"{tmp_path}/ksi/registry" in out
