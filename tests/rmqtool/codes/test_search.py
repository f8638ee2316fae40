"""What a query finds among codes, fields, bodies, properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.bodies.registry import FORMS
from dissectors.remoting.code_names import OPERATIONS, wide_request_code
from dissectors.remoting.codes import (
    FORMER_REQUESTS,
    FORMER_RESPONSES,
    LanguageCode,
    RequestCode,
    ResponseCode,
)
from dissectors.remoting.headers import HEADERS, HOOK_FIELDS
from dissectors.remoting.messages.properties import PROPERTIES
from dissectors.remoting.operation_tables import FORMER_MEANINGS
from dissectors.remoting.versions import VERSIONS
from rmqtool.codes.catalog import BODY_FORMS, about_form, catalog, class_of_form, cut_code
from rmqtool.codes.options import EntryKind
from rmqtool.codes.search import find, number_of, query_of


def found(text: str, kind: EntryKind | None = None) -> list[tuple[EntryKind, int | None, str]]:
    return [(one.kind, one.number, one.name) for one in find(query_of(text, kind)).entries]


@pytest.mark.parametrize(
    ("query", "entry"),
    [
        ("SEND_MESSAGE_V2", (EntryKind.request, 310, "SEND_MESSAGE_V2")),
        ("send-message-v2", (EntryKind.request, 310, "SEND_MESSAGE_V2")),
        ("send message v2", (EntryKind.request, 310, "SEND_MESSAGE_V2")),
        ("GET_ROUTEINTO_BY_TOPIC", (EntryKind.request, 105, "GET_ROUTEINFO_BY_TOPIC")),
        ("DELETE_ACL_CONFIG", (EntryKind.request, 51, "DELETE_ACL_CONFIG")),
        ("200050", (EntryKind.request, 200050, "POP_MESSAGE")),
        ("3442", (EntryKind.request, 200050, "POP_MESSAGE")),
        ("0xd72", (EntryKind.request, 200050, "POP_MESSAGE")),
        ("-14532", (EntryKind.request, 51004, "DLEDGER_PUSH")),
        ("0xC73C", (EntryKind.request, 51004, "DLEDGER_PUSH")),
        ("request 17", (EntryKind.request, 17, "UPDATE_AND_CREATE_TOPIC")),
        ("response 17", (EntryKind.response, 17, "TOPIC_NOT_EXIST")),
        ("Responses 0x11", (EntryKind.response, 17, "TOPIC_NOT_EXIST")),
        ("-1006", (EntryKind.response, -1006, "RPC_TIME_OUT")),
        ("topic_not_exist", (EntryKind.response, 17, "TOPIC_NOT_EXIST")),
        ("sendmessagerequestheaderv2", (EntryKind.header, None, "SendMessageRequestHeaderV2")),
        ("AccessKey", (EntryKind.header, None, "AccessKey")),
        ("HeartbeatData", (EntryKind.body, None, "HeartbeatData")),
        (
            "BrokerReplicasInfo.ReplicaIdentity",
            (EntryKind.body, None, "BrokerReplicasInfo.ReplicaIdentity"),
        ),
        ("stored-messages", (EntryKind.body, None, "stored-messages")),
        ("UNIQ_KEY", (EntryKind.property, None, "UNIQ_KEY")),
        ("PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX", (EntryKind.property, None, "UNIQ_KEY")),
        ("1ST_POP_TIME", (EntryKind.property, None, "1ST_POP_TIME")),
        ("go", (EntryKind.language, 9, "GO")),
        ("language 9", (EntryKind.language, 9, "GO")),
        ("5.3.3", (EntryKind.version, 479, "V5_3_3")),
        ("version 479", (EntryKind.version, 479, "V5_3_3")),
        ("5.0.0-SNAPSHOT", (EntryKind.version, 412, "V5_0_0_SNAPSHOT")),
    ],
)
def test_finds_one(query: str, entry: tuple[EntryKind, int | None, str]) -> None:
    assert [one for one in found(query) if one[0] == entry[0]] == [entry]
    assert find(query_of(query, None)).exact


def test_a_number_is_looked_for_in_all_kinds() -> None:
    assert found("17") == [
        (EntryKind.request, 17, "UPDATE_AND_CREATE_TOPIC"),
        (EntryKind.response, 17, "TOPIC_NOT_EXIST"),
        (EntryKind.version, 17, "V3_0_1"),
    ]
    assert found("17", EntryKind.response) == [(EntryKind.response, 17, "TOPIC_NOT_EXIST")]
    assert [name for _, _, name in found("209", EntryKind.response)] == [
        "POLLING_FULL",
        "UPDATE_AND_CREATE_ACL_CONFIG_FAILED",
    ]


def test_what_matches_whole_comes_without_what_is_merely_like_it() -> None:
    result = find(query_of("PULL_MESSAGE", None))
    assert [entry.number for entry in result.entries] == [11]
    assert {entry.name for entry in result.alike} == {"SNODE_PULL_MESSAGE", "LITE_PULL_MESSAGE"}


def test_a_part_of_a_name_finds_all_that_have_it() -> None:
    names = [name for _, _, name in found("lock_batch")]
    assert names == ["LOCK_BATCH_MQ", "UNLOCK_BATCH_MQ"]
    assert {kind for kind, _, _ in found("heartbeat")} == {
        EntryKind.request,
        EntryKind.response,  # its description
        EntryKind.header,
        EntryKind.body,
    }


@pytest.mark.parametrize(
    ("words", "code"),
    [("disk", 14), ("disk full", 14), ("Shut Down", 14), ("forbidden", 16), ("apply first", 17)],
)
def test_descriptions_and_remarks_are_searched(words: str, code: int) -> None:
    assert (EntryKind.response, code) in {(kind, number) for kind, number, _ in found(words)}


def test_a_field_finds_the_headers_and_bodies_that_have_it() -> None:
    assert {kind for kind, _, _ in found("brokerName")} == {EntryKind.header, EntryKind.body}
    assert (EntryKind.header, None, "SendMessageRequestHeaderV2") in found("bornTimestamp")
    assert found("heartbeatFingerprint") == [(EntryKind.body, None, "HeartbeatData")]
    assert found("ackOffsetList") == [(EntryKind.body, None, "BatchAckMsg")], "the long name of aol"


def test_a_kind_alone_lists_it() -> None:
    assert {kind for kind, _, _ in found("properties")} == {EntryKind.property}
    assert len(found("response")) == len(ResponseCode) + len(FORMER_RESPONSES)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("310", 310),
        ("0x136", 310),
        ("0X136", 310),
        ("-1006", -1006),
        ("+7", 7),
        ("1_0", None),
        ("\u0663", None),
        ("0x", None),
        ("5.5", None),
        ("9" * 5000, None),
        ("", None),
    ],
)
def test_number_of_query(text: str, number: int | None) -> None:
    assert number_of(text) == number


def test_everything_of_the_tables_is_in_the_catalog() -> None:
    by_kind: dict[EntryKind, set[str]] = {kind: set() for kind in EntryKind}
    for entry in catalog():
        by_kind[entry.kind].add(entry.name)
    former = {code.name for code in FORMER_REQUESTS}
    assert by_kind[EntryKind.request] == {code.name for code in RequestCode} | former
    answers = {code.name for code in FORMER_RESPONSES}
    assert by_kind[EntryKind.response] == {code.name for code in ResponseCode} | answers
    assert by_kind[EntryKind.header] == HEADERS.keys() | HOOK_FIELDS.keys()
    assert by_kind[EntryKind.property] == {one.name for one in PROPERTIES}
    assert by_kind[EntryKind.language] == {code.name for code in LanguageCode}
    assert by_kind[EntryKind.version] == set(VERSIONS)


def test_every_entry_is_found_by_its_number_and_by_its_name() -> None:
    for entry in catalog():
        if entry.kind is EntryKind.version and entry.number is not None and entry.number % 20:
            continue  # 613 of one kind
        by_name = find(query_of(f"{entry.kind} {entry.name}", None))
        assert entry in by_name.entries, entry
        if entry.number is not None:
            by_number = find(query_of(str(entry.number), entry.kind))
            assert entry in by_number.entries, entry


@given(st.text(max_size=40), st.sampled_from([None, *EntryKind]))
def test_any_query_has_an_answer(text: str, kind: EntryKind | None) -> None:
    result = find(query_of(text, kind))
    assert all(kind in (None, entry.kind) for entry in result.entries)


def test_cut_codes_are_those_that_the_decoder_undoes() -> None:
    for code in RequestCode:
        cut = cut_code(code)
        assert cut is None or wide_request_code(cut) == code
        assert (cut is None) == (code <= 0x7FFF)


def test_every_form_of_a_body_is_explained() -> None:
    assert FORMS.keys() <= BODY_FORMS.keys()
    for operation in OPERATIONS.values():
        for form in (operation.request_body, operation.response_body):
            if form is not None and class_of_form(form) is None:
                assert form in BODY_FORMS or form.startswith("json-list:"), form
                assert about_form(form)


def test_every_former_response_is_explained() -> None:
    released = {code.name for code in FORMER_RESPONSES if code.first}
    assert FORMER_MEANINGS.keys() == released
