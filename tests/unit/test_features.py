"""Constraint expressions: the feature as a whole word, never evaluated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksi_hooks.slurm.features import Wish, wanted, wish

YES = [
    "k8s",
    "gpu&k8s",
    "gpu,k8s",
    "k8s*2&gpu",
    "k8s*4",
    "(a|b)&k8s",
    "k8s&(a|b)",
    "(k8s)",
    " k8s ",
    "gpu & k8s",
    "[rack1*2&rack2*4]&k8s",
    "(k8s|k8s)",
    "$(touch T/pwn)&k8s",
]
NO = [
    "nok8s",
    "k8s-legacy",
    "k8s.v2",
    "gpu_k8s",
    "K8S",
    "!k8s",
    "gpu&!k8s",
    "(null)",
    "",
    "k8s_",
    "k8",
    "gpu",
    "&",
    "][)(",
    "k8s2*3",
]
BY_NODE = ["gpu|k8s", "k8s|big", "[k8s*1&gpu*1]", "[k8s|gpu]", "[rack1*2&k8s]", "(k8s&a)|b", "a&(k8s|b)"]


@pytest.mark.parametrize("expression", YES)
def test_kb_09_yes(expression):
    assert wish(expression, "k8s") is Wish.YES


@pytest.mark.parametrize("expression", NO)
def test_kb_09_no(expression):
    assert wish(expression, "k8s") is Wish.NO


@pytest.mark.parametrize("expression", BY_NODE)
@pytest.mark.parametrize(
    ("features", "answer"), [("gpu", False), ("gpu,k8s", True), ("", False), ("k8s.v2", False)]
)
def test_kb_09_the_node_decides(expression, features, answer):
    assert wish(expression, "k8s") is Wish.DEPENDS
    assert wanted(expression, "k8s", lambda: features) is answer


@pytest.mark.parametrize("expression", YES + NO)
def test_node_is_not_asked_when_it_does_not_matter(expression):
    def ask():
        raise AssertionError("asked")

    assert wanted(expression, "k8s", ask) is (expression in YES)


@given(st.text("k8sgpu&|,()[]!*12 .-", max_size=60))
def test_any_text_has_an_answer(expression):
    assert wish(expression, "k8s") in Wish


@given(st.lists(st.sampled_from(["k8s", "gpu", "big.mem", "nok8s"]), min_size=1, max_size=6))
def test_conjunction_asks_for_what_it_names(words):
    for separator in "&,":
        answer = wish(separator.join(words), "k8s")
        assert answer is (Wish.YES if "k8s" in words else Wish.NO)


def test_deep_nesting_is_no_danger():
    assert wish("(" * 300 + "k8s" + ")" * 300, "k8s") is Wish.YES
