"""Settings: all problems at once, defaults that the commented file tells truly."""

from dataclasses import MISSING
from pathlib import Path

import pytest
import yaml

from ksi_hooks import config
from ksi_hooks.config import SETTINGS, Settings
from ksi_hooks.errors import ConfigError
from ksi_hooks.install import settings_file

TOP = Path(__file__).parents[2]


def test_all_problems_are_told_at_once():
    raw = {
        "registry_dir": "relative",
        "feture": "x",
        "port_range": "80-90",
        "print": "yes please",
        "lock_timeout": -1,
    }
    with pytest.raises(ConfigError) as caught:
        config.parse(raw, "/etc/ksi/ksi.yaml")
    message = str(caught.value)
    assert message.startswith("/etc/ksi/ksi.yaml: ")
    for part in (
        "feture: unknown setting, perhaps feature",
        "registry_dir: ",
        "port_range: ",
        "print: ",
        "lock_timeout: ",
    ):
        assert part in message
    assert caught.value.exit_status == 78


def test_registry_dir_is_the_only_required_setting():
    with pytest.raises(ConfigError, match="registry_dir: required"):
        config.parse({}, "x")
    assert config.parse({"registry_dir": "/r"}, "x") == Settings(registry_dir=Path("/r"))


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\t- x"])
def test_broken_yaml_names_file_and_line(tmp_path, text):
    file = tmp_path / "ksi.yaml"
    file.write_text(f"registry_dir: /r\n{text}\n")
    with pytest.raises(ConfigError, match=r"ksi\.yaml: line \d"):
        config.load(file)


def test_a_file_that_is_not_a_mapping_is_refused(tmp_path):
    file = tmp_path / "ksi.yaml"
    file.write_text("- one\n- two\n")
    with pytest.raises(ConfigError, match="wants `key: value` lines, got list"):
        config.load(file)


@pytest.mark.parametrize("run_dir", ["/var/lib/ksi/run", "/var/%u/run", "run/%u", "/a/%u/%u", "/a/../b/%u"])
def test_run_dir_is_one_directory_per_user(run_dir):
    with pytest.raises(ConfigError, match="run_dir: "):
        config.parse({"registry_dir": "/r", "run_dir": run_dir}, "x")


def test_every_default_survives_its_own_check():
    raw = {
        name: config.as_yaml_value(setting.default)
        for name, setting in SETTINGS.items()
        if setting.default is not MISSING
    }
    assert config.parse({"registry_dir": "/r", **raw}, "x") == Settings(registry_dir=Path("/r"))


def test_the_commented_file_tells_every_setting_and_its_default():
    text = settings_file.new_text({})
    assert yaml.safe_load(text) is None
    uncommented = "\n".join(
        line[2:]
        for line in text.splitlines()
        if line.startswith("# ") and line[2:].partition(":")[0] in SETTINGS
    )
    told = yaml.safe_load(uncommented)
    assert set(told) == set(SETTINGS)
    assert config.parse(told, "x") == Settings(registry_dir=Path("/shared/ksi"))


def test_the_file_in_etc_is_what_config_defaults_prints():
    assert (TOP / "etc/ksi.yaml").read_text() == settings_file.new_text({})


def test_every_setting_has_one_line_of_help():
    for name, setting in SETTINGS.items():
        about = setting.metadata["help"]
        assert about.endswith(".") and "\n" not in about and len(about) <= 118, name


def test_personal_settings_lie_below_the_users_state_directory():
    settings = config.personal({"XDG_STATE_HOME": "/home/me/state"})
    assert settings.registry_dir == Path("/home/me/state/ksi/registry")
    assert settings.user_run_dir(1000) == Path("/home/me/state/ksi/run/1000")
