"""References: those that point back are replaced, those that would be endless are kept."""

from __future__ import annotations

import json

import pytest

from dissectors.remoting.fastjson.codec import decode_json
from dissectors.remoting.fastjson.reader import EXPANSION_LIMIT, EXPANSION_TIMES


def resolved(text: str) -> object:
    found = decode_json(text.encode())
    assert found.problem is None
    return found.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{a:{x:1},b:{"$ref":"$.a"}}', {"a": {"x": 1}, "b": {"x": 1}}),
        ('{a:[{x:1}],b:{"$ref":"$.a[0]"}}', {"a": [{"x": 1}], "b": {"x": 1}}),
        ('[{x:[2]},{"$ref":"$[0]"},{"$ref":"$[0].x"}]', [{"x": [2]}, {"x": [2]}, [2]]),
        ('{a:{x:1},b:{"$ref":"$.a"},c:{"$ref":"$.b"}}', {k: {"x": 1} for k in "abc"}),
        ('{"a.b":{x:1},c:{"$ref":"$.a.b"}}', {"a.b": {"x": 1}, "c": {"x": 1}}),
        ('{"a.b":{x:1},c:{"$ref":"$.a\\\\.b"}}', {"a.b": {"x": 1}, "c": {"x": 1}}),
        ('{"10.0.0.9@1":{x:{}},c:{"$ref":"$.10.0.0.9@1.x"}}', {"10.0.0.9@1": {"x": {}}, "c": {}}),
    ],
)
def test_references_to_what_is_complete(text: str, value: object) -> None:
    assert resolved(text) == value


@pytest.mark.parametrize(
    "path",
    [
        "$",
        "..",
        "@",
        "$.a",
        "$.b",
        "$.z",
        "$.a[0]",
        "$.l[7]",
        "$.l[-1]",
        "$.l[",
        "$x",
        "",
        "$.",
        "$.l.x",
    ],
)
def test_references_that_are_kept(path: str) -> None:
    kept = {"$ref": path}
    value = resolved(f'{{l:[1],a:{{x:{{"$ref":"{path}"}}}},b:{{}}}}')
    assert value == {"l": [1], "a": {"x": kept}, "b": {}}


def test_two_forward_references_make_no_ring() -> None:
    value = resolved('{a:{p:{"$ref":"$.b"}},b:{q:{"$ref":"$.a"}}}')
    assert value == {"a": {"p": {"$ref": "$.b"}}, "b": {"q": {"p": {"$ref": "$.b"}}}}


def test_a_key_is_found_only_where_there_is_one() -> None:
    text = '{t:{{q:1}:1,{q:2}:2},u:{{"$ref":"$.t.null"}:3}}'
    value = resolved(text)
    assert isinstance(value, dict)
    assert value["u"] == [({"$ref": "$.t.null"}, 3)]


def test_more_than_a_reference_is_none() -> None:
    assert resolved('{a:{x:1},b:{"$ref":"$.a",c:1}}') == {
        "a": {"x": 1},
        "b": {"$ref": "$.a", "c": 1},
    }
    assert resolved('{a:{"$ref":5}}') == {"a": {"$ref": 5}}


def test_the_expansion_is_bounded() -> None:
    big = ",".join(["0"] * 1000)
    references = ",".join(['{"$ref":"$[0]"}'] * 300)
    text = f"[[{big}],{references}]"
    assert str(resolved(text)).count("$ref") == 300 - EXPANSION_TIMES * len(text) // 1001
    padded = f'[[{big}],{references},"{"x" * EXPANSION_LIMIT}"]'
    assert str(resolved(padded)).count("$ref") == 300 - EXPANSION_LIMIT // 1001


def test_what_doubles_and_doubles_stays_small() -> None:
    """Work follows the text: 700 characters would say 100,000 values."""

    def text(levels: int) -> str:
        twice = (",".join([f'{{"$ref":"$.x{n - 1}"}}'] * 2) for n in range(1, levels))
        doubled = ",".join(f"x{n}:[{refs}]" for n, refs in enumerate(twice, 1))
        return f"{{x0:[1,2,3,4,5,6,7,8],{doubled}}}"

    for levels in (8, 16, 32):
        value = resolved(text(levels))
        assert "$ref" in str(value)
        assert len(json.dumps(value)) < 40 * EXPANSION_TIMES * len(text(levels))
