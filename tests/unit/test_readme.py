"""The README keeps up with the code: settings, variables, commands."""

import json
from dataclasses import MISSING
from pathlib import Path

from ksi_hooks import config
from ksi_hooks.cli.main import COMMANDS
from ksi_hooks.config import Settings
from ksi_hooks.lifecycle import exports
from ksi_hooks.proc import Process
from ksi_hooks.registry.record import Record, State

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def default_text(setting):
    if setting.default is MISSING:
        return "required"
    value = config.as_yaml_value(setting.default)
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")


def test_every_setting_stands_in_the_table_with_its_default_and_meaning():
    for name, setting in config.SETTINGS.items():
        row = f"| `{name}` | `{default_text(setting)}` | {setting.metadata['help']} |"
        assert row in README, f"README.md lacks the row: {row}"


def test_every_exported_variable_is_explained(tmp_path):
    (tmp_path / "token").write_text("t")
    record = Record(
        cluster="ksi-7-abcde",
        node="n1",
        boot_id="",
        job_id=7,
        restart=0,
        port=30000,
        run_dir=tmp_path,
        creator=Process(1, 1),
        held_by_creator=False,
        state=State.READY,
        created=0,
        changed=0,
        uid=0,
        api="https://127.0.0.1:1",
    )
    found = exports.variables(record, Settings(registry_dir=tmp_path), secrets_dir=tmp_path, no_proxy=None)
    for name in found:
        assert f"`{name}`" in README, f"README.md does not explain {name}"


def test_every_command_is_named():
    for command in COMMANDS:
        assert f"ksi {command}" in README, f"README.md does not name ksi {command}"
