"""Facts of the protocol have one spelling, in `dissectors.remoting`: second ones are found here.

What can be told from the syntax tree is: the ordinal of a release as a bare number, a code as a
bare number, the letters and the long names of the send headers, the name of a topic of RocketMQ.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

import pytest

from dissectors.remoting import code_sets, topic_names
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.headers import header_fields
from dissectors.remoting.retries import RETRIED_SINCE, retry_codes_of
from dissectors.remoting.versions import V5_3_0, V5_3_1, VERSIONS, ordinal_of
from tests.sources import ROOT, SOURCES, nodes_of

FACTS = ROOT / "dissectors" / "remoting"
PLACES = (
    FACTS / "versions.py",
    FACTS / "codes.py",
    FACTS / "topic_names.py",
    *(FACTS / "header_tables").glob("*.py"),
    *(FACTS / "operation_tables").glob("*.py"),
)
"""where the facts are spelled"""
KNOWING = [
    path
    for path in SOURCES
    if path not in PLACES and ROOT / "dissectors" / "tcp" not in path.parents
]
"""modules that know the protocol"""

OLDEST = ordinal_of("4.3.0") or 0
"""ordinals of earlier releases are below 256, as many other numbers are"""
ORDINALS = frozenset(range(OLDEST, len(VERSIONS)))
NAMES = {
    **{code.name: int(code) for code in RequestCode},
    **{code.name: int(code) for code in ResponseCode},
}
_CODES = ("code", "request_code", "response_code")
_OTHERS = frozenset(NAMES.values()) - {int(ResponseCode.SUCCESS)}
"""codes beside 0, which everybody knows"""
NAMED_SETS = {
    name: value for name, value in vars(code_sets).items() if isinstance(value, frozenset)
}


def _numbers_in(node: ast.AST) -> list[int]:
    """Return the integers of a literal, of a collection of them and of a call around it."""
    if isinstance(node, ast.Call) and node.args:
        return _numbers_in(node.args[0])
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return [n for element in node.elts for n in _numbers_in(element)]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return [node.value]
    return []


def _texts_in(node: ast.AST) -> list[str]:
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return []
    found: list[str] = []
    for element in node.elts:
        inner = element.value if isinstance(element, ast.Starred) else element
        found += _texts_in(inner)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            found.append(inner.value)
    return found


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def _bindings(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.AST, int]]:
    """Return what a name is set to, compared with or called with: name, value, line."""
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield _name_of(target), node.value, node.lineno
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield _name_of(node.target), node.value, node.lineno
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value, node.value.lineno
        elif isinstance(node, ast.arguments):
            named = [*node.posonlyargs, *node.args]
            defaults = zip(reversed(named), reversed(node.defaults), strict=False)
            for argument, default in defaults:
                yield argument.arg, default, argument.lineno
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for one in sides:
                for other in sides:
                    if one is not other and _name_of(one):
                        yield _name_of(one), other, node.lineno


def second_spellings(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Return what is spelled in a module although `dissectors.remoting` has a name for it."""
    for name, value, line in _bindings(nodes):
        numbers = _numbers_in(value)
        plain = name.lower().strip("_")
        if ("version" in plain or f"{plain.upper()}" in VERSIONS) and ORDINALS & set(numbers):
            yield f"{line}: {name} with the ordinal of a release as a number"
        constant = name.strip("_")
        if constant in NAMES and numbers == [NAMES[constant]]:
            yield f"{line}: {name} with its code as a number"
        if plain in _CODES and _OTHERS & set(numbers):
            yield f"{line}: {name} with a code as a number"
    for node in nodes:
        yield from _spelled_sets(node)
        yield from _spelled_fields(node)
        if isinstance(node, ast.Constant) and node.value in TOPICS:
            yield f"{node.lineno}: the name of a topic"


def _spelled_sets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        for name, codes in NAMED_SETS.items():
            if len(node.elts) == len(codes) and set(_numbers_in(node)) == codes:
                yield f"{node.lineno}: the codes of {name} as numbers"


TOPICS = frozenset(
    value for name, value in vars(topic_names).items() if isinstance(value, str) and name.isupper()
) | frozenset(topic_names.SYSTEM_TOPICS)
SEND_V1 = frozenset(field.wire for field in header_fields("SendMessageRequestHeader"))
SEND_V2 = frozenset("abcdefghijklmn")


def _spelled_fields(node: ast.AST) -> Iterator[str]:
    texts = set(_texts_in(node))
    if len(texts) >= 5 and (texts <= SEND_V1 or texts <= SEND_V2):
        yield f"{node.lineno}: field names of a send header"  # type: ignore[attr-defined]
    key: ast.AST | None = None
    if isinstance(node, ast.Call) and _name_of(node.func) == "get" and node.args:
        bound = isinstance(node.func, ast.Attribute) and "fields" not in _name_of(node.func.value)
        key = None if bound else node.args[0]
    elif isinstance(node, ast.Subscript) and "fields" in _name_of(node.value):
        key = node.slice
    if isinstance(key, ast.Constant) and key.value in SEND_V2:
        yield f"{node.lineno}: a letter of the send header"  # type: ignore[attr-defined]


@pytest.mark.slow
def test_facts_are_spelled_once() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{spelling}"
        for path in KNOWING
        for spelling in second_spellings(nodes_of(path))
    ] == []


@pytest.mark.parametrize(
    "source",
    [
        "V5_0_0 = 413",
        "NEWEST_VERSION: Final = 479",
        "def f(version: int = 479): ...",
        "ok = header.version >= 453",
        "f(client_version=401)",
        "SEND_BATCH_MESSAGE: Final = 320",
        "ok = command.code == 34",
        "ok = response_code in (17, 14, 1)",
        "STORED = frozenset((0, 10, 11, 12))",
        "_PULLS = (200050, 361, 11, 200070)",
        "topic = get('b')",
        "topic = command.ext_fields['b']",
        "names = ('a', 'b', 'c', 'd', 'e')",
        "names = (*('topic', 'queueId', 'sysFlag'), *('flag', 'properties'))",
        "topic = 'TBW102'",
        "topic = f'%DLQ%{group}'",
    ],
)
def test_a_second_spelling_is_found(source: str) -> None:
    assert list(second_spellings(tuple(ast.walk(ast.parse(source)))))


@pytest.mark.parametrize(
    "source",
    [
        "item.get('b')",
        "limit = 413",
        "ok = code == 0",
        "version = 4",
        "x = get('topic')",
        "pair = (10, 12)",
    ],
)
def test_other_numbers_and_texts_are_none(source: str) -> None:
    assert list(second_spellings(tuple(ast.walk(ast.parse(source))))) == []


def test_codes_that_are_retried_grow_with_the_client() -> None:
    old, busy, newest = (retry_codes_of(version) for version in (0, V5_3_0, V5_3_1))
    assert old == {1, 14, 16, 17, 204, 205}
    assert busy == old | {2}
    assert newest == busy | {1500} == RETRIED_SINCE.keys()


def test_sets_of_codes() -> None:
    assert {10, 310, 320, 324, 325} == code_sets.SENDS
    assert {0, 10, 11, 12} == code_sets.STORED
    assert code_sets.REPLIES < code_sets.SENDS
