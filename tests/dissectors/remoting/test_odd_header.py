"""Headers that are not as Java writes them: read as RocketMQ's own classes read them."""

from __future__ import annotations

import json
import time

import pytest

from dissectors.conversations.header_scan import scanned
from dissectors.conversations.header_view import view_of_command
from dissectors.remoting.framing.frame_decoder import is_wanted
from dissectors.remoting.header_codec import (
    JSON_TYPE,
    decode_header,
    decode_usual_header,
    is_header,
)
from dissectors.remoting.odd_header import odd_header_of
from tests.cases import in_one

from .odd_headers import Answer, headers, recorded

RECORDED = recorded()
ALIKE = ("code", "opaque", "flag", "version", "remark")

OTHERWISE = {
    '{"code":310 "opaque":1}': "only fastjson2 takes members without a comma between them",
    '{"code":11,"language":NaN,"opaque":7}': "NaN is null elsewhere",
    "{}": "a header without code and opaque is none",
}
"""What is not read as Java reads it, and why."""
NO_NOTE = {
    '{"code":11,"remark":{"a":1e400},"opaque":7}': "fastjson2 writes null",
}
"""What the libraries read differently, and is not noted."""
NOTED = {
    '{"code":11,"remark":{a:1},"opaque":7}': "fastjson2 takes it in a remark alone",
}
"""What is noted, and is no difference."""


def fields_of(answer: Answer | None) -> dict[str, str]:
    """The ext fields that have a value, JSON in them in one form."""
    fields = (answer.ext_fields or {}) if answer is not None else {}
    return {name: in_one_form(text) for name, text in fields.items() if text is not None}


def in_one_form(text: str) -> str:
    """A text, members of JSON in order: Java's maps have none."""
    if text[:1] != "{":
        return text
    return json.dumps(json.loads(text), sort_keys=True)


def of_both(text: str) -> tuple[Answer | None, Answer | None]:
    """What fastjson 1 and fastjson2 make of a header."""
    old, new = (
        None if one is None else one._replace(opaque=one.opaque or 0) for one in RECORDED[text][1:]
    )  # Java makes up an opaque that is not there
    return old, new


def test_all_are_recorded() -> None:
    assert list(RECORDED) == list(dict.fromkeys(headers()))


@in_one([text for text in RECORDED if text not in OTHERWISE])
def test_it_is_read_as_the_classes_read_it(text: str) -> None:
    old, new = of_both(text)
    wanted = old or new
    found = decode_header(JSON_TYPE, text.encode())
    if wanted is None:
        assert found is None
        return
    assert found is not None
    assert [getattr(found, name) for name in ALIKE] == [getattr(wanted, name) for name in ALIKE]
    ext_fields = {name: in_one_form(value) for name, value in found.ext_fields.items()}
    assert ext_fields == fields_of(wanted)
    languages = [one.language for one in (old, new) if one is not None and one.language]
    if languages and found.language:  # Java takes JAVA for none, and its null is what was sent
        assert found.language in languages


@in_one([text for text in RECORDED if text not in OTHERWISE])
def test_a_difference_is_noted(text: str) -> None:
    old, new = of_both(text)
    odd = odd_header_of(text.encode())
    if odd is None or text in NO_NOTE or text in NOTED:
        assert (odd is None and old is new is None) or text in NO_NOTE or text in NOTED
        return
    differ = old is None or new is None
    if old is not None and new is not None:
        differ = fields_of(old) != fields_of(new) or any(
            in_one_form(str(getattr(old, name))) != in_one_form(str(getattr(new, name)))
            for name in (*ALIKE, "language")
        )
    note = odd.note or ""
    if old is None:
        assert "through 5.3 (fastjson 1) rejects it" in note
    if new is None:
        assert "5.4 and later (fastjson2) rejects it" in note
    both = [part for part in note.split("; ") if "fastjson" in part]
    assert bool(both) == differ


@in_one(RECORDED)
def test_the_ways_of_reading_agree(text: str) -> None:
    """What is quick takes nothing that the other ways read otherwise, or not at all."""
    header = text.encode()
    whole = decode_header(JSON_TYPE, header)
    usual = decode_usual_header(JSON_TYPE, header)
    odd = odd_header_of(header)
    if usual is not None:
        assert odd is not None
        assert usual == odd.command == whole
        assert not odd.note
    quick = scanned(JSON_TYPE, header)
    if quick is not None:
        assert whole is not None
        head = view_of_command(whole)
        for name in ("code", "flag", "language", "opaque", "remark", "version"):
            assert getattr(quick, name) == getattr(head, name)
    if is_header(JSON_TYPE, header) or is_header(JSON_TYPE, header, tolerant=True):
        assert whole is not None


def test_the_header_of_a_client_in_dotnet() -> None:
    text = '{"Code":310,"ExtFields":{"a":"G"},"Language":"DOTNET","Opaque":1,"Version":453}'
    odd = odd_header_of(text.encode())
    assert odd is not None
    assert (odd.command.code, odd.command.opaque, odd.command.version) == (310, 1, 453)
    assert (odd.command.language, odd.command.ext_fields) == ("DOTNET", {"a": "G"})
    assert odd.note == (
        "RocketMQ 5.4 and later (fastjson2) ignores Code, ExtFields, Language, Opaque, Version"
    )


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('{"code":"1.5","opaque":1}', 'RocketMQ through 5.3 (fastjson 1) rejects it: code "1.5"'),
        ('{"code":1,"opaque":[1]}', "RocketMQ through 5.3 (fastjson 1) rejects it: opaque [1]"),
        ('{"code":1e10,"opaque":1}', (
            "code is '1410065408' and '2147483647' to RocketMQ through 5.3 (fastjson 1) and "
            "RocketMQ 5.4 and later (fastjson2)"
        )),
        ('{"code":1}', "no opaque: the receiver takes a number of its own"),
        ('{"code":1,"opaque":1,"language":"Java"}', None),
    ],
)  # fmt: skip
def test_what_a_note_says(text: str, note: str | None) -> None:
    odd = odd_header_of(text.encode())
    assert odd is not None
    assert odd.note == note


@pytest.mark.parametrize(
    "header",
    [
        '{"Code":34,"Opaque":1}', '{"code": 34 ,"opaque":1}', '{"code":"34","opaque":1}',
        "{'code':'34'}", '{"CODE":34.0}', '{"opaque":1,"co_de":34}', '{code:34}',
    ],
)  # fmt: skip
def test_the_bodies_that_a_row_needs_are_kept(header: str) -> None:
    assert is_wanted(JSON_TYPE, header.encode(), 100)
    assert not is_wanted(JSON_TYPE, header.replace("34", "35").encode(), 100)


def test_work_is_linear() -> None:
    """Headers of a megabyte that are nearly one: each is looked at some times, not many."""
    began = time.process_time()
    for unit in ("[", "{", '"', "'", "\\", ",", "/*", "{a:", '{"a":', "[1,", " ", "\0", '"a":1,'):
        odd_header_of(b'{"code":1,"opaque":1,"x":' + unit.encode() * (1 << 18))
    for number in (b"9" * (1 << 22), b"9" * (1 << 22) + b".5", b"1e" + b"9" * (1 << 22)):
        for begin, end in ((b"", b""), (b'"', b'"'), (b"[", b"]")):
            header = b'{"code":1,"opaque":%b%b%b}' % (begin, number, end)
            assert odd_header_of(header) is None
            odd_header_of(header.replace(b'"opaque"', b'"opaque":1,"remark"'))
    assert time.process_time() - began < 60
