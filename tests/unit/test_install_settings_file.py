"""Changing a site's ksi.yaml: the wanted lines and no others."""

import pytest
import yaml

from ksi_hooks.errors import ConfigError, UsageError
from ksi_hooks.install import settings_file

SITE = """\
# our site
registry_dir: /shared/ksi   # on the filer
images:   # loaded into each cluster
  - a:1
  - b:2

# ports agreed with the network people
port_range: 31000-31999
# feature: k8s
"""


def test_a_change_leaves_every_other_line_alone():
    changed = settings_file.changed_text(SITE, {"port_range": "30000-30100"})
    assert changed == SITE.replace("31000-31999", "30000-30100")


def test_a_commented_default_becomes_the_setting():
    changed = settings_file.changed_text(SITE, {"feature": "kube"})
    assert changed == SITE.replace("# feature: k8s", "feature: kube")


def test_a_block_list_is_replaced_and_the_comment_after_it_stays():
    changed = settings_file.changed_text(SITE, {"images": ["c:3"]})
    assert yaml.safe_load(changed)["images"] == ["c:3"]
    assert "# ports agreed with the network people\nport_range: 31000-31999" in changed


def test_a_comment_behind_a_value_stays():
    assert "registry_dir: /new   # on the filer" in settings_file.changed_text(SITE, {"registry_dir": "/new"})


def test_a_new_setting_is_appended():
    assert settings_file.changed_text(SITE, {"print": False}) == f"{SITE}print: false\n"


def test_an_equal_value_changes_nothing():
    assert settings_file.changed_text(SITE, {"images": ["a:1", "b:2"], "port_range": "31000-31999"}) == SITE


def test_install_with_values_equals_install_then_change():
    values = {
        "registry_dir": "/r",
        "port_range": "30000-30100",
        "tools_path": ["/a", "/b"],
        "node_image": None,
    }
    first = settings_file.new_text({"registry_dir": "/r"})
    assert settings_file.changed_text(first, values) == settings_file.new_text(values)


def test_an_empty_file_gets_its_lines():
    assert settings_file.changed_text("", {"registry_dir": "/r"}) == "registry_dir: /r\n"


def test_flow_style_is_changed_when_it_can_be_and_refused_when_not():
    text = "{registry_dir: /r, feature: k8s}\n"
    assert yaml.safe_load(settings_file.changed_text(text, {"feature": "x"})) == {
        "registry_dir": "/r",
        "feature": "x",
    }
    with pytest.raises(ConfigError, match="cannot change images"):
        settings_file.changed_text(text, {"images": ["a"]})


@pytest.mark.parametrize(
    "value", ["a b", "it's", 'a "b"', "ünï", "# no comment", "a: b", "- x", "%u", "null", "1", "-"]
)
def test_any_text_survives_the_file(value):
    text = settings_file.new_text({"registry_dir": value})
    assert yaml.safe_load(text) == {"registry_dir": value}


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("feature=k8s", ("feature", "k8s")),
        ("print=false", ("print", False)),
        ("create_timeout=90", ("create_timeout", 90)),
        ("tools_path=[/a, /b]", ("tools_path", ["/a", "/b"])),
        ("node_image=", ("node_image", None)),
        ("registry_dir=/a=b", ("registry_dir", "/a=b")),
        ('registry_dir="/a"', ("registry_dir", "/a")),
    ],
)
def test_assignments_are_yaml(text, parsed):
    assert settings_file.parse_assignment(text) == parsed


@pytest.mark.parametrize("text", ["feature", "=x", "images=[a"])
def test_bad_assignments_are_usage_errors(text):
    with pytest.raises(UsageError):
        settings_file.parse_assignment(text)
