"""The `ksi` command as a whole: one boundary for errors, one way to find settings."""

import os
import sys

import pytest

from ksi_hooks import __version__, config
from ksi_hooks.cli import list as listing
from ksi_hooks.cli import main
from ksi_hooks.errors import ConfigError, KsiError, LockTimeout


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch, tmp_path):
    monkeypatch.delenv("KSI_CONFIG", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(config, "find", lambda asked, environ: asked)


def failing(error):
    def raise_it(_args):
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (KsiError("it failed", hint="mend it"), 1),
        (ConfigError("bad", hint="x"), 78),
        (LockTimeout("busy"), 1),
    ],
)
def test_an_error_is_one_sentence_a_hint_and_its_status(monkeypatch, capsys, error, status):
    monkeypatch.setattr(listing, "main", failing(error))
    assert main.run(["list"]) == status
    hint = f"ksi: hint: {error.hint}\n" if error.hint else ""
    assert capsys.readouterr().err == f"ksi: error: {error}\n{hint}"


def test_a_bug_shows_no_traceback_but_says_where_it_is(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(main.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(listing, "main", failing(ZeroDivisionError("oops")))
    assert main.run(["list"]) == 1
    err = capsys.readouterr().err
    assert "ksi: error: internal error: ZeroDivisionError: oops\n" in err and "Traceback" not in err
    (kept,) = tmp_path.glob("ksi-traceback-*")
    assert str(kept) in err and "Traceback" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_what_the_system_refuses_is_no_bug(monkeypatch, capsys):
    monkeypatch.setattr(listing, "main", failing(OSError(28, "No space left on device", "/shared/x")))
    assert main.run(["list"]) == 1
    assert capsys.readouterr().err.startswith("ksi: error: No space left on device: /shared/x\n")


def test_debug_shows_the_traceback(monkeypatch, capsys):
    monkeypatch.setattr(listing, "main", failing(KsiError("it failed")))
    assert main.run(["list", "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setattr(listing, "main", failing(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        main.run(["--debug", "list"])


def test_an_interrupt_is_130_and_quiet(monkeypatch, capsys):
    monkeypatch.setattr(listing, "main", failing(KeyboardInterrupt()))
    assert main.run(["list"]) == 130
    assert capsys.readouterr().err == ""


def test_a_reader_that_has_gone_is_no_error(monkeypatch, capfd):
    reader, writer = os.pipe()
    os.close(reader)
    broken = os.fdopen(writer, "w")
    monkeypatch.setattr(sys, "stdout", broken)
    monkeypatch.setattr(listing, "main", lambda _args: print("x" * 10) or 0)
    assert main.run(["list"]) == 0
    broken.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "argv", [["--bogus"], ["list", "--bogus"], ["bogus"], ["show"], ["delete"], ["list", "--al"]]
)
def test_usage_errors_are_2(argv, capsys):
    assert main.run(argv) == 2
    assert capsys.readouterr().err.startswith("ksi: error: ")


def test_no_command_shows_the_help_on_stderr(capsys):
    assert main.run([]) == 2
    assert "examples:" in capsys.readouterr().err


@pytest.mark.parametrize("command", main.COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as done:
        main.run([command, "--help"])
    assert done.value.code == 0
    out = capsys.readouterr().out
    assert "examples:" in out and f"ksi {command}" in out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main.run(["--version"])
    assert capsys.readouterr().out == f"ksi {__version__}\n"


@pytest.mark.parametrize("argv", [["--config", "/nope/x.yaml", "list"], ["list", "--config", "/nope/x.yaml"]])
def test_a_named_settings_file_has_to_exist(argv, capsys):
    assert main.run(argv) == 78
    assert "/nope/x.yaml" in capsys.readouterr().err


def test_without_settings_a_user_gets_a_private_registry(tmp_path, capsys):
    previous = os.umask(0)
    try:
        assert main.run(["list"]) == 0
    finally:
        os.umask(previous)
    assert capsys.readouterr().out == "No clusters.\n"
    registry = tmp_path / "state/ksi/registry"
    assert registry.stat().st_mode & 0o777 == 0o700
    assert (registry / ".lock").stat().st_mode & 0o777 == 0o600
