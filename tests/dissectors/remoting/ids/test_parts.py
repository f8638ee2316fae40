"""Parts of fields and properties: Java's examples, which field means what, noise, limits."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.headers import HEADERS
from dissectors.remoting.ids.parts import (
    FIELDS,
    LONGEST_TEXT,
    PROPERTIES,
    header_parts,
    property_parts,
)
from dissectors.remoting.ids.trace_context import SW8, TRACEPARENT
from dissectors.remoting.messages.properties import property_of

HOUR = 3_600_000
CLIENT_ID = "C000020A07494E0E2F2A67872EEA0003"
BORN = 1795228112618
"""As MessageClientIDSetter.getNearlyTimeFromID of 5.5.0 reads it, in UTC."""
CLIENT_PARTS = {
    "address": "192.0.2.10",
    "pid": 1865,
    "loaderHash": "4e0e2f2a",
    "bornTime": BORN,
    "counter": 3,
}
OFFSET_ID = "7F4D000B00002A9F000000000000933B"
OFFSET_PARTS = {"storeHost": "127.77.0.11:10911", "commitLogOffset": 37691}
"""As MessageDecoder.decodeMessageId of 5.5.0 reads it."""


def field(header: str | None, name: str, text: str, reference: int = BORN) -> object:
    return header_parts(header, {name: text}, reference).get(name)


@pytest.mark.parametrize("name", ["UNIQ_KEY", "__transactionId__", "DLQ_ORIGIN_MESSAGE_ID"])
def test_ids_of_clients(name: str) -> None:
    assert property_parts({"a": "b", name: CLIENT_ID}, BORN + 5) == {name: CLIENT_PARTS}


def test_which_id_a_field_holds() -> None:
    assert field("SendMessageResponseHeader", "msgId", OFFSET_ID) == OFFSET_PARTS
    assert field("CheckTransactionStateRequestHeader", "offsetMsgId", OFFSET_ID) == OFFSET_PARTS
    for header in ("EndTransactionRequestHeader", "CheckTransactionStateRequestHeader"):
        assert field(header, "msgId", CLIENT_ID) == CLIENT_PARTS
        assert field(header, "transactionId", CLIENT_ID) == CLIENT_PARTS
    for unsure in (None, "ConsumeMessageDirectlyResultRequestHeader"):
        assert field(unsure, "msgId", CLIENT_ID) == CLIENT_PARTS
        assert field(unsure, "msgId", OFFSET_ID) == OFFSET_PARTS
    # Process 65536 has a pid of 0 in its ids: only the field tells that this is a client's.
    odd = CLIENT_ID[:8] + "00000000002A" + CLIENT_ID[20:]
    assert "pid" in str(field("RecallMessageResponseHeader", "msgId", odd))
    assert "storeHost" in str(field("SendMessageResponseHeader", "msgId", odd))


def test_a_list_of_ids() -> None:
    found = field("SendMessageResponseHeader", "msgId", f"{OFFSET_ID},x,{OFFSET_ID}")
    assert found == [OFFSET_PARTS, "x", OFFSET_PARTS]
    assert field("SendMessageResponseHeader", "msgId", "a,b") is None


def test_a_key_is_an_id_when_the_query_says_so() -> None:
    fields = {"topic": "T", "key": CLIENT_ID}
    assert header_parts("QueryMessageRequestHeader", fields, BORN) == {}
    marked = fields | {"_UNIQUE_KEY_QUERY": "true"}
    assert header_parts("QueryMessageRequestHeader", marked, BORN) == {"key": CLIENT_PARTS}


@pytest.mark.parametrize("hours", [-8, 2, 5.75, 8, 14])
def test_the_zone_of_the_client(hours: float) -> None:
    """A client east of UTC counts from an earlier midnight, so its ids say a later time."""
    reference = BORN + 20 - round(hours * HOUR)
    parts = property_parts({"UNIQ_KEY": CLIENT_ID}, reference)["UNIQ_KEY"]
    assert isinstance(parts, dict)
    assert parts["bornTime"] == reference - 20
    assert parts["utcOffsetMinutes"] == hours * 60


@pytest.mark.parametrize("hours", [0, 8, 9.5])
def test_a_client_that_counts_from_noon(hours: float) -> None:
    """Clients before 4.1.0 that start in the afternoon: 12 hours early, whatever the zone."""
    reference = BORN + 20 - round((hours - 12) * HOUR)
    noon = property_parts({"UNIQ_KEY": CLIENT_ID}, reference, True)["UNIQ_KEY"]
    usual = property_parts({"UNIQ_KEY": CLIENT_ID}, reference)["UNIQ_KEY"]
    assert isinstance(noon, dict)
    assert isinstance(usual, dict)
    assert noon["bornTime"] == usual["bornTime"] == reference - 20
    assert "utcOffsetMinutes" not in noon
    assert usual.get("utcOffsetMinutes") == (None if hours == 0 else hours * 60 - 720)


def test_a_zone_that_is_certain_of_any_client() -> None:
    """No zone is so far east that noon would be taken for its midnight."""
    parts = property_parts({"UNIQ_KEY": CLIENT_ID}, BORN + 20 - 8 * HOUR, True)["UNIQ_KEY"]
    assert isinstance(parts, dict)
    assert parts["utcOffsetMinutes"] == 480


@pytest.mark.parametrize("later", [0, 59_000, 5 * 60_000, 100 * 60_000 + 123_000, 30 * HOUR])
def test_an_id_that_tells_no_zone_is_read_in_utc(later: int) -> None:
    assert property_parts({"UNIQ_KEY": CLIENT_ID}, BORN + later)["UNIQ_KEY"] == CLIENT_PARTS


def test_a_receipt() -> None:
    """As the getters of ExtraInfoUtil of 5.5.0 read it."""
    text = "0 1795228121168 10000 3 1 broker-a 2 1"
    expected = {
        "startOffset": 0,
        "popTime": 1795228121168,
        "invisibleTime": 10000,
        "reviveQid": 3,
        "topicKind": "retry V1",
        "brokerName": "broker-a",
        "queueId": 2,
        "queueOffset": 1,
    }
    assert property_parts({"POP_CK": text}, 0) == {"POP_CK": expected}
    assert field("AckMessageRequestHeader", "extraInfo", text) == expected
    del expected["queueOffset"]
    assert field("AckMessageRequestHeader", "extraInfo", text[:-2]) == expected


def test_lists_of_a_pop_response() -> None:
    fields = {
        "startOffsetInfo": "0 2 5;2 1 0",
        "msgOffsetInfo": "0 2 5,6;7 1 0",
        "orderCountInfo": "0 2 1;0 qo2%6 3",
    }
    assert header_parts("PopMessageResponseHeader", fields, 0) == {
        "startOffsetInfo": [
            {"topicKind": "normal", "queueId": 2, "startOffset": 5},
            {"topicKind": "retry V2", "queueId": 1, "startOffset": 0},
        ],
        "msgOffsetInfo": [
            {"topicKind": "normal", "queueId": 2, "offsets": [5, 6]},
            {"topicKind": "7", "queueId": 1, "offsets": [0]},
        ],
        "orderCountInfo": [
            {"topicKind": "normal", "queueId": 2, "count": 1},
            {"topicKind": "normal", "queueId": 2, "queueOffset": 6, "count": 3},
        ],
    }
    assert header_parts("PopMessageResponseHeader", {"startOffsetInfo": ""}, 0) == {}
    assert header_parts("PopMessageResponseHeader", {"startOffsetInfo": "0 2 5;x"}, 0) == {}


def test_a_recall_handle_has_an_id_in_it() -> None:
    text = base64.urlsafe_b64encode(f"v1 T b 1795227814001 {CLIENT_ID}".encode()).decode()
    assert field("RecallMessageRequestHeader", "recallHandle", text) == {
        "version": "v1",
        "topic": "T",
        "brokerName": "b",
        "timestamp": 1795227814001,
        "messageId": CLIENT_ID,
        "parts": {"messageId": CLIENT_PARTS},
    }
    foreign = base64.urlsafe_b64encode(b"v1 T b 1 id").decode()
    assert "parts" not in str(field("RecallMessageRequestHeader", "recallHandle", foreign))


@pytest.mark.parametrize("text", [CLIENT_ID, f"TimerTopic+{CLIENT_ID}"])
def test_the_id_that_a_recall_names(text: str) -> None:
    assert property_parts({"TIMER_DEL_UNIQKEY": text}, BORN) == {"TIMER_DEL_UNIQKEY": CLIENT_PARTS}


def test_the_key_of_a_brokers_pop_record() -> None:
    parts = property_parts({"UNIQ_KEY": "T@2@5@g@1795228121168@broker-a@ck"}, 0)["UNIQ_KEY"]
    assert parts == {
        "kind": "ck",
        "topic": "T",
        "queueId": 2,
        "offset": "5",
        "consumerGroup": "g",
        "popTime": 1795228121168,
        "brokerName": "broker-a",
    }


def test_trace_contexts() -> None:
    """The example of the W3C recommendation, section 3.2.3; that of SkyWalking's protocol, v3."""
    sw8 = [
        "1",
        "TRACEID",
        "SEGMENTID",
        "3",
        "PARENT_SERVICE",
        "PARENT_INSTANCE",
        "PARENT_ENDPOINT",
        "IPPORT",
    ]
    coded = [
        part if at in (0, 3) else base64.b64encode(part.encode()).decode()
        for at, part in enumerate(sw8)
    ]
    properties = {
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "sw8": "-".join(coded),
    }
    assert property_parts(properties, 0) == {
        "traceparent": {
            "version": 0,
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
            "parentId": "00f067aa0ba902b7",
            "sampled": True,
        },
        "sw8": {
            "sampled": True,
            "traceId": "TRACEID",
            "segmentId": "SEGMENTID",
            "spanId": 3,
            "service": "PARENT_SERVICE",
            "instance": "PARENT_INSTANCE",
            "endpoint": "PARENT_ENDPOINT",
            "address": "IPPORT",
        },
    }


def test_readers_are_for_fields_and_properties_that_exist() -> None:
    named = {field.name for fields in HEADERS.values() for field in fields}
    for name in FIELDS:
        header, dot, own = name.rpartition(".")
        known = {field.name for field in HEADERS[header]} if dot else named
        assert own in known, name
    for name in PROPERTIES:
        assert name in (TRACEPARENT, SW8) or property_of(name) is not None


def test_long_texts_are_left_alone() -> None:
    entry = "0 1 2"
    text = ";".join([entry] * (LONGEST_TEXT // (len(entry) + 1)))
    header = "PopMessageResponseHeader"
    assert len(header_parts(header, {"startOffsetInfo": text}, 0)["startOffsetInfo"]) > 10_000  # type: ignore[arg-type]
    assert header_parts(header, {"startOffsetInfo": text + ";" + text}, 0) == {}
    assert property_parts({"UNIQ_KEY": "0" * (LONGEST_TEXT + 1)}, 0) == {}


_TEXTS = st.one_of(
    st.text(max_size=60),
    st.text("0123456789ABCDEF", min_size=32, max_size=32),
    st.text("0123456789 ;,%qo@ckbA-+=", max_size=60),
    st.binary(max_size=40).map(lambda data: base64.urlsafe_b64encode(data).decode()),
)


@given(st.dictionaries(st.sampled_from(sorted(PROPERTIES)), _TEXTS), st.integers())
def test_any_property(properties: dict[str, str], reference: int) -> None:
    json.dumps(property_parts(properties, reference))


@given(
    st.dictionaries(
        st.sampled_from([name.rpartition(".")[2] for name in FIELDS] + ["key"]),
        st.one_of(_TEXTS, st.integers(), st.booleans()),
    ),
    st.sampled_from([None, *HEADERS]),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
def test_any_header(fields: dict[str, object], header: str | None, reference: int) -> None:
    marked = fields | {"_UNIQUE_KEY_QUERY": "true"}
    json.dumps(header_parts(header, marked, reference))
