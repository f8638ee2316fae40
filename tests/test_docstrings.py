"""Docstrings of functions are sentences in the imperative: section 10 of docs/architecture.md.

ruff's D401 finds verbs of other forms and knows no nouns: this finds a first word that is none.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.sources import ROOT, SOURCES, nodes_of

WORD = re.compile(r"[A-Z][a-z]+(?=[ ,;:.\n]|$)")
NO_VERBS = frozenset(
    re.findall(
        r"\w+",
        "A All An And Any As At Behind Both By Each Every Everything For From He How If "
        "In It Its Java Later More Most Neither No Nobody None Not Nothing Of On One Only "
        "Or She Some Something That The There These They This Those To Too True False We "
        "What When Where Whether Which Who Whose Why With You ",
    )
)
"""what sentences begin with that are not in the imperative; nouns are told by their form"""


def _is_imperative(text: str) -> bool:
    """Return whether a docstring may begin with a verb in the imperative.

    A word in -s is a plural or a third person, unless it is in -ss; what is followed by "of" is
    a noun.
    """
    word = WORD.match(text)
    if word is None or word[0] in NO_VERBS:
        return False
    is_other_form = word[0].endswith("s") and not word[0].endswith("ss")
    return not is_other_form and not re.match(r"\w+ (?:of|→) ", text)


def _functions() -> Iterator[tuple[str, str]]:
    """Yield place and docstring of all functions but properties and special methods.

    That of `__init__` says what its arguments are.
    """
    for path in SOURCES:
        for node in nodes_of(path):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            decorators = " ".join(ast.unparse(one) for one in node.decorator_list)
            text = ast.get_docstring(node)
            if node.name.startswith("__") or re.search(r"property\b|\.setter\b", decorators):
                continue
            if text:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", text


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    assert [
        f"{place}: {text.splitlines()[0]}"
        for place, text in _functions()
        if not _is_imperative(text)
    ] == []


def test_most_functions_are_looked_at() -> None:
    assert sum(1 for _ in _functions()) > 3000


@pytest.mark.parametrize(
    "text",
    [
        "Whether it is on.",
        "401: whether a group pulls.",
        "`host:port` of a server.",
        "Bytes of a frame.",
        "Lets go of it.",
        "Name of a code.",
        "(topic, queue) of a message.",
        "No more comes.",
    ],
)
def test_what_is_no_imperative_is_found(text: str) -> None:
    assert not _is_imperative(text)


@pytest.mark.parametrize("text", ["Return it.", "Pass over it.", "Return, in order, all.", "Stop."])
def test_imperatives_are_let_through(text: str) -> None:
    assert _is_imperative(text)
