"""Typed ext fields: both directions, what is missing or does not parse, secrets, and the tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.code_names import OPERATIONS
from dissectors.remoting.header_tables import FieldType
from dissectors.remoting.headers import (
    HEADERS,
    HOOK_FIELDS,
    SECRET_FIELDS,
    TypedHeader,
    encode_ext_fields,
    header_fields,
    header_name,
    mask_secret,
    typed_header,
)

SEND_V2 = {
    "a": "PG",
    "b": "TopicTest",
    "c": "TBW102",
    "d": "4",
    "e": "1",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "UNIQ_KEY\x017F0000010D9C18B4AAC27B1C3D5C0000\x02WAIT\x01true\x02",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "broker-a",
}
SEND_V2_TYPED = {
    "producerGroup": "PG",
    "topic": "TopicTest",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": 4,
    "queueId": 1,
    "sysFlag": 0,
    "bornTimestamp": 1700000000000,
    "flag": 0,
    "properties": "UNIQ_KEY\x017F0000010D9C18B4AAC27B1C3D5C0000\x02WAIT\x01true\x02",
    "reconsumeTimes": 0,
    "unitMode": False,
    "batch": False,
    "brokerName": "broker-a",
}
POP = {
    "consumerGroup": "GID",
    "topic": "TopicTest",
    "queueId": "-1",
    "maxMsgNums": "32",
    "invisibleTime": "60000",
    "pollTime": "15000",
    "bornTime": "1700000000000",
    "initMode": "1",
    "order": "false",
}
POP_TYPED = {
    **POP,
    "queueId": -1,
    "maxMsgNums": 32,
    "invisibleTime": 60000,
    "pollTime": 15000,
    "bornTime": 1700000000000,
    "initMode": 1,
    "order": False,
}
PULLED = {
    "suggestWhichBrokerId": "0",
    "nextBeginOffset": "8",
    "minOffset": "0",
    "maxOffset": "9223372036854775807",
}
PULLED_TYPED = {key: int(text) for key, text in PULLED.items()}


def _parts_of(header: TypedHeader) -> tuple[object, ...]:
    return header.name, header.fields, header.problems


@pytest.mark.parametrize(
    ("code", "response", "name", "wire", "typed"),
    [
        (105, False, "GetRouteInfoRequestHeader", {"topic": "T"}, {"topic": "T"}),
        (310, False, "SendMessageRequestHeaderV2", SEND_V2, SEND_V2_TYPED),
        (320, False, "SendMessageRequestHeaderV2", SEND_V2, SEND_V2_TYPED),
        (200050, False, "PopMessageRequestHeader", POP, POP_TYPED),
        (11, True, "PullMessageResponseHeader", PULLED, PULLED_TYPED),
        (50, False, "CreateAccessConfigRequestHeader", {"accessKey": "k"}, {"accessKey": "k"}),
        (207, False, "DeleteSubscriptionGroupRequestHeader",
         {"groupName": "G", "removeOffset": "true"}, {"groupName": "G", "removeOffset": True}),
        (1002, False, "ElectMasterRequestHeader",
         {"clusterName": "c", "brokerName": "b", "brokerAddress": "10.0.0.1:10911"},
         {"clusterName": "c", "brokerName": "b", "brokerAddress": "10.0.0.1:10911"}),
        (29, False, "SearchOffsetRequestHeader",
         {"topic": "T", "queueId": "0", "timestamp": "1700000000000", "boundaryType": "UPPER"},
         {"topic": "T", "queueId": 0, "timestamp": 1700000000000, "boundaryType": "UPPER"}),
        (106, False, None, {}, {}),
        (9999, False, None, {"x": "1"}, {"x": "1"}),
    ],
)  # fmt: skip
def test_both_directions(
    code: int, response: bool, name: str | None, wire: dict[str, str], typed: dict[str, object]
) -> None:
    assert _parts_of(typed_header(code, response, wire)) == (name, typed, ())
    assert encode_ext_fields(code, response, typed) == wire


def test_fields_come_in_the_order_of_the_class_and_hooks_last() -> None:
    wire = {"AccessKey": "ak", **dict(reversed(SEND_V2.items())), "Signature": "s="}
    header = typed_header(310, False, wire)
    assert list(header.fields) == [*SEND_V2_TYPED, "AccessKey", "Signature"]
    assert header.problems == ()
    assert list(encode_ext_fields(310, False, header.fields)) == [
        *SEND_V2,
        "AccessKey",
        "Signature",
    ]


def test_missing_fields_are_named() -> None:
    header = typed_header(105, False, {"nsd": "true", "ns": "x"})
    assert header.fields == {"ns": "x", "nsd": True}
    assert header.problems == ("topic is missing",)


def test_an_error_answer_has_no_header_and_is_not_broken() -> None:
    assert typed_header(310, True, {"MSG_REGION": "r", "TRACE_ON": "true"}).problems == ()
    assert typed_header(11, True, {"forbiddenType": "1"}).problems == ()
    partly = typed_header(11, True, {"nextBeginOffset": "3"})
    assert set(partly.problems) == {
        "suggestWhichBrokerId is missing",
        "minOffset is missing",
        "maxOffset is missing",
    }


def test_fields_of_some_releases_only_are_not_missed() -> None:
    assert typed_header(21, False, {}).problems == ()  # a slave of 4.9 sends no header
    addresses = {"globalWhiteAddrs": "*"}  # aclFileFullPath came with 4.9.4
    assert typed_header(53, False, addresses).problems == ()
    assert typed_header(1002, False, {"clusterName": "c", "brokerName": "b"}).problems == ()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("queueId", ""),
        ("queueId", "1_0"),
        ("queueId", " 1"),
        ("queueId", "--1"),
        ("queueId", "0x10"),
        ("queueId", "1.0"),
        ("queueId", "\u00b2"),
        ("queueId", "2147483648"),
        ("queueId", "-2147483649"),
        ("queueId", "9" * 5000),
        ("timestamp", "9223372036854775808"),
        ("lo", "yes"),
        ("boundaryType", "middle"),
    ],
)
def test_values_that_do_not_parse_stay_text(field: str, text: str) -> None:
    wire = {"topic": "T", "queueId": "0", "timestamp": "0", field: text}
    header = typed_header(29, False, wire)
    assert header.fields[field] == text
    assert header.problems == (f"{field} does not parse: {text[:40]!r}",)
    assert encode_ext_fields(29, False, header.fields) == wire


@pytest.mark.parametrize(
    ("field", "text", "value"),
    [
        ("queueId", "2147483647", 2147483647),
        ("queueId", "-2147483648", -2147483648),
        ("queueId", "+7", 7),
        ("queueId", "007", 7),
        ("timestamp", "-9223372036854775808", -9223372036854775808),
        ("lo", "TRUE", True),
        ("boundaryType", "lower", "LOWER"),
    ],
)
def test_values_parse_as_in_java(field: str, text: str, value: object) -> None:
    wire = {"topic": "T", "queueId": "0", "timestamp": "0", field: text}
    assert typed_header(29, False, wire).fields[field] == value


def test_a_long_name_does_not_replace_the_value_of_its_letter() -> None:
    header = typed_header(310, False, {**SEND_V2, "topic": "other"})
    assert header.fields["topic"] == "TopicTest"
    assert header.problems == ("topic is there twice: the value of its letter is shown",)


def test_none_is_left_out_and_booleans_are_written_as_in_java() -> None:
    fields = {"topic": "T", "bname": None, "oway": True, "custom": 1.5, "hook": False}
    assert encode_ext_fields(105, False, fields) == {
        "topic": "T",
        "oway": "true",
        "custom": "1.5",
        "hook": "false",
    }


def test_secrets_are_masked() -> None:
    assert mask_secret("Signature", "z7Vx0c1kTgU=") == mask_secret("SecurityToken", "t") == "***"
    assert mask_secret("secretKey", "12345678") == "***"
    assert mask_secret("AccessKey", "LTAI5tHoSvzEXAMPLE") == "LTAI***"
    assert mask_secret("AccessKey", "rocketmq2") == "roc***"
    assert mask_secret("AccessKey", "ak") == "***"
    assert mask_secret("AccessKey", "") == ""
    assert mask_secret("topic", "TopicTest") == "TopicTest"


@pytest.mark.parametrize(
    "name",
    [
        *("SIGNATURE", "signature", "securitytoken", "SECRETKEY", "Password", "dbSecret2"),
        *("private_key", "metricsGrpcExporterHeader", "api-key", "AUTH_TOKEN"),
    ],
)
def test_a_secret_is_one_in_whatever_case(name: str) -> None:
    assert mask_secret(name, "x" * 99) == "***"
    assert mask_secret("accesskey", "x" * 99) == mask_secret("ACCESSKEY", "x" * 99) == "xxxx***"


@given(st.sampled_from(sorted(SECRET_FIELDS)), st.text())
def test_a_mask_never_shows_more_than_a_third(name: str, value: str) -> None:
    shown = mask_secret(name, value).removesuffix("***")
    assert len(shown) <= min(SECRET_FIELDS[name], len(value) / 3)
    assert value.startswith(shown)


_TEXTS = st.text(max_size=12)
_VALUES: dict[FieldType, st.SearchStrategy[object]] = {
    FieldType.STRING: _TEXTS,
    FieldType.INT: st.integers(-(1 << 31), (1 << 31) - 1),
    FieldType.LONG: st.integers(-(1 << 63), (1 << 63) - 1),
    FieldType.BOOLEAN: st.booleans(),
    FieldType.DOUBLE: st.floats(allow_nan=False),
    FieldType.BOUNDARY: st.sampled_from(["LOWER", "UPPER"]),
}
_WAYS = [
    (code, response)
    for code, row in sorted(OPERATIONS.items())
    for response in (False, True)
    if (row.response_header if response else row.request_header)
]


@given(st.sampled_from(_WAYS), st.data())
def test_typed_values_come_back(way: tuple[int, bool], data: st.DataObject) -> None:
    code, response = way
    fields = header_fields(header_name(code, response) or "")
    values = {field.name: data.draw(_VALUES[field.type]) for field in fields}
    encoded = encode_ext_fields(code, response, values)
    assert all(isinstance(text, str) for text in encoded.values())
    assert list(encoded) == [field.wire for field in fields]
    header = typed_header(code, response, encoded)
    assert _parts_of(header) == (header_name(code, response), values, ())


_KEYS = st.sampled_from(
    sorted({field.wire for fields in HEADERS.values() for field in fields} | HOOK_FIELDS.keys())
)


@given(
    st.sampled_from(sorted(OPERATIONS)) | st.integers(),
    st.booleans(),
    st.dictionaries(_KEYS | _TEXTS, _TEXTS | st.integers().map(str), max_size=12),
)
def test_any_ext_fields_are_typed_and_none_is_lost(
    code: int, response: bool, wire: dict[str, str]
) -> None:
    header = typed_header(code, response, wire)
    assert len(header.fields) + sum("twice" in one for one in header.problems) == len(wire)
    for key in wire:
        assert key in header.fields or header.name == "SendMessageRequestHeaderV2"


def test_a_decoder_that_passes_no_text_does_no_harm() -> None:
    odd: dict[str, str] = {"topic": 5, "queueId": 3, "timestamp": [1]}  # type: ignore[dict-item]
    header = typed_header(29, False, odd)
    assert header.fields == odd
    assert len(header.problems) == 2
