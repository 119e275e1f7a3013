"""Which settings file a command takes."""

import os
from pathlib import Path

from ksi_hooks import config


def planted(directory):
    file = directory / "etc/ksi/ksi.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("registry_dir: /r\n")
    return file


def test_option_before_variable_before_installation(tmp_path):
    installed = planted(tmp_path / "opt")
    environ = {"KSI_CONFIG": "/from/environ.yaml"}
    venv = tmp_path / "opt/venv"
    assert config.find(Path("/from/option.yaml"), environ, venv) == Path("/from/option.yaml")
    assert config.find(None, environ, venv) == Path("/from/environ.yaml")
    assert config.find(None, {}, venv) == installed


def test_a_relative_name_is_meant_from_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.find(Path("x.yaml"), {}) == tmp_path / "x.yaml"


def test_the_nearest_file_above_the_environment_counts(tmp_path):
    planted(tmp_path)
    near = planted(tmp_path / "opt/ksi")
    assert config.find(None, {}, tmp_path / "opt/ksi/lib/venv") == near
    assert config.find(None, {}, tmp_path / "other/venv") == tmp_path / "etc/ksi/ksi.yaml"


def test_a_file_that_a_stranger_planted_does_not_count(tmp_path, monkeypatch):
    planted(tmp_path)
    owner = (tmp_path / "etc/ksi/ksi.yaml").stat().st_uid
    if owner != 0:  # root's files count for everybody
        monkeypatch.setattr(config.os, "geteuid", lambda: owner + 1)
        assert config.find(None, {}, tmp_path) != tmp_path / "etc/ksi/ksi.yaml"
    else:
        os.chown(tmp_path / "etc/ksi/ksi.yaml", 12345, -1)
        assert config.find(None, {}, tmp_path) != tmp_path / "etc/ksi/ksi.yaml"
