"""`rmqtool codes`: everything of the tables is found by what is on the wire and by its names."""

from __future__ import annotations

import json
import re

import pytest

from rmqtool.codes.as_json import value_of
from rmqtool.codes.catalog import catalog
from rmqtool.codes.options import CodesFormat, CodesRequest, EntryKind
from rmqtool.codes.run import run_codes
from rmqtool.codes.search import find, query_of
from rmqtool.codes.text import detail_lines, list_lines, releases_of
from rmqtool.ui.console import UNLIMITED, Terminal, When
from rmqtool.ui.status import CommandError, ExitStatus

from ..command import rmqtool

PIPE = Terminal(False, UNLIMITED, False)


def text_of(text: str) -> str:
    result = find(query_of(text, None))
    return "\n".join(detail_lines(result.entries, result.alike, PIPE))


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
        ("request 209", "  used             nowhere"),
        ("request 39", "  response         never"),
        ("response 14", "  meaning          not stored: disk full, a slave, or shutting down"),
        ("SUBSCRIPTION_NOT_LATEST", "  releases         since 4.0.0"),
        ("UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED", "  releases         4.5.2 to 5.3.2"),
        ("DELETE_TOPIC_IN_BROKER_LIST", "  releases         in no release up to 5.5.0"),
        ("REGISTER_SNODE", "  note             in no release, on the branches mqtt snode"),
        ("SubscriptionData", "  part of          ConsumerData, "),
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
    assert len(lines) == len(catalog()) + 7 * 3 + 6, "a title, a head, its line; six empty lines"


def test_colours_only_where_they_are_wanted() -> None:
    entries = find(query_of("310", None)).entries
    assert "\x1b[" in "\n".join(detail_lines(entries, (), Terminal(True, 80, True)))
    assert "\x1b[" not in "\n".join(detail_lines(entries, (), Terminal(True, 80, False)))


# -- command ----------------------------------------------------------------------------------


def test_the_command_shows_and_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_codes(CodesRequest(["response", "17"])) is ExitStatus.OK
    shown = capsys.readouterr()
    assert shown.out.startswith("response 17 TOPIC_NOT_EXIST\n")
    assert shown.err == ""
    request = CodesRequest([], EntryKind.language, CodesFormat.table, When.always)
    assert run_codes(request) is ExitStatus.OK
    assert "\x1b[" in capsys.readouterr().out


def test_json_says_all(capsys: pytest.CaptureFixture[str]) -> None:
    run_codes(CodesRequest(["3442"], format=CodesFormat.json))
    (value,) = json.loads(capsys.readouterr().out)
    assert (value["number"], value["cut_number"], value["since"]) == (200050, 3442, "5.0.0")
    assert (value["client"], value["server"]) == ("consumer", "broker")
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
    run_codes(CodesRequest(["AUTH_LIST_USER"], format=CodesFormat.json))
    (value,) = json.loads(capsys.readouterr().out)
    assert value["response_body"]["form"] == "json-list:UserInfo"
    assert {"name": "username", "wire": "username", "type": "String"} in value["response_body"][
        "members"
    ]


def test_json_of_everything(capsys: pytest.CaptureFixture[str]) -> None:
    run_codes(CodesRequest(format=CodesFormat.json))
    assert len(json.loads(capsys.readouterr().out)) == len(catalog())


@pytest.mark.parametrize(
    ("words", "kind", "message", "hint"),
    [
        (["SEND_MESAGE_V2"], None, "no match for 'SEND_MESAGE_V2'", "SEND_MESSAGE_V2"),
        (["UNIK_KEY"], EntryKind.property, "no property match for 'UNIK_KEY'", "UNIQ_KEY"),
        (["response", "9999"], None, "unknown response 9999", "rmqtool codes 310"),
        (["9999"], None, "unknown code 9999", "rmqtool codes 310"),
        (["\x1b[2J"], None, "no match for '\\x1b[2J'", "rmqtool codes 310"),
    ],
)
def test_nothing_found(words: list[str], kind: EntryKind | None, message: str, hint: str) -> None:
    with pytest.raises(CommandError) as error:
        run_codes(CodesRequest(words, kind))
    assert error.value.status is ExitStatus.FAILURE
    assert error.value.message == message
    assert hint in error.value.hint


def test_a_misspelt_option_is_no_query() -> None:
    with pytest.raises(CommandError) as error:
        run_codes(CodesRequest(["310", "--formt"]))
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
        (["UNIK_KEY"], 1, "", "rmqtool: no match for 'UNIK_KEY'\n  did you mean UNIQ_KEY"),
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
