"""Names of codes: known, ambiguous and unknown numbers, and what an operation carries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.code_names import (
    OPERATIONS,
    RESPONSES,
    UNKNOWN_NAMES_KEPT,
    language_code,
    language_name,
    operation_of,
    request_code,
    request_name,
    response_name,
    wide_request_code,
)
from dissectors.remoting.codes import (
    FORMER_REQUESTS,
    FORMER_RESPONSES,
    RENAMED_REQUESTS,
    LanguageCode,
    RequestCode,
    ResponseCode,
    SerializeType,
)
from dissectors.remoting.operation_tables import OPERATION_ROWS, RESPONSE_ROWS
from dissectors.remoting.versions import ordinal_of

from .protocol_facts import release_of_tag, rows, table

REPOSITORY = Path(__file__).resolve().parents[3]
ACL = {
    50: "UPDATE_AND_CREATE_ACL_CONFIG",
    51: "DELETE_ACL_CONFIG",
    52: "GET_BROKER_CLUSTER_ACL_INFO",
    53: "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG",
    54: "GET_BROKER_CLUSTER_ACL_CONFIG",
}
POP = {
    3442: 200050,
    3443: 200051,
    3444: 200052,
    3445: 200053,
    3446: 200054,
    3447: 200055,
    3448: 200056,
    3543: 200151,
}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (10, "SEND_MESSAGE"),
        (11, "PULL_MESSAGE"),
        (34, "HEART_BEAT"),
        (105, "GET_ROUTEINFO_BY_TOPIC"),
        (310, "SEND_MESSAGE_V2"),
        (320, "SEND_BATCH_MESSAGE"),
        (1003, "CONTROLLER_REGISTER_BROKER"),
        (3010, "AUTH_LIST_ACL"),
        (5001, "SWITCH_TIMER_ENGINE"),
        (51004, "DLEDGER_PUSH"),
        (200050, "POP_MESSAGE"),
        (200079, "TRIGGER_LITE_DISPATCH"),
        (9999, "UNKNOWN(9999)"),
        (-7, "UNKNOWN(-7)"),
    ],
)
def test_request_names(code: int, name: str) -> None:
    assert request_name(code) == name


def test_former_requests_keep_their_names() -> None:
    for code, name in ACL.items():
        assert request_name(code) == name
        assert request_code(name) == code
    assert request_name(350) == "REGISTER_SNODE"
    assert request_name(351) == "GET_TOPIC_CONFIG", "an unreleased branch does not win"
    assert request_name(105) == "GET_ROUTEINFO_BY_TOPIC"
    assert request_code("GET_ROUTEINTO_BY_TOPIC") == 105
    assert request_code("NO_SUCH_REQUEST") is None


@pytest.mark.parametrize(
    ("code", "request_code", "version", "name"),
    [
        (0, None, None, "SUCCESS"),
        (2, 310, None, "SYSTEM_BUSY"),
        (17, 105, 479, "TOPIC_NOT_EXIST"),
        (209, None, None, "POLLING_FULL"),
        (209, 200050, "5.1.0", "POLLING_FULL"),
        (209, 50, None, "UPDATE_AND_CREATE_ACL_CONFIG_FAILED"),
        (210, 51, "5.2.0", "DELETE_ACL_CONFIG_FAILED"),
        (210, None, "4.9.4", "DELETE_ACL_CONFIG_FAILED"),
        (210, None, 0, "POLLING_TIMEOUT"),
        (211, 53, None, "UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED"),
        (211, 105, "5.3.2", "BROKER_NOT_EXIST"),
        (2010, 1001, "5.1.0", "CONTROLLER_ALTER_SYNC_STATE_SET_FAILED"),
        (2010, 1001, "5.1.1", "CONTROLLER_BROKER_NEED_TO_BE_REGISTERED"),
        (2011, None, "5.0.0", "CONTROLLER_ELECT_MASTER_FAILED"),
        (2011, None, None, "CONTROLLER_MASTER_STILL_EXIST"),
        (2012, None, "5.0.0", "CONTROLLER_REGISTER_BROKER_FAILED"),
        (2012, None, 0, "CONTROLLER_ELECT_MASTER_FAILED"),
        (200, 37, None, "TRANSACTION_SHOULD_COMMIT"),
        (200, 51002, None, "SUCCESS"),
        (-2, None, None, "ASYNC_AND_RETURN_NULL"),
        (-1006, None, None, "RPC_TIME_OUT"),
        (2018, None, None, "LITE_SUBSCRIPTION_QUOTA_EXCEEDED"),
        (4711, 10, 479, "UNKNOWN(4711)"),
    ],
)
def test_response_names(
    code: int, request_code: int | None, version: int | str | None, name: str
) -> None:
    ordinal = ordinal_of(version) if isinstance(version, str) else version
    assert response_name(code, request_code, ordinal) == name


def test_languages() -> None:
    assert [code.name for code in LanguageCode][:4] == ["JAVA", "CPP", "DOTNET", "PYTHON"]
    for code in LanguageCode:
        assert language_name(code) == code.name
        assert language_code(code.name) == code
    assert language_name(99) == "UNKNOWN(99)"
    assert language_code("java") is None
    assert language_code("COBOL") is None


def test_wide_codes_of_the_binary_header() -> None:
    for wire, code in POP.items():
        assert wide_request_code(wire) == code
    assert wide_request_code(50000) == wide_request_code(50000 - 0x10000) == 50000
    assert wide_request_code(51004 - 0x10000) == RequestCode.DLEDGER_PUSH
    for narrow in (10, 105, 310, 3010, 5003, 9999, -1, 0x7FFF, 0xFFFF):
        assert wide_request_code(narrow) == narrow


def test_every_wide_code_survives_the_binary_header_and_hides_no_other() -> None:
    for code in RequestCode:
        wire = (code & 0xFFFF) - (0x10000 if code & 0x8000 else 0)
        assert wide_request_code(wire) == wide_request_code(code & 0xFFFF) == code


@given(st.integers(-(1 << 63), 1 << 63), st.integers() | st.none(), st.integers() | st.none())
def test_any_number_has_a_name(code: int, request: int | None, version: int | None) -> None:
    assert request_name(code)
    assert response_name(code, request, version)
    assert language_name(code)
    assert isinstance(wide_request_code(code), int)


def test_unknown_names_do_not_pile_up() -> None:
    first = request_name(1_000_000)
    assert request_name(1_000_000) is first, "kept"
    for code in range(1_000_001, 1_000_001 + UNKNOWN_NAMES_KEPT):
        request_name(code)
    again = request_name(1_000_000)
    assert again == first
    assert again is not first


def test_every_request_code_has_its_operation() -> None:
    assert {int(code) for code in RequestCode} <= OPERATIONS.keys()
    assert all(request_code(name) is not None for name in OPERATION_ROWS)
    assert len(OPERATIONS) == len(OPERATION_ROWS), "two rows for one number"


def test_operations() -> None:
    send = operation_of(310)
    assert send is not None
    assert send.request_header == "SendMessageRequestHeaderV2"
    assert send.response_header == "SendMessageResponseHeader"
    assert (send.request_body, send.response_body) == ("raw-message", None)
    assert (send.who, send.mode, send.since) == ("producer->broker", "any", "4.0.0")
    check = operation_of(39)
    assert check is not None
    assert (check.who, check.mode) == ("broker->client", "oneway")
    assert operation_of(9999) is None


def test_request_codes_are_those_of_the_protocol() -> None:
    facts = rows("request_codes.json")
    assert len(facts) == 158
    for row in facts:
        code = row["code"]
        assert isinstance(code, int)
        assert RequestCode(code).name == row["name"]
        assert OPERATIONS[code].since == release_of_tag(str(row["since"]))
        wire = row.get("wire_code_binary")
        if isinstance(wire, int):
            assert wide_request_code(wire) == code
    later = {int(code) for code in RequestCode} - {row["code"] for row in facts}
    assert later == {
        *range(200070, 200080),
        *range(5001, 5004),
        *(50000, 50001, 50002, 59999),
        *range(51001, 51007),
    }


def test_response_codes_are_those_of_the_protocol() -> None:
    facts = rows("response_codes.json")
    assert len(facts) == 66
    for row in facts:
        assert ResponseCode[str(row["name"])] == row["code"]
        if "since" in row:
            assert RESPONSES[int(str(row["code"]))].since == release_of_tag(str(row["since"]))
    assert len(ResponseCode) == len(facts) + 2, "2017 and 2018 are of 5.5"


def test_every_response_code_has_its_meaning() -> None:
    assert RESPONSES.keys() == {int(code) for code in ResponseCode}
    assert len(RESPONSE_ROWS) == len(RESPONSES)


def test_former_codes_are_those_of_the_protocol() -> None:
    facts = table("removed_codes.json")
    for kind, ours in (("request", FORMER_REQUESTS), ("response", FORMER_RESPONSES)):
        removed = facts[kind]
        assert isinstance(removed, list)
        expected = {
            (
                row["code"],
                row["name"],
                release_of_tag(row["first_tag"] or ""),
                release_of_tag(row["last_tag"] or ""),
                " ".join(row["other_refs"]),
            )
            for row in removed
            if row["name"] not in RENAMED_REQUESTS
        }
        assert set(ours) == expected


def test_languages_and_serialize_types_are_those_of_the_protocol() -> None:
    assert {(row["name"], row["code"]) for row in rows("language_codes.json")} == {
        (code.name, int(code)) for code in LanguageCode
    }
    types = table("serialize_types.json")["serialize_types"]
    assert isinstance(types, list)
    assert {(row["name"], row["code"]) for row in types} == {
        (kind.name, int(kind)) for kind in SerializeType
    }


def test_operations_are_those_of_the_protocol() -> None:
    own = {301, 302}  # unused in 5.x, described as in 4.0 to 4.2 here
    for row in rows("operations.json"):
        code = row["code"]
        assert isinstance(code, int)
        ours = OPERATIONS[code]
        if code in own:
            continue
        for column in ("request_header", "response_header", "request_body", "response_body"):
            assert getattr(ours, column) == row[column], (code, column)
        assert (ours.who, ours.mode) == (row["who"], row["mode"] or ""), code


def _run(source: str, cache: Path) -> str:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", source]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment, cwd=REPOSITORY
    )
    return done.stdout


@pytest.mark.slow
def test_import_is_quick_and_loads_nothing_heavy(tmp_path: Path) -> None:
    # CPU time, not the clock, and without what every module of the project loads anyway: other
    # processes and the Python release must not make this test fail.
    source = (
        "import enum, functools, sys, time, typing\n"
        "before = set(sys.modules); start = time.process_time()\n"
        "import dissectors.remoting.codes, dissectors.remoting.versions\n"
        "spent = time.process_time() - start; print(spent * 1000)\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    outputs = [_run(source, tmp_path).splitlines() for _ in range(5)]
    loaded = set(outputs[-1][1].split())
    assert not loaded & {"msgspec", "dataclasses", "inspect", "json", "logging", "asyncio", "scapy"}
    assert min(float(output[0]) for output in outputs) < 15
