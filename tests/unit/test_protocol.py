"""The lines that slurmstepd reads: what is emitted is what is meant, or an error."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksi_hooks.protocol import MAX_LINE_BYTES, export_line, print_line

NAMES = st.text(string.ascii_letters + "_", min_size=1, max_size=20)


def as_slurmstepd(output):
    """Parse as slurmstepd does: cut at LF, verbs in column 0, the value all after the first `=`."""
    found = {}
    for line in output.split("\n"):
        if line.startswith("export ") and "=" in line:
            name, _, value = line.removeprefix("export ").partition("=")
            found[name] = value
    return found


@given(NAMES, st.text(max_size=300))
def test_kb_01_a_value_arrives_unchanged_or_not_at_all(name, value):
    try:
        line = export_line(name, value)
    except (ValueError, UnicodeEncodeError):
        assert set(value) & set("\n\r\0") or not value.isprintable() or len(value) > 200
        return
    assert as_slurmstepd(line) == {name: value}


@pytest.mark.parametrize("value", ["tok\nexport LD_PRELOAD=/tmp/x.so", "a\r", "\0", "x" * MAX_LINE_BYTES])
def test_kb_01_values_that_slurmstepd_would_misread(value):
    with pytest.raises(ValueError, match="K8S_TOKEN"):
        export_line("K8S_TOKEN", value)


@pytest.mark.parametrize(
    "value", ["", " leading", "trailing  ", "a=b", "it's", '"quoted"', "$HOME `x`", "ünï"]
)
def test_kb_01_value_is_taken_literally(value):
    assert export_line("A", value) == f"export A={value}\n"


@pytest.mark.parametrize("name", ["", "A B", "A=B", "1A", "A\n", "É", "A-B"])
def test_names_that_are_none(name):
    with pytest.raises(ValueError, match="not the name of a variable"):
        export_line(name, "x")


@given(st.text(max_size=5000))
def test_print_is_one_short_line_or_an_error(text):
    try:
        line = print_line(text)
    except ValueError:
        assert not "".join(c for c in text if c.isprintable()).strip()
        return
    assert line.startswith("print ")
    assert line.removeprefix("print ").strip()
    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert "\r" not in line
    assert len(line.encode()) <= MAX_LINE_BYTES + 1


@pytest.mark.parametrize("text", ["", "  ", "\n\t"])
def test_empty_print_makes_slurmstepd_compute_a_wrong_length(text):
    with pytest.raises(ValueError, match="empty"):
        print_line(text)
