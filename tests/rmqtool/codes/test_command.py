"""`rmqtool codes`: everything of the tables is found by what is on the wire and by its names."""

from __future__ import annotations

import json
import re

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
from dissectors.remoting.operation_tables.responses import FORMER_MEANINGS
from dissectors.remoting.versions import VERSIONS
from rmqtool.codes.as_json import value_of
from rmqtool.codes.catalog import BODY_FORMS, about_form, catalog, class_of_form, cut_code
from rmqtool.codes.command import codes
from rmqtool.codes.options import CodesFormat, EntryKind
from rmqtool.codes.search import find, number_of, query_of
from rmqtool.codes.text import detail_lines, list_lines, releases_of
from rmqtool.ui.console import UNLIMITED, Terminal, When
from rmqtool.ui.status import CommandError, ExitStatus

from ..command import rmqtool

PIPE = Terminal(False, UNLIMITED, False)


def found(text: str, kind: EntryKind | None = None) -> list[tuple[EntryKind, int | None, str]]:
    return [(one.kind, one.number, one.name) for one in find(query_of(text, kind)).entries]


def text_of(text: str) -> str:
    result = find(query_of(text, None))
    return "\n".join(detail_lines(result.entries, result.alike, PIPE))


# -- search -----------------------------------------------------------------------------------


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


# -- text -------------------------------------------------------------------------------------


def test_a_request_in_full() -> None:
    text = text_of("request 310")
    for line in (
        "request 310 SEND_MESSAGE_V2",
        "  releases         since 4.0.0",
        "  sent by          producer",
        "  sent to          broker",
        "  request header   SendMessageRequestHeaderV2",
        "  request body     raw-message: the body of one message, as the application gave it",
        "  response header  SendMessageResponseHeader",
        "  response body    none",
    ):
        assert line in text.splitlines()
    assert re.search(r"^    FIELD +WIRE +TYPE +REQUIRED +RELEASES$", text, re.MULTILINE)
    assert re.search(r"^    topic +b +string +required$", text, re.MULTILINE)
    assert re.search(r"^    brokerName +n +string +since 4\.9\.5$", text, re.MULTILINE)
    assert re.search(r"^    recallHandle +string +since 5\.3\.2$", text, re.MULTILINE)


def test_what_16_bits_leave_is_said() -> None:
    assert "  in 16 bits       3442 (0x0D72), in a ROCKETMQ header" in text_of("POP_MESSAGE")
    assert "-14532 (0xC73C)" in text_of("DLEDGER_PUSH")
    assert "16 bits" not in text_of("request 10")


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("request 209", "  used             by nobody"),
        ("request 39", "  answered         never"),
        ("response 14", "  says             not stored: disk full, a slave, or shutting down"),
        ("SUBSCRIPTION_NOT_LATEST", "  releases         since 4.0.0"),
        ("UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED", "  releases         4.5.2 to 5.3.2"),
        ("DELETE_TOPIC_IN_BROKER_LIST", "  releases         in no release up to 5.5.0"),
        ("REGISTER_SNODE", "  note             in no release, on the branches mqtt snode"),
        ("SubscriptionData", "  inside of        ConsumerData, "),
        ("ConsumeType", "enum ConsumeType"),
        ("text", "form of body text"),
        ("AccessKey", "ext field AccessKey"),
        ("EndTransactionResponseHeader", "  used by          no operation"),
        ("GET_ROUTEINTO_BY_TOPIC", "  also called      GET_ROUTEINTO_BY_TOPIC"),
        ("UNIQ_KEY", "  set by           RocketMQ only"),
        ("rust", "  written as       RUST in a JSON header, 12 in a ROCKETMQ header"),
        ("V5_5_0", "  release          5.5.0"),
    ],
)
def test_what_is_said_of_entries(query: str, line: str) -> None:
    assert any(one.startswith(line) for one in text_of(query).splitlines()), text_of(query)


def test_every_entry_has_its_lines_and_its_value() -> None:
    for entry in catalog():
        assert detail_lines([entry], [], PIPE)[0].endswith(entry.name)
        value = value_of(entry)
        assert (value["kind"], value["name"]) == (entry.kind, entry.name)
        assert json.loads(json.dumps(value))["name"] == entry.name


@pytest.mark.parametrize(
    ("since", "until", "text"),
    [
        ("", "", ""),
        ("5.0.0", "", "since 5.0.0"),
        ("", "5.1.0", "up to 5.1.0"),
        ("4.5.2", "5.3.2", "4.5.2 to 5.3.2"),
        ("5.1.0", "5.1.0", "5.1.0 only"),
        (">5.5.0", "", "in no release up to 5.5.0"),
    ],
)
def test_releases(since: str, until: str, text: str) -> None:
    assert releases_of(since, until) == text


def test_lists_fit_the_terminal() -> None:
    lines = list_lines(catalog(), Terminal(True, 80, False))
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line and line[0] != " "] == [
        "Requests",
        "Responses",
        "Headers",
        "Bodies",
        "Message properties",
        "Languages",
        "Versions",
    ]
    assert len(lines) == len(catalog()) + 7 * 2 + 6, "a title and a head each, six empty lines"


def test_colours_only_where_they_are_wanted() -> None:
    entries = find(query_of("310", None)).entries
    assert "\x1b[" in "\n".join(detail_lines(entries, (), Terminal(True, 80, True)))
    assert "\x1b[" not in "\n".join(detail_lines(entries, (), Terminal(True, 80, False)))


# -- command ----------------------------------------------------------------------------------


def test_the_command_shows_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert codes(["response", "17"]) is ExitStatus.OK
    shown = capsys.readouterr()
    assert shown.out.startswith("response 17 TOPIC_NOT_EXIST\n")
    assert shown.err == ""
    assert codes([], EntryKind.language, CodesFormat.table, When.always) is ExitStatus.OK
    assert "\x1b[" in capsys.readouterr().out


def test_json_says_all(capsys: pytest.CaptureFixture[str]) -> None:
    codes(["3442"], format_=CodesFormat.json)
    (value,) = json.loads(capsys.readouterr().out)
    assert (value["number"], value["cut_number"], value["since"]) == (200050, 3442, "5.0.0")
    assert (value["requester"], value["responder"]) == ("consumer", "broker")
    header = value["request_header"]
    assert header["name"] == "PopMessageRequestHeader"
    assert header["fields"][0] == {
        "name": "consumerGroup",
        "wire": "consumerGroup",
        "type": "string",
        "required": True,
        "since": None,
        "until": None,
    }
    assert value["response_body"]["form"] == "stored-messages"
    codes(["AUTH_LIST_USER"], format_=CodesFormat.json)
    (value,) = json.loads(capsys.readouterr().out)
    assert value["response_body"]["form"] == "json-list:UserInfo"
    assert {"name": "username", "wire": "username", "type": "String"} in value["response_body"][
        "members"
    ]


def test_json_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    codes([], format_=CodesFormat.json)
    assert len(json.loads(capsys.readouterr().out)) == len(catalog())


@pytest.mark.parametrize(
    ("words", "kind", "message", "hint"),
    [
        (["SEND_MESAGE_V2"], None, "nothing is called 'SEND_MESAGE_V2'", "SEND_MESSAGE_V2"),
        (["UNIK_KEY"], EntryKind.property, "no property is called 'UNIK_KEY'", "UNIQ_KEY"),
        (["response", "9999"], None, "no response has the number 9999", "rmqtool codes 310"),
        (["9999"], None, "nothing known has the number 9999", "rmqtool codes 310"),
        (["\x1b[2J"], None, "nothing is called '\\x1b[2J'", "rmqtool codes 310"),
    ],
)
def test_nothing_found(words: list[str], kind: EntryKind | None, message: str, hint: str) -> None:
    with pytest.raises(CommandError) as error:
        codes(words, kind)
    assert error.value.status is ExitStatus.FAILURE
    assert error.value.message == message
    assert hint in error.value.hint


def test_a_misspelt_option_is_no_query() -> None:
    with pytest.raises(CommandError) as error:
        codes(["310", "--formt"])
    assert error.value.status is ExitStatus.USAGE


@pytest.mark.parametrize(
    ("arguments", "status", "out", "err"),
    [
        (["310"], 0, "request 310 SEND_MESSAGE_V2\n", ""),
        (["response", "17"], 0, "response 17 TOPIC_NOT_EXIST\n", ""),
        (["-1006"], 0, "response -1006 RPC_TIME_OUT\n", ""),
        (["send", "message", "v2"], 0, "request 310 SEND_MESSAGE_V2\n", ""),
        (["--kind", "language"], 0, "Languages\n", ""),
        (["--format", "json", "UNIQ_KEY"], 0, "[\n", ""),
        ([], 0, "Requests\n", ""),
        (["UNIK_KEY"], 1, "", "rmqtool: nothing is called 'UNIK_KEY'\n  did you mean UNIQ_KEY"),
        (["--kind", "topic"], 2, "", "Usage: rmqtool codes"),
        (["310", "--formt"], 2, "", "rmqtool: no such option: --formt"),
    ],
)
def test_as_a_user_meets_it(arguments: list[str], status: int, out: str, err: str) -> None:
    result = rmqtool("codes", *arguments)
    assert result.status == status
    assert result.out.startswith(out)
    assert result.err.startswith(err) if err else not result.err


def test_help_names_what_can_be_asked() -> None:
    assert "codes" in rmqtool("--help").out
    text = rmqtool("codes", "--help").out
    assert "rmqtool codes response 17" in text
    assert "--kind" in text
