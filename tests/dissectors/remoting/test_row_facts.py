"""Facts of an exchange: all are written and read back; nothing that was captured breaks them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.decode.pipeline import Decode
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.properties import decode_properties
from dissectors.remoting.messages.record_layout import MAGIC_V1, MAGIC_V2
from dissectors.remoting.row_facts import names
from dissectors.remoting.row_facts.bodies import (
    BODY_REQUESTS,
    message_facts,
    request_body_facts,
    response_body_facts,
)
from dissectors.remoting.row_facts.ext_fields import HEADER_FACTS, header_facts, offsets_in
from dissectors.remoting.row_facts.heartbeats import (
    AnnouncedGroup,
    AnnouncedSubscription,
    consumers_in,
    subscriptions_in,
)
from dissectors.remoting.row_facts.names import (
    FACTS,
    MAX_FACTS,
    MAX_VALUE,
    fact,
    fact_in,
    facts_in,
)
from dissectors.remoting.row_facts.routes import RoutedBroker, routed_brokers_in, slaves_in
from dissectors.remoting.row_facts.values import MAX_BODY
from tests.profiles import examples

CALLS = [str(path) for path in sorted(Path(__file__).parents[3].glob("samples/grpc-*.pcap"))]
"""captures with calls of gRPC"""
TIMED = str(Path(__file__).parents[3] / "samples" / "timer-late-5x.pcap")
"""a capture of pulls whose messages have a timer"""

SEND, SEND_V2, PULL, SEND_BACK, END, HEARTBEAT = 10, 310, 11, 36, 37, 34
PUSH_REPLY = 326
UNREGISTER, CHECK, LOCK, UNLOCK, ACK, BROKER_CONFIG, NAMESRV_CONFIG = (
    35,
    39,
    41,
    42,
    200051,
    25,
    318,
)
NESTED = b"[" * 1200 + b"]" * 1200
HEART = (
    b'{"clientID":"10.0.0.5@1","producerDataSet":[{"groupName":"makers"}],"consumerDataSet":['
    b'{"groupName":"readers","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",'
    b'"subscriptionDataSet":[{"topic":"Orders","subString":"A || B","expressionType":"TAG"},'
    b'{"topic":"Bills","subString":"a = 1 AND b > 2","expressionType":"SQL92"}]}]}'
)
ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:10911",1:"10.0.0.2:10911"},'
    b'"brokerName":"broker-a"},{"brokerAddrs":{"2":"10.0.0.3:10911"},"brokerName":"b b"}],'
    b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":8,"writeQueueNums":4}]}'
)


def test_a_heartbeat_is_read_back() -> None:
    facts = request_body_facts(HEARTBEAT, HEART)
    assert fact_in(facts, names.CLIENT) == "10.0.0.5@1"
    assert facts_in(facts, names.PRODUCER) == ["makers"]
    assert consumers_in(facts) == [AnnouncedGroup("CONSUME_PASSIVELY", "CLUSTERING", "readers")]
    assert subscriptions_in(facts) == [
        AnnouncedSubscription("readers", "Orders", "TAG", "A || B"),
        AnnouncedSubscription("readers", "Bills", "SQL92", "a = 1 AND b > 2"),
    ]


def test_what_a_heartbeat_leaves_out_has_the_values_of_rocketmq() -> None:
    body = b'{"consumerDataSet":[{"groupName":"g","subscriptionDataSet":[{"topic":"T"}]},{}]}'
    facts = request_body_facts(HEARTBEAT, body)
    assert consumers_in(facts) == [AnnouncedGroup("-", "-", "g")]
    assert subscriptions_in(facts) == [AnnouncedSubscription("g", "T", "TAG", "*")]


def test_a_route_is_read_back() -> None:
    facts = response_body_facts(ROUTE)
    assert routed_brokers_in(facts) == [
        RoutedBroker(6, 8, 4, ("0", "1"), "broker-a"),
        RoutedBroker(None, 0, 0, ("2",), "b b"),
    ]
    assert slaves_in(facts) == {"10.0.0.2:10911": "1", "10.0.0.3:10911": "2"}


@pytest.mark.parametrize(
    "value",
    [b'"6 8 8 0 x"', b"6.0", b"1e400", b"true", b"9" * 5000, b'"\\ud800"', b"[6]", b"{}", b"null"],
)
def test_what_is_no_number_of_queues_does_not_shift_the_rest(value: bytes) -> None:
    for field in (b"perm", b"readQueueNums", b"writeQueueNums"):
        body = b'{"queueDatas":[{"brokerName":"b","' + field + b'":' + value + b"}]}"
        (one,) = routed_brokers_in(response_body_facts(body))
        assert one == RoutedBroker(None, 0, 0, (), "b")


def test_what_is_no_id_of_a_broker_is_left_out() -> None:
    addresses = b'{"0 9":"a","1,2":"b",{"x":1}:"c","-1":"d",3:4,"":"e"}'
    head = b'{"queueDatas":[],"brokerDatas":[{"brokerName":"b","brokerAddrs":'
    facts = response_body_facts(head + addresses.replace(b'{"x":1}:"c",', b"") + b"}]}")
    assert routed_brokers_in(facts) == [RoutedBroker(None, 0, 0, ("-1", "3"), "b")]
    assert slaves_in(facts) == {"d": "-1"}
    assert slaves_in(response_body_facts(head + addresses + b"}]}")) == {}


@pytest.mark.parametrize("code", [LOCK, UNLOCK])
def test_queues_that_are_locked(code: int) -> None:
    asked = b'{"clientId":"c@1","consumerGroup":"g","mqSet":[{"queueId":1},{"queueId":2}]}'
    facts = request_body_facts(code, asked)
    assert facts == ["client=c@1", "group=g", "queues_asked=2"]
    assert response_body_facts(b'{"lockOKMQSet":[{"queueId":1}]}') == ["queues_locked=1"]
    assert response_body_facts(b'{"lockOKMQSet":{}}') == []


def test_members_of_a_group() -> None:
    facts = response_body_facts(b'{"consumerIdList":["a@1","b@2",3]}')
    assert fact_in(facts, names.MEMBERS) == "3"
    assert facts_in(facts, names.MEMBER) == ["a@1", "b@2"]
    assert response_body_facts(b'{"consumerIdList":"a@1"}') == []


def test_offsets_of_a_pull() -> None:
    answered = {"nextBeginOffset": "7", "minOffset": "0", "maxOffset": "9"}
    facts = header_facts(PULL, {"queueOffset": "5"}, 0, {**answered, "suggestWhichBrokerId": "1"})
    assert offsets_in(facts) == (5, 7, 0, 9)
    assert fact_in(facts, names.FROM_BROKER) == "1"
    assert offsets_in(header_facts(PULL, {"queueOffset": "5"}, -1, None)) == (5, None, None, None)
    assert offsets_in(header_facts(PULL, {}, 0, {"suggestWhichBrokerId": "0"})) == (None,) * 4
    assert offsets_in([]) == offsets_in(["offsets=1 2 3"]) == (None,) * 4


@pytest.mark.parametrize(
    "text", ["", "1 2", "²", "1_0", "+1", "9" * 19, "9" * 20, "9" * 21, "0x1", "\ud800", "-"]
)
def test_what_is_no_offset_is_absent(text: str) -> None:
    facts = header_facts(PULL, {"queueOffset": "5"}, 0, {"nextBeginOffset": text})
    assert offsets_in(facts) in [(5, None, None, None), (None,) * 4]


def timed(
    name: str, value: int = 10_000, due: int | None = None, wide: bool = False
) -> StoredMessage:
    properties = {"KEYS": "k", name: str(value)}
    if due is not None:
        properties["TIMER_OUT_MS"] = str(due)
    return StoredMessage(
        "T",
        b"TIMER_DELAY_MS\x0199\x02",
        properties,
        born_timestamp=1_000_000,
        store_timestamp=1_010_400,
        born_host="[::1]:1" if wide else "1.1.1.1:1",
        sys_flag=0x10 if wide else 0,
    )


def test_the_delay_of_a_pulled_message() -> None:
    for name, value in (
        ("TIMER_DELAY_MS", 10_000),
        ("TIMER_DELAY_SEC", 10),
        ("TIMER_DELIVER_MS", 1_010_000),
    ):
        facts = message_facts(encode_message(timed(name, value)))
        assert facts == ["stored_ms=1010400", "timer=10000 10400 -"]
    delayed = timed("TIMER_DELAY_MS", due=1_010_000, wide=True)
    assert message_facts(encode_message(delayed))[1] == "timer=10000 10400 400"
    whole = encode_message(timed("TIMER_DELAY_MS"))
    assert message_facts(whole[:-1]) == ["stored_ms=1010400"], "its end is missing"
    assert message_facts(encode_message(timed("OTHER"))) == ["stored_ms=1010400"]
    both = timed("TIMER_DELAY_MS")
    both.properties["TIMER_DELAY_SEC"] = "20"
    assert message_facts(encode_message(both))[1] == "timer=20000 10400 -", "as brokers look"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["UNIQ_KEY", "MY_UNIQ_KEY", "TIMER_DELAY_MS", "MY_TIMER_DELAY_MS", ""]),
            st.sampled_from(["", "7", "20", "UNIQ_KEY", "k\x0120"]),
        ).map("\x01".join),
        max_size=6,
    ),
    st.sampled_from([("T", MAGIC_V1), ("t" * 300, MAGIC_V2), ("", MAGIC_V2)]),
)
@example(["MY_UNIQ_KEY\x017", "UNIQ_KEY\x0120"], ("T", MAGIC_V1))
@example(["MY_TIMER_DELAY_MS\x017", "TIMER_DELAY_MS\x0120"], ("T", MAGIC_V1))
@example(["UNIQ_KEY\x017", "UNIQ_KEY\x0120", "UNIQ_KEY\x01"], ("T", MAGIC_V1))
def test_facts_of_properties_are_those_of_the_decoded_message(
    entries: list[str], kind: tuple[str, int]
) -> None:
    raw = "\x02".join(entries)
    properties = decode_properties(raw)
    message = StoredMessage(kind[0], b"x", properties, magic=kind[1], raw_properties=raw.encode())
    facts = message_facts(encode_message(message))
    key, delay = properties.get("UNIQ_KEY", ""), properties.get("TIMER_DELAY_MS", "")
    assert fact_in(facts, names.FIRST_KEY) == (key if key.isprintable() and key else None)
    assert fact_in(facts, names.TIMER) == (f"{delay} 0 -" if delay.isdecimal() else None)


def test_the_store_time_of_a_pulled_message() -> None:
    message = StoredMessage(
        "T",
        b"x",
        {},
        born_host="10.0.0.5:1",
        store_host="10.0.0.1:10911",
        store_timestamp=1_795_168_800_123,
    )
    assert message_facts(encode_message(message)) == ["stored_ms=1795168800123"]
    for size in range(76):
        assert message_facts(encode_message(message)[:size]) == []


def test_how_often_a_pulled_message_was_consumed() -> None:
    for times, expected in ((3, "3"), (0, None), (-1, None)):
        for flag in (0, 0x20):
            message = StoredMessage(
                *("T", b"x", {"UNIQ_KEY": "K"}),
                store_host="[::1]:1" if flag else "1.1.1.1:1",
                reconsume_times=times,
                sys_flag=flag,
            )
            facts = message_facts(encode_message(message))
            assert fact_in(facts, names.RECONSUMED) == expected
            assert fact_in(message_facts(encode_message(message)[:-1]), names.RECONSUMED) is None


def test_transactions() -> None:
    assert header_facts(SEND_V2, {"f": "4"}, 0, {}) == ["transaction=prepared"]
    assert header_facts(SEND, {"sysFlag": "12"}, 0, {}) == []
    assert header_facts(SEND, {"sysFlag": "x"}, 0, {}) == []
    for flag, decision in (("8", "commit"), ("12", "rollback"), ("0", "unknown"), ("5", "5")):
        asked = {"commitOrRollback": flag, "fromTransactionCheck": "true", "transactionId": "A1"}
        facts = header_facts(END, asked, -1, None)
        assert facts == [f"decision={decision}", "checked=true", "transaction_id=A1"]
    assert header_facts(CHECK, {"msgId": "A1"}, -1, None) == ["transaction_id=A1"]


def test_other_ext_fields() -> None:
    assert header_facts(SEND_BACK, {"delayLevel": "3"}, 0, {}) == ["delay_level=3"]
    assert header_facts(ACK, {"extraInfo": "0 1000 60000 0 0 b 1"}, 0, {}) == ["deadline_ms=61000"]
    for receipt in ("", "0 1000", "0 x 1 2", "0 1 ² 2"):
        assert header_facts(ACK, {"extraInfo": receipt}, 0, {}) == []
    assert header_facts(UNREGISTER, {"clientID": "c@1"}, 0, {}) == ["client=c@1"]
    again = {"reconsumeTimes": "2", "maxReconsumeTimes": "16"}
    assert header_facts(SEND, again, 0, {}) == ["reconsumed=2", "reconsume_limit=16"]
    assert header_facts(SEND_V2, {"i": "K\1é"}, 13, {}) == ["properties_bytes=4"]


def test_members_of_a_heartbeat_in_another_spelling() -> None:
    body = b'{"ClientID":"c","consumerDataSet":[{"groupName":"g","ConsumeFromWhere":"X"}]}'
    assert request_body_facts(HEARTBEAT, body) == [
        "client=c",
        "consumer=- - g",
        "consume_from=X g",
        "respelled=ClientID",
        "respelled=ConsumeFromWhere",
    ]


def test_all_facts_of_the_document_are_written_by_something() -> None:
    written = [
        *request_body_facts(HEARTBEAT, HEART),
        *request_body_facts(HEARTBEAT, b'{"ClientID":"c"}'),
        *response_body_facts(ROUTE),
        *request_body_facts(LOCK, b'{"consumerGroup":"g","mqSet":[]}'),
        *response_body_facts(b'{"lockOKMQSet":[]}'),
        *response_body_facts(b'{"consumerIdList":["a"]}'),
        *header_facts(PULL, {}, 0, {"suggestWhichBrokerId": "1"}),
        *header_facts(PULL, {}, -1, None),
        *header_facts(SEND, {"properties": "CORRELATION_ID\1c\2TTL\0019\2"}, 0, {}),
        *message_facts(encode_message(timed("TIMER_DELAY_MS"))),
        *header_facts(SEND_BACK, {"delayLevel": "0"}, 0, {}),
        *header_facts(
            SEND, {"sysFlag": "4", "reconsumeTimes": "1", "maxReconsumeTimes": "2"}, 0, {}
        ),
        *header_facts(SEND, {"properties": "x", "AccessKey": "me"}, 1, {}),
        *header_facts(
            END,
            {"commitOrRollback": "8", "fromTransactionCheck": "true", "transactionId": "A"},
            0,
            {},
        ),
        *header_facts(ACK, {"extraInfo": "0 1 2 3"}, 0, {}),
        *request_body_facts(BROKER_CONFIG, b"a=b"),
        *(
            one
            for rows in Decode([*CALLS, TIMED]).records()
            for row in rows
            for one in row.facts or ()
        ),
    ]
    injected = {names.FAULT}  # by the proxy; tests of it see that it is read back
    found = {one.partition("=")[0] for one in written}
    assert found | injected == {one.name for one in FACTS} | {names.CLIENT}  # a column of the row


@pytest.mark.parametrize(("flags", "held"), [("2", "15000"), ("3", "15000"), ("1", "0"), ("", "0")])
def test_how_long_a_pull_without_a_response_may_be_held(flags: str, held: str) -> None:
    asked = {"queueOffset": "7", "sysFlag": flags, "suspendTimeoutMillis": "15000"}
    assert header_facts(PULL, asked, -1, None) == ["offsets=7 - - -", f"suspend_ms={held}"]
    assert header_facts(PULL, asked, 0, {}) == ["offsets=7 - - -"]


def test_what_joins_a_request_and_its_reply() -> None:
    properties = "KEYS\1k\2CORRELATION_ID\1one\2TTL\0013000\2REPLY_TO_CLIENT\1me\2"
    facts = ["correlation=one", "ttl_ms=3000"]
    assert header_facts(SEND, {"properties": properties}, 0, {}) == facts
    assert header_facts(PUSH_REPLY, {"properties": properties}, 0, {}) == facts
    assert header_facts(SEND, {"properties": "KEYS\1k\2"}, 0, {}) == []


def test_values_may_have_any_characters() -> None:
    facts = [fact("client", "a=b c\n\ud800"), fact("client", 7), "clients=x", "client"]
    assert fact_in(facts, "client") == "a=b c\n\ud800"
    assert facts_in(facts, "client") == ["a=b c\n\ud800", "7"]
    assert fact_in(facts, "none") is None
    body = '{"clientID":"a=b c\\u0001\\u202e","producerDataSet":[{"groupName":"= ="}]}'
    named = request_body_facts(HEARTBEAT, body.encode())
    assert fact_in(named, names.CLIENT) == "a=b c\1\u202e"
    assert facts_in(named, names.PRODUCER) == ["= ="]


# -- secrets --------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [BROKER_CONFIG, NAMESRV_CONFIG])
def test_settings_are_named_without_values(code: int) -> None:
    body = (
        b"brokerRole = SLAVE\r\n# comment=1\n!other=1\nadminPassword=s3cret\\\nmore-s3cret=1\n"
        b"s3cret:colon\ns3cret without sign\n-----BEGIN s3cret-----\nMIICs3cret+/x=\n"
        b"TUlJs3cret==\nrocketmq.acl.file=\n=s3cret\n\n"
    )
    facts = request_body_facts(code, body)
    assert facts == ["setting=brokerRole", "setting=adminPassword", "setting=rocketmq.acl.file"]


def test_of_credentials_only_the_account_of_a_refused_client_is_named() -> None:
    secret = {"AccessKey": "account-1", "Signature": "s3cret", "SecurityToken": "s3cret"}
    for code in HEADER_FACTS:
        for answer in (-1, 0, 1, 2, 14, 16, 17):
            facts = header_facts(code, secret, answer, {} if answer >= 0 else None)
            assert "s3cret" not in str(facts)
            assert ("account=account-1" in facts) == (answer in (1, 16))


# -- bounds ---------------------------------------------------------------------------------------


def bounded(facts: Sequence[str], most: int = MAX_FACTS + 1) -> bool:  # and the client id
    longest = max(len(one.name) for one in FACTS) + 1 + MAX_VALUE
    return len(facts) <= most and all(len(one) <= longest for one in facts)


HOSTILE = {
    "nested": NESTED,
    "nested objects": b'{"a":' * 1200 + b"1" + b"}" * 1200,
    "nested under a name": b'{"queueDatas":' + NESTED + b',"mqSet":' + NESTED + b"}",
    "long number": b'{"clientID":' + b"9" * 100_000 + b',"consumerIdList":[' + b"9" * 9999 + b"]}",
    "long name": b'{"clientID":"' + b"x" * 200_000 + b'","clientId":"' + b"y" * 9000 + b'"}',
    "surrogates": b'{"clientID":"\\ud800","consumerIdList":["\\udfff","\\ud83d"],"clientId":"\\u"}',
    "no UTF-8": b'{"clientID":"\xff\xfe","consumerIdList":["\xc3"],"clientId":"\x80"}',
    "not closed": b'{"clientID":"a","consumerDataSet":[{"groupName":"g',
    "references": b'{"clientID":"a","consumerDataSet":{"$ref":"$"},"mqSet":{"$ref":"$.mqSet"}}',
    "other types": b'{"clientID":[],"consumerDataSet":[1,{"groupName":{}}],"mqSet":3,"clientId":1}',
    "many queues": b'{"mqSet":[' + b"{}," * 10_000 + b'{}],"lockOKMQSet":[]}',
    "too long": b'{"clientID":"a","mqSet":[' + b" " * MAX_BODY + b"]}",
    "16 MiB": b'{"queueDatas":[' + b" " * (16 << 20) + b"]}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bodies_give_few_facts_and_raise_nothing(name: str) -> None:
    body = HOSTILE[name]
    for code in BODY_REQUESTS:
        assert bounded(request_body_facts(code, body))
    assert bounded(response_body_facts(body))
    assert message_facts(body) == []


def test_many_parts_of_a_body_give_bounded_facts() -> None:
    subscriptions = [{"topic": f"T{number}", "subString": "x" * 900} for number in range(150)]
    groups = [{"groupName": f"g{number}"} for number in range(300)]
    groups[0]["subscriptionDataSet"] = subscriptions  # type: ignore[assignment]
    value = {"clientID": "c", "producerDataSet": groups[1:], "consumerDataSet": groups}
    heart = json.dumps(value)
    assert len(heart) < MAX_BODY
    assert bounded(request_body_facts(HEARTBEAT, heart.encode()))
    assert len(request_body_facts(HEARTBEAT, heart.encode())) == 1 + MAX_FACTS

    addresses = {str(number): f"10.0.0.1:{number}" for number in range(300)}
    brokers = [{"brokerName": f"b{number}", "brokerAddrs": addresses} for number in range(20)]
    queues = [{"brokerName": f"b{number}", "perm": 6} for number in range(3000)]
    route = json.dumps({"queueDatas": queues, "brokerDatas": brokers}).encode()
    assert len(route) < MAX_BODY
    facts = response_body_facts(route)
    assert bounded(facts)
    assert all(len(one.ids) <= 16 for one in routed_brokers_in(facts))

    members = json.dumps({"consumerIdList": [f"c@{number}" for number in range(9000)]}).encode()
    assert bounded(response_body_facts(members))
    assert fact_in(response_body_facts(members), names.MEMBERS) == "9000"
    asked = json.dumps({"mqSet": [1] * 100_000}, separators=(",", ":")).encode()
    assert request_body_facts(LOCK, asked) == ["queues_asked=100000"]
    settings = b"\n".join(b"name%d=1" % number for number in range(9000))
    assert bounded(request_body_facts(BROKER_CONFIG, settings))


def test_long_ext_fields_are_bounded() -> None:
    names = (
        *("queueOffset", "delayLevel", "commitOrRollback", "transactionId", "msgId", "extraInfo"),
        *("clientID", "sysFlag", "reconsumeTimes", "maxReconsumeTimes", "properties", "AccessKey"),
        *("a", "b", "f", "g", "i", "j", "l", "nextBeginOffset", "suggestWhichBrokerId"),
    )
    long = dict.fromkeys(names, "9" * 100_000)
    for code in HEADER_FACTS:
        for answer in (-1, 0, 1):
            assert bounded(header_facts(code, long, answer, long if answer >= 0 else None), 8)


texts = st.text(max_size=30) | st.sampled_from(["", " ", "=", "0", "-1", "9" * 30, "\ud800"])
leaves = st.none() | st.booleans() | st.integers() | st.floats() | texts
NAMES = st.sampled_from(
    (
        *("clientID", "clientId", "consumerGroup", "mqSet", "lockOKMQSet", "consumerIdList"),
        *("producerDataSet", "consumerDataSet", "groupName", "subscriptionDataSet", "topic"),
        *("queueDatas", "brokerDatas", "brokerName", "brokerAddrs", "subString", "perm"),
    )
)
bodies = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES | texts, inner, max_size=4),
    max_leaves=20,
)


@examples(0.5)
@given(st.dictionaries(NAMES, bodies, max_size=6), st.integers(0, 40))
def test_any_body(value: dict[str, object], cut: int) -> None:
    body = json.dumps(value).encode()
    for one in (body, body[: len(body) - cut], body.replace(b'"', b"'")):
        for code in BODY_REQUESTS:
            read_back(request_body_facts(code, one))
        read_back(response_body_facts(one))


@given(
    st.sampled_from(sorted(HEADER_FACTS)),
    st.dictionaries(st.sampled_from(["queueOffset", "extraInfo", "f", "sysFlag", "i"]), texts),
    st.none() | st.dictionaries(st.sampled_from(["nextBeginOffset", "minOffset"]), texts),
)
def test_any_ext_fields(code: int, asked: dict[str, str], answered: dict[str, str] | None) -> None:
    read_back(header_facts(code, asked, -1 if answered is None else 1, answered))


@given(st.binary(max_size=200))
def test_any_bytes(body: bytes) -> None:
    for code in BODY_REQUESTS:
        read_back(request_body_facts(code, body))
    for one in (body, b'{"queueDatas"' + body, b'{"consumerIdList"' + body):
        read_back(response_body_facts(one))
    read_back(message_facts(body))


def read_back(facts: list[str]) -> None:
    """All facts are declared and bounded, and what reads them takes them."""
    assert bounded(facts)
    assert {one.partition("=")[0] for one in facts} <= {names.CLIENT, *(one.name for one in FACTS)}
    for one in routed_brokers_in(facts):
        assert one.perm is None or -(1 << 31) <= one.perm < 1 << 31
    assert len(routed_brokers_in(facts)) == len(facts_in(facts, names.ROUTE))
    assert len(subscriptions_in(facts)) <= len(facts_in(facts, names.SUBSCRIPTION))
    slaves_in(facts)
    consumers_in(facts)
    offsets_in(facts)
