"""The text of ksi.yaml: the commented file for a new site, and changes that keep a site's comments."""

import re
from collections.abc import Mapping
from dataclasses import MISSING
from typing import Any

import yaml

from ksi_hooks.config import SETTINGS, as_yaml_value
from ksi_hooks.errors import ConfigError, UsageError
from ksi_hooks.render import render

TEMPLATE = "ksi.yaml.j2"
EXAMPLES = {"registry_dir": "/shared/ksi"}  # what has no default


def parse_assignment(text: str) -> tuple[str, object]:
    """Split `key=value`; the value is YAML. Raises UsageError."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"--set wants key=value, got: {text}", hint="--set registry_dir=/shared/ksi")
    try:
        return key.strip(), yaml.safe_load(value)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "not YAML"
        message = f"--set {key.strip()}: {problem}: {value}"
        raise UsageError(message, hint="quote the value for YAML") from error


def new_text(values: Mapping[str, object]) -> str:
    """Return the whole file: every setting with its meaning, those in values set, all others commented."""
    rows = [
        {"name": name, "help": of.metadata["help"], "is_set": name in values, "value": _shown(name, values)}
        for name, of in SETTINGS.items()
    ]
    return render(TEMPLATE, {"rows": rows})


def changed_text(text: str, values: Mapping[str, object]) -> str:
    """Return the file's text with these values; everything else stays as the administrator wrote it.

    Raises ConfigError when the file is written in a way that cannot be changed line by line.
    """
    before = yaml.safe_load(text) or {}
    for key, value in values.items():
        if key not in before or before[key] != value:
            text = _with_value(text, key, yaml_text(value))
    try:
        after = yaml.safe_load(text)
    except yaml.YAMLError:
        after = None
    if after != {**before, **values}:
        raise ConfigError(
            f"cannot change {', '.join(values)} without harm to the rest of the file",
            hint="edit the settings file by hand and run ksi install again",
        )
    return text


def yaml_text(value: object) -> str:
    """Return a value as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return str(text).removesuffix("...\n").strip()


def _shown(name: str, values: Mapping[str, object]) -> str:
    if name in values:
        return yaml_text(values[name])
    default: Any = SETTINGS[name].default
    return EXAMPLES[name] if default is MISSING else yaml_text(as_yaml_value(default))


def _with_value(text: str, key: str, value: str) -> str:
    line = f"{key}: {value}"
    if span := _span_of(text, key):
        return text[: span[0]] + line + text[span[1] :]
    commented = re.compile(rf"^#\s?{re.escape(key)}:.*$", re.MULTILINE)
    if commented.search(text):
        return commented.sub(lambda _match: line, text, count=1)
    return f"{text.rstrip()}\n{line}\n" if text.strip() else f"{line}\n"


def _span_of(text: str, key: str) -> tuple[int, int] | None:
    """Return where a top-level key and its value stand."""
    document = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(document, yaml.MappingNode):
        return None
    for name, value in document.value:
        if name.value == key:
            written = text[name.start_mark.index : value.end_mark.index]
            # A block list ends for YAML where the next key begins; comments in between belong to that key.
            trimmed = re.sub(r"(?:\n[ \t]*(?:#[^\n]*)?)+\Z", "", written)
            return name.start_mark.index, name.start_mark.index + len(trimmed)
    return None
