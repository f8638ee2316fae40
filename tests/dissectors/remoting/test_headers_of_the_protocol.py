"""Tables of header fields against the protocol and real traffic."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.grpc.command import CallCommand
from dissectors.remoting.code_names import OPERATIONS, operation_of
from dissectors.remoting.header_tables import FieldType, HeaderField
from dissectors.remoting.headers import (
    HEADERS,
    HOOK_FIELDS,
    encode_ext_fields,
    header_fields,
    header_name,
    typed_header,
)

from .protocol_facts import rows, table


def test_every_operation_names_a_known_class() -> None:
    for code, operation in OPERATIONS.items():
        for name in (operation.request_header, operation.response_header):
            assert name is None or name in HEADERS, code


def test_field_names_and_wire_names_are_unique_in_each_class() -> None:
    for name, fields in HEADERS.items():
        assert len({field.name for field in fields}) == len(fields), name
        assert len({field.wire for field in fields}) == len(fields), name


def test_unknown_classes_have_no_fields() -> None:
    assert header_fields("NoSuchHeader") == ()
    assert header_name(9999, False) is None


_TYPES = {
    "String": FieldType.STRING,
    "Integer": FieldType.INT,
    "int": FieldType.INT,
    "Long": FieldType.LONG,
    "long": FieldType.LONG,
    "Boolean": FieldType.BOOLEAN,
    "boolean": FieldType.BOOLEAN,
    "BoundaryType": FieldType.BOUNDARY,
}


def _facts_of(row: dict[str, object]) -> list[tuple[str, FieldType, bool]]:
    fields = row["fields"]
    assert isinstance(fields, list)
    return [(field["name"], _TYPES[field["java_type"]], field["not_null"]) for field in fields]


LATER_FACTS = {
    # required in 5.4.0 and in the facts, no longer in 5.5.0
    ("GetAllTopicConfigResponseHeader", "totalTopicNum"): ("totalTopicNum", FieldType.INT, False),
}


def _ours(fields: tuple[HeaderField, ...]) -> list[tuple[str, FieldType, bool]]:
    return [(field.wire, field.type, field.required) for field in fields]


@pytest.mark.parametrize("name", ["headers.json", "headers_4x.json"])
def test_headers_are_those_of_the_protocol(name: str) -> None:
    for row in rows(name):
        header = str(row["class"])
        expected = [LATER_FACTS.get((header, field[0]), field) for field in _facts_of(row)]
        own = {field.wire: field for field in header_fields(header)}
        for field in expected:
            assert (field[0], own[field[0]].type, own[field[0]].required) == field, header
        if name == "headers.json":
            # The other fields are of other releases, and say so; the order is that of the class.
            known = {field[0] for field in expected}
            assert all(own[wire].since or own[wire].until for wire in own.keys() - known), header
            assert [one for one in _ours(header_fields(header)) if one[0] in known] == expected


def test_header_classes_serve_the_codes_of_the_protocol() -> None:
    for row in rows("headers.json"):
        codes = row["request_codes"]
        assert isinstance(codes, list)
        for code in codes:
            operation = operation_of(code)
            assert operation is not None
            assert row["class"] in (operation.request_header, operation.response_header)


def test_letters_are_those_of_the_protocol() -> None:
    fields = table("send_v2_fields.json")["fields"]
    assert isinstance(fields, list)
    ours = [field for field in header_fields("SendMessageRequestHeaderV2") if len(field.wire) == 1]
    assert [(field.wire, field.name) for field in ours] == [
        (field["short"], field["long"]) for field in fields
    ]


def test_frames_of_the_java_classes() -> None:
    frames = table("vectors.json")["frames"]
    assert isinstance(frames, list)
    seen = 0
    for frame in frames:
        data = bytes.fromhex(frame["hex"])
        if data[4] != 0:
            continue
        header = json.loads(data[8 : 8 + int.from_bytes(data[5:8])])
        wire = header.get("extFields", {})
        response = bool(header["flag"] & 1)
        typed = typed_header(105 if response else header["code"], response, wire)
        assert typed.problems == ()
        assert (
            encode_ext_fields(105 if response else header["code"], response, typed.fields) == wire
        )
        seen += 1
    assert seen == 6


SAMPLES = sorted((Path(__file__).resolve().parents[3] / "samples").glob("*.pcap"))


INCOMPLETE = ("field-missing-4x", "field-missing-5x")
"""Samples of a client that leaves out required fields."""
OTHER_FIELDS = {"grpc-wrong-port-5x": {"queueId"}}
"""Sample -> fields that its client sends with requests whose header class has none of the name."""


@pytest.mark.parametrize("capture", SAMPLES, ids=lambda path: path.stem)
def test_commands_of_real_clusters(capture: Path) -> None:
    """What clients and brokers of 4.x and 5.x wrote is complete, typed, and comes back the same."""
    for batch in Decode([str(capture)]).exchanges():
        for exchange in batch:
            if exchange.request is None or isinstance(exchange.request.command, CallCommand):
                continue
            asked = exchange.request.command
            answered = exchange.response.command if exchange.response else None
            for command, response in ((asked, False), (answered, True)):
                if command is None:
                    continue
                wire = command.ext_fields or {}
                header = typed_header(asked.code, response, wire)
                missing = [text for text in header.problems if text.endswith(" is missing")]
                assert list(header.problems) == (missing if capture.stem in INCOMPLETE else [])
                assert encode_ext_fields(asked.code, response, header.fields) == wire
                known = {field.wire for field in header_fields(header.name or "")}
                other = OTHER_FIELDS.get(capture.stem, set())
                assert set(wire) <= known | HOOK_FIELDS.keys() | other


@pytest.mark.parametrize(
    ("code", "wire", "fields"),
    [
        (2004, {"READ_AHEAD_MODE": "1"}, {"readAheadMode": 1}),
        (5001, {"E_T": "R"}, {"timerEngineType": "R"}),
    ],
)
def test_requests_without_a_header_class(
    code: int, wire: dict[str, str], fields: dict[str, object]
) -> None:
    typed = typed_header(code, False, wire)
    assert (typed.name, typed.fields, typed.problems) == (None, fields, ())
    assert encode_ext_fields(code, False, fields) == wire
    assert typed_header(code, False, {}).problems != ()
