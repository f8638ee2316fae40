"""Every operation's body has a reader, and no body of any bytes is ever dropped."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.bodies.body import Body
from dissectors.remoting.bodies.json_body import json_type_of
from dissectors.remoting.bodies.messages import message_value
from dissectors.remoting.bodies.registry import (
    FORMS,
    body_form,
    body_value,
    decode_body,
    encode_body,
)
from dissectors.remoting.code_names import OPERATIONS
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.messages.batch import BatchItem
from dissectors.remoting.messages.records import decode_messages

from ..protocol_facts import rows, table
from ..vectors import BATCH, REGISTRATION, RESET_OFFSET, ROUTE, STORED_V4

SIDES = [
    (code, response)
    for code in sorted(OPERATIONS)
    for response in (False, True)
    if body_form(code, response) is not None
]


def test_every_body_of_the_facts_has_a_reader() -> None:
    for row in rows("operations.json"):
        code = row["code"]
        assert isinstance(code, int)
        for response, column in ((False, "request_body"), (True, "response_body")):
            form = row[column]
            if form is not None:
                assert body_form(code, response) == form
                assert isinstance(form, str)
                assert form in FORMS or json_type_of(form)


def test_every_body_of_former_operations_has_a_reader() -> None:
    former = table("removed_codes.json")["request"]
    assert isinstance(former, list)
    for row in former:
        form = row.get("response_body")
        if form is not None:
            assert body_form(row["code"], True) == form
            assert json_type_of(form)


def test_every_form_of_the_operations_is_known() -> None:
    for code, response in SIDES:
        form = body_form(code, response)
        assert form is not None
        assert form in FORMS or json_type_of(form)


@pytest.mark.parametrize(
    ("code", "response", "body", "kind"),
    [
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, True, ROUTE.encode(), "TopicRouteData"),
        (RequestCode.RESET_CONSUMER_CLIENT_OFFSET, False, RESET_OFFSET.encode(), "ResetOffsetBody"),
        (RequestCode.REGISTER_BROKER, False, REGISTRATION, "RegisterBrokerBody"),
        (RequestCode.PULL_MESSAGE, True, STORED_V4, "stored-messages"),
        (RequestCode.POP_MESSAGE, True, STORED_V4, "stored-messages"),
        (RequestCode.CHECK_TRANSACTION_STATE, False, STORED_V4, "stored-message"),
        (RequestCode.SEND_BATCH_MESSAGE, False, BATCH, "batch-messages"),
        (RequestCode.SEND_MESSAGE_V2, False, b"hello", "raw-message"),
        (RequestCode.UPDATE_BROKER_CONFIG, False, b"a=b\n", "properties-text"),
        (RequestCode.GET_TIMER_CHECK_POINT, True, bytes(56), "timer-checkpoint"),
        (RequestCode.REMOVE_COLD_DATA_FLOW_CTR_CONFIG, False, b"GID", "text"),
        (RequestCode.AUTH_LIST_USER, True, b"[{}]", "json-list:UserInfo"),
        (54, True, b'{"globalWhiteAddrs":[]}', "GetBrokerClusterAclConfigResponseBody"),
    ],
)
def test_body_kind_by_code_and_direction(code: int, response: bool, body: bytes, kind: str) -> None:
    found = decode_body(code, response, 0, body, {})
    assert (found.kind, found.problem, found.notes) == (kind, None, ())


def test_what_no_table_speaks_of() -> None:
    assert decode_body(11, True, 0, b"", {}) == Body("none")
    raw = decode_body(9999, False, 0, b"\0", {})
    assert raw == Body("raw", problem="no body is known of a request UNKNOWN(9999)")
    assert decode_body(9999, True, 0, b"[1]", {}).value == [1]
    assert decode_body(10, True, 0, b"x", {}).problem == (
        "no body is known of a response to SEND_MESSAGE"
    )


def test_bodies_of_error_responses() -> None:
    found = decode_body(11, True, 1, b"oops", {})
    assert found == Body("raw", problem="a body on a response with code 1")
    assert decode_body(105, True, 17, ROUTE.encode(), {}).kind == "TopicRouteData"


def test_writing_what_was_read() -> None:
    messages = decode_messages(STORED_V4 * 2).messages
    assert encode_body(RequestCode.PULL_MESSAGE, True, messages) == STORED_V4 * 2
    found = decode_body(RequestCode.SEND_BATCH_MESSAGE, False, 0, BATCH, {})
    assert encode_body(RequestCode.SEND_BATCH_MESSAGE, False, found.messages) == BATCH
    assert encode_body(RequestCode.SEND_BATCH_MESSAGE, False, [BatchItem(b"x")])
    assert encode_body(RequestCode.SEND_MESSAGE, False, b"x") == b"x"
    assert encode_body(RequestCode.UPDATE_BROKER_CONFIG, False, {"a": "b"}) == b"a=b\n"
    route = decode_body(105, True, 0, ROUTE.encode(), {}).value
    assert encode_body(105, True, route) == ROUTE.encode()
    assert b'"0":' in encode_body(105, True, route, standard_json=True)


@pytest.mark.parametrize(
    ("code", "response", "value"),
    [(13, False, {}), (10, False, "x"), (11, True, 5), (11, True, [1]), (320, False, [1])],
)
def test_what_cannot_be_written(code: int, response: bool, value: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each says what it is
        encode_body(code, response, value)


def test_bodies_as_json_values() -> None:
    stored = decode_body(11, True, 0, STORED_V4, {})
    assert body_value(stored) == {"kind": "stored-messages"}
    assert stored.messages == decode_messages(STORED_V4).messages
    assert body_value(Body("none")) == {"kind": "none"}
    assert body_value(Body("raw", problem="why")) == {"kind": "raw", "problem": "why"}
    user = decode_body(3004, True, 0, b'{"username":"u","password":"p","x":1}', {})
    assert body_value(user) == {
        "kind": "UserInfo",
        "value": {"username": "u", "password": "***", "x": 1},
        "notes": ["UserInfo.x is not known"],
    }
    assert body_value(user, secrets=True)["value"] == user.value


SEEDS = [ROUTE.encode(), RESET_OFFSET.encode(), REGISTRATION, STORED_V4, BATCH, b'{"a":', b"[", b""]


@given(
    st.sampled_from(SIDES),
    st.sampled_from(SEEDS),
    st.integers(0, 200),
    st.binary(max_size=80),
    st.sampled_from([0, 1, 17, 200]),
    st.dictionaries(st.sampled_from("abefghij"), st.text(max_size=5)),
)
def test_any_bytes_for_any_operation(
    side: tuple[int, bool],
    seed: bytes,
    at: int,
    noise: bytes,
    response_code: int,
    ext_fields: dict[str, str],
) -> None:
    body = seed[:at] + noise
    found = decode_body(*side, response_code, body, ext_fields)
    assert (found.kind == "none") == (body == b"")
    assert found.messages or found.value is not None or found.problem or not body
    shown = [body_value(found), *map(message_value, found.messages)]
    json.dumps(shown, allow_nan=False).encode("utf-8", "surrogatepass")


QUEUE = {"brokerName": "b", "perm": 6, "readQueueNums": 4, "topicSynFlag": 0, "writeQueueNums": 4}
MAPPING = {"b": {"bname": "b", "currIdMap": {"0": 0}, "dirty": False, "epoch": 7, "topic": "T"}}


@pytest.mark.parametrize(
    ("code", "body"),
    [
        (105, {"brokerDatas": [], "queueDatas": [QUEUE]}),
        (105, {"brokerDatas": [], "queueDatas": [], "topicQueueMappingInfo": MAPPING}),
        (21, {"dataVersion": {"counter": 1, "timestatmp": 1795191777316}, "topicConfigTable": {}}),
    ],
)
def test_members_of_older_releases_are_known(code: int, body: dict[str, object]) -> None:
    found = decode_body(code, True, 0, json.dumps(body).encode(), {})
    assert (found.problem, found.notes) == (None, ())
    assert found.value == body
