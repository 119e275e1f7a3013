"""Constraint expressions of sbatch: does one ask for a feature, as a whole word?

Grammar from sbatch(1): `&` and `,` AND, `|` OR, parentheses, `[...]` alternatives of which each node has one,
`*N` node counts.
"""

import itertools
import re
from collections.abc import Callable
from enum import Enum

TOKEN = re.compile(r"[&|,()\[\]!]|[^&|,()\[\]!]+")
COUNT = re.compile(r"\*\d+$")


class Wish(Enum):
    """What an expression says about one feature."""

    YES = "yes"
    NO = "no"
    DEPENDS = "depends"  # on the features of the node that the job got


def wish(expression: str, feature: str) -> Wish:
    """Say whether a job with this constraint asks for the feature; never evaluates the text as code."""
    tokens = [word for token in TOKEN.findall(expression) if (word := token.strip())]
    if feature not in (COUNT.sub("", token) for token in tokens):
        return Wish.NO
    with_it = _Reader(tokens, lambda _word: True).value()
    without = _Reader(tokens, lambda word: word != feature).value()
    if not without:
        return Wish.YES
    negated = any(t == "!" and COUNT.sub("", n) == feature for t, n in itertools.pairwise(tokens))
    return Wish.NO if negated or not with_it else Wish.DEPENDS


def wanted(expression: str, feature: str, node_features: Callable[[], str]) -> bool:
    """Decide for this node; its features (a comma-separated list) are asked for only when they matter."""
    answer = wish(expression, feature)
    if answer is Wish.DEPENDS:
        return feature in node_features().split(",")
    return answer is Wish.YES


class _Reader:
    """Recursive descent over the tokens; unbalanced brackets read as if closed at the end."""

    def __init__(self, tokens: list[str], has: Callable[[str], bool]) -> None:
        self.tokens = list(reversed(tokens))
        self.has = has

    def value(self) -> bool:
        result = self._alternatives(within="")
        while self.tokens:  # text after a stray closing bracket
            self.tokens.pop()
            result = self._alternatives(within="") and result
        return result

    def _alternatives(self, within: str) -> bool:
        result = self._conjunction(within)
        while self._next_is("|") or (within == "[" and self._next_is("&,")):
            self.tokens.pop()
            result = self._conjunction(within) or result
        return result

    def _conjunction(self, within: str) -> bool:
        result = self._operand()
        while within != "[" and self._next_is("&,"):
            self.tokens.pop()
            result = self._operand() and result
        return result

    def _operand(self) -> bool:
        if not self.tokens or self._next_is("&|,)]"):
            return True
        token = self.tokens.pop()
        if token == "!":
            return not self._operand()
        if token in "([":
            result = self._alternatives(within=token)
            if self._next_is(")]"):
                self.tokens.pop()
            if self.tokens and COUNT.fullmatch(self.tokens[-1]):
                self.tokens.pop()
            return result
        return self.has(COUNT.sub("", token))

    def _next_is(self, characters: str) -> bool:
        return bool(self.tokens) and self.tokens[-1] in characters
