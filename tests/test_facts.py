"""Facts of the protocol have one spelling, in `dissectors.remoting`: second ones are found here.

What can be told from the text is: the ordinal of a release as a bare number, a code as a bare
number, the letters and the long names of the send headers, the name of a topic of RocketMQ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest

from dissectors.remoting import code_sets, topic_names
from dissectors.remoting.code_sets import RETRIED_SINCE, retry_codes_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.headers import header_fields
from dissectors.remoting.versions import V5_3_0, V5_3_1, VERSIONS, ordinal_of
from tests.sources import ROOT, SOURCES

FACTS = ROOT / "dissectors" / "remoting"
PLACES = (
    FACTS / "versions.py",
    FACTS / "codes.py",
    FACTS / "topic_names.py",
    FACTS / "header_tables.py",
    FACTS / "operation_tables.py",
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
NAMES = {code.name: int(code) for code in (*RequestCode, *ResponseCode)}
CODES = frozenset(NAMES.values()) - {int(ResponseCode.SUCCESS)}
"""codes beside 0, which everybody knows"""
NAMED_SETS = {
    name: value for name, value in vars(code_sets).items() if isinstance(value, frozenset)
}
TOPICS = frozenset(
    value for name, value in vars(topic_names).items() if isinstance(value, str) and name.isupper()
) | frozenset(topic_names.SYSTEM_TOPICS)
SEND_V1 = frozenset(field.wire for field in header_fields("SendMessageRequestHeader"))
SEND_V2 = frozenset("abcdefghijklmn")


def _any_of(words: Iterable[object]) -> str:
    return "|".join(re.escape(str(word)) for word in words)


_ORDINAL = rf"\b(?:{_any_of(range(OLDEST, len(VERSIONS)))})\b"
_CODE = rf"\b(?:{_any_of(sorted(CODES))})\b(?!\s*<<)"
_AMONG = r"(?:frozenset\()?[(\[{]*(?:\d+,\s*)*"
"""what may stand between an operator and a number: the start of a collection, other numbers"""
_IS = rf"\s*(?::\s*\w+\s*)?(?:[=!<>]=|[=<>]|\b(?:not )?in\b)\s*{_AMONG}"
_COMPARED = r"\s*(?:[=!<>]=|[<>])\s*(?:\w+\.)*"
_VERSION = r"(?:[Vv](?i:ersion)\w*|\bV\d_\d_\d)"
_CODE_OF = r"(?:\b|_)[Cc](?i:ode)\b"
_SPELLINGS = {
    "the ordinal of a release as a number": (
        rf"{_VERSION}{_IS}{_ORDINAL}|(?=\d){_ORDINAL}{_COMPARED}{_VERSION}"
    ),
    "a code as a number": rf"{_CODE_OF}{_IS}{_CODE}|(?=\d){_CODE}{_COMPARED}{_CODE_OF}",
    "a letter of the send header": (
        r"""(?:(?<![\w.])get\(|fields\w*\.get\(|fields\w*\[)["'][a-n]["']"""
    ),
    "the name of a topic": rf"""["'](?:{_any_of(TOPICS)})(?:["']|\{{)""",
}
_NAMED = re.compile(r"\b([A-Z]\w+)\s*(?::\s*\w+\s*)?=\s*(\d+)\b")
_NUMBERS = re.compile(r"(?:(?<=\bin )|(?<![a-z] ))[(\[{](\d+(?:,\s*\d+)+),?\s*[)\]}]")
_WORDS = re.compile(r"""["']\w+["'](?:[,\s()*]+["']\w+["']){4,}""")


def second_spellings(text: str) -> Iterator[str]:
    """Return what is spelled in a module although `dissectors.remoting` has a name for it."""
    found: list[tuple[int, str]] = []
    for what, pattern in _SPELLINGS.items():
        found += [(match.start(), what) for match in re.finditer(pattern, text)]
    for match in _NAMED.finditer(text):
        if NAMES.get(match[1]) == int(match[2]):
            found.append((match.start(), f"{match[1]} with its code as a number"))
    for match in _NUMBERS.finditer(text):
        numbers = [int(number) for number in match[1].split(",")]
        for name, codes in NAMED_SETS.items():
            if len(numbers) == len(codes) and codes == set(numbers):
                found.append((match.start(), f"the codes of {name} as numbers"))
    for match in _WORDS.finditer(text):
        words = set(re.findall(r"\w+", match[0]))
        if words <= SEND_V1 or words <= SEND_V2:
            found.append((match.start(), "field names of a send header"))
    for place, what in found:
        yield f"{text.count(chr(10), 0, place) + 1}: {what}"


def test_facts_are_spelled_once() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{spelling}"
        for path in KNOWING
        for spelling in second_spellings(path.read_text())
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
    assert list(second_spellings(source))


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
    assert list(second_spellings(source)) == []


def test_codes_that_are_retried_grow_with_the_client() -> None:
    old, busy, newest = (retry_codes_of(version) for version in (0, V5_3_0, V5_3_1))
    assert old == {1, 14, 16, 17, 204, 205}
    assert busy == old | {2}
    assert newest == busy | {1500} == RETRIED_SINCE.keys()


def test_sets_of_codes() -> None:
    assert {10, 310, 320, 324, 325} == code_sets.SENDS
    assert {0, 10, 11, 12} == code_sets.STORED
    assert code_sets.REPLIES < code_sets.SENDS
