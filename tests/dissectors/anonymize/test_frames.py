"""Headers and bodies, rewritten in place."""

from __future__ import annotations

import json
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.anonymize.frames import FrameRewriter
from dissectors.anonymize.pseudonyms import Pseudonyms
from dissectors.remoting.bodies.trace import encode_trace
from dissectors.remoting.ids.message_ids import (
    RecallHandle,
    decode_recall_handle,
    encode_recall_handle,
)
from dissectors.remoting.ids.trace_context import decode_sw8, decode_traceparent
from dissectors.remoting.messages.compression import compress, decompress
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.sysflag import COMPRESSION_TYPES

NAMES = Pseudonyms(b"a secret of 16 b")


def frames() -> FrameRewriter:
    return FrameRewriter(NAMES)


def test_a_body_of_json_keeps_what_is_no_name() -> None:
    body = b'{"clientID":"10.0.0.1@7#8","consumerDataSet":[{"groupName":"orders","consumeType":'
    body += b'"CONSUME_PASSIVELY","subscriptionDataSet":[{"codeSet":[-2598919],"topic":"Sh\\u00fcp"'
    body += b',"tagsSet":["TagA"],"subVersion":1234567890123}]}]}'
    new = frames().json_body(body)
    assert len(new) == len(body)
    value = json.loads(new)
    data = value["consumerDataSet"][0]
    assert data["consumeType"] == "CONSUME_PASSIVELY"
    assert data["groupName"] == NAMES.name("orders")
    subscription = data["subscriptionDataSet"][0]
    assert subscription["topic"] == NAMES.name("Shüp")
    assert subscription["subVersion"] == 1234567890123
    assert subscription["codeSet"] != [-2598919]


@given(st.binary(max_size=200))
def test_any_bytes_keep_their_length(data: bytes) -> None:
    rewriter = frames()
    for form in (0, 1):
        assert len(rewriter.header(form, data)) == len(data)
    for code in (10, 11, 34, 36, 39, 320):
        for is_response in (False, True):
            assert len(rewriter.body(code, is_response, {"sysFlag": "0"}, data)) == len(data)
    assert len(rewriter.json_body(data)) == len(data)
    assert len(rewriter.record(data)) == len(data)


@pytest.mark.parametrize("kind", ["zlib", "lz4", "zstd"])
@pytest.mark.parametrize("size", [30, 1000, 200_000])
def test_a_compressed_body_can_be_decompressed(kind: str, size: int) -> None:
    pytest.importorskip("zstandard")
    content = random.Random(1).randbytes(size)
    body = compress(content, kind)
    flag = COMPRESSION_TYPES[kind] | 1
    new = frames().body(10, False, {"topic": "T", "sysFlag": str(flag)}, body)
    assert len(new) == len(body)
    out = decompress(new, kind)
    assert out.problem is None
    assert content[:8] not in new


def test_a_secret_of_a_header_is_masked() -> None:
    header = b'{"code":10,"extFields":{"Signature":"abcdefgh","AccessKey":"rocketmq2"},"flag":0}'
    new = json.loads(frames().header(0, header))
    assert new["extFields"]["Signature"] == "xxxxxxxx"
    assert new["extFields"]["AccessKey"] != "rocketmq2"


def test_what_is_not_understood_is_dropped_and_counted() -> None:
    rewriter = frames()
    assert rewriter.body(9999, False, {}, b"secret text") == b" " * 11
    assert sum(rewriter.dropped.values()) == 11


def test_the_crc_of_a_batch_fits() -> None:
    body, properties = b"hello", b"KEYS\x01k1\x02"
    size = 20 + len(body) + 2 + len(properties)
    message = size.to_bytes(4, "big") + b"\xda\xa3\x20\xa7" + zlib.crc32(body).to_bytes(4, "big")
    message += bytes(4) + len(body).to_bytes(4, "big") + body
    message += len(properties).to_bytes(2, "big") + properties
    new = frames().body(320, False, {"b": "Orders"}, message)
    assert len(new) == len(message)
    assert new[8:12] == (zlib.crc32(new[20:25]) & 0x7FFFFFFF).to_bytes(4, "big")
    assert b"hello" not in new


KEY = "0A010203282C4E0E2F2A67974F6A0000"


@pytest.mark.parametrize(
    "body",
    [
        b"{a secret without quotes}",
        b"{'name':'a secret'}",
        b'{"name":"a secret',
        b"[secret]",
        b'{"password":123456789,"x":{"phone":secret}}',
        b'{"phone":13800138000,"note":"secret"}',
    ],
)
def test_what_is_no_json_is_dropped(body: bytes) -> None:
    new = frames().body(9999, False, {}, body)
    assert len(new) == len(body)
    for word in (b"secret", b"123456789", b"13800138000"):
        assert word not in new


def test_bytes_behind_the_last_field_are_dropped() -> None:
    record = encode_message(StoredMessage("Orders", b"text", {"KEYS": "k1"}))
    rewriter = frames()
    assert not rewriter.dropped
    longer = (len(record) + 6).to_bytes(4, "big") + record[4:] + b"secret"
    assert b"secret" not in rewriter.body(11, True, {}, longer)
    header = bytes(13) + bytes(4) + bytes(4)
    assert rewriter.header(1, header) == header
    assert b"secret" not in rewriter.header(1, header + b"secret")
    batch = (30).to_bytes(4, "big") + bytes(16) + bytes(2) + b"secret\0\0"
    assert b"secret" not in rewriter.body(320, False, {}, batch)
    assert sum(rewriter.dropped.values()) > 18


def test_names_of_digits_are_names() -> None:
    """Order numbers and telephone numbers are keys, and no numbers of the protocol."""
    rewriter = frames()
    number = "13800138000"
    new = NAMES.name(number)
    header = (
        f'{{"code":12,"extFields":{{"key":"{number}","topic":"{number}","offset":"{number}"}}}}'
    )
    fields = json.loads(rewriter.header(0, header.encode()))["extFields"]
    assert fields == {"key": new, "topic": new, "offset": number}
    text = f"KEYS\x01{number} {number}\x02TAGS\x01{number}\x02DELAY\x013\x02"
    assert rewriter.properties(text) == f"KEYS\x01{new} {new}\x02TAGS\x01{new}\x02DELAY\x013\x02"
    body = f'{{"subString":"{number} || *","tagsSet":["{number}"],"subVersion":{number}}}'.encode()
    assert json.loads(rewriter.json_body(body)) == {
        "subString": f"{new} || *",
        "tagsSet": [new],
        "subVersion": int(number),
    }
    record = {"kind": "Pub", "timeStamp": 1, "regionId": "r", "group": number, "topic": number}
    record |= {"msgId": KEY, "tags": number, "keys": number, "storeHost": "10.0.0.1:10911"}
    record |= {"bodyLength": 4, "costTime": 5, "msgType": "Normal_Msg", "success": True}
    trace = rewriter.body(10, False, {"topic": "RMQ_SYS_TRACE_TOPIC"}, encode_trace([record]))
    assert number.encode() not in trace
    assert trace.count(new.encode()) == 4
    assert NAMES.message_id(KEY).encode() in trace


@pytest.mark.parametrize("name", ["DELAY", "WAIT", "__CRC32#", "TIMER_DELIVER_MS"])
def test_a_property_of_the_protocol_may_have_any_text(name: str) -> None:
    assert "secret" not in frames().properties(f"{name}\x01a secret\x02")


def test_a_language_may_have_any_text() -> None:
    new = frames().header(0, b'{"code":10,"language":"secret","flag":0}')
    assert b"secret" not in new
    assert json.loads(frames().header(0, b'{"language":"JAVA"}')) == {"language": "JAVA"}


@pytest.mark.parametrize("name", ["tls.client.keyPassword", "secretKey", "password"])
def test_secrets_of_digits_are_masked(name: str) -> None:
    assert frames().body(25, False, {}, f"{name}=12345678".encode()) == f"{name}=xxxxxxxx".encode()
    body = json.loads(frames().json_body(f'{{"{name}":"12345678"}}'.encode()))
    assert list(body.values()) == ["xxxxxxxx"]


def test_ids_of_a_batch_are_ids() -> None:
    header = f'{{"code":0,"extFields":{{"msgId":"{KEY},{KEY}"}}}}'.encode()
    new = NAMES.message_id(KEY)
    assert json.loads(frames().header(0, header))["extFields"] == {"msgId": f"{new},{new}"}


def test_a_key_that_looks_like_an_id_is_a_name() -> None:
    digest = "D41D8CD98F00B204E9800998ECF8427E"
    new = frames().properties(f"KEYS\x01{digest}\x02")
    assert digest[8:16] not in new
    assert digest[-8:] not in new


def test_a_recall_handle_has_the_pseudonyms_of_its_message() -> None:
    handle = encode_recall_handle(RecallHandle("v1", "Orders", "broker-a", 1795808898000, KEY))
    fields = {"topic": "Orders", "recallHandle": handle}
    header = json.dumps({"code": 370, "extFields": fields}).encode()
    new = json.loads(frames().header(0, header))["extFields"]["recallHandle"]
    assert decode_recall_handle(new) == RecallHandle(
        "v1", NAMES.name("Orders"), NAMES.name("broker-a"), 1795808898000, NAMES.message_id(KEY)
    )


def test_trace_contexts_stay_such() -> None:
    w3c = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    sw8 = "1-TRACEID==-U0VHTUVOVA==-3-c2VydmljZQ==-aW5zdGFuY2U=-L29yZGVycw==-MTAuMS4yLjM="
    sw8 = sw8.replace("TRACEID==", "YWJjMTIz")
    text = frames().properties(f"traceparent\x01{w3c}\x02sw8\x01{sw8}\x02")
    first, second, _ = text.split("\x02")
    parent = decode_traceparent(first.removeprefix("traceparent\x01"))
    assert parent is not None
    assert parent.sampled
    assert parent.trace_id not in w3c
    skywalking = decode_sw8(second.removeprefix("sw8\x01"))
    assert skywalking is not None
    assert skywalking.service == NAMES.name("service")
    assert skywalking.address == NAMES.name("10.1.2.3")
    assert skywalking.span_id == 3


@pytest.mark.parametrize(
    "topic",
    [
        *("SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer", "RMQ_SYS_TRANS_HALF_TOPIC", "%LMQ%Orders"),
        *("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC", "TBW102"),
        *("SELF_TEST_TOPIC", "BenchmarkTest"),
    ],
)
@pytest.mark.parametrize("body", [b"13800138000", b'{"a":1380}'])
def test_bodies_of_applications_in_system_topics_are_replaced(topic: str, body: bytes) -> None:
    record = encode_message(StoredMessage(topic, body, {}))
    new = frames().record(record)
    assert len(new) == len(record)
    assert body not in new
    assert NAMES.body(body) in new
    assert frames().plain_body("RMQ_SYS_TRANS_OP_HALF_TOPIC", b"17,18") == b"17,18"


@pytest.mark.parametrize("text", ["\U00020bb7", "a\U00020bb7\U00020bb8\xe9"])
def test_escaped_characters_of_two_halves_are_replaced(text: str) -> None:
    body = json.dumps({"topic": text}).encode()
    new = frames().json_body(body)
    assert len(new) == len(body)
    assert json.loads(new) == {"topic": NAMES.name(text)}
    assert b"d842" not in new


def test_half_of_a_character_does_not_stay() -> None:
    body = b'{"topic":"\\ud842x\\uDFB7"}'
    assert json.loads(frames().json_body(body))["topic"] == f"\ufffd{NAMES.name('x')}\ufffd"


@pytest.mark.parametrize(
    ("member", "text"),
    [
        *(("whiteRemoteAddress", "203.0.113.*"), ("globalWhiteAddrs", "203.0.*.*")),
        *(("subscription", "10086 || 10087"), ("exp", "10086"), ("statsKey", "20240101@10086")),
        *(("AccessKey", "12345678"), ("value", "12345678"), ("clusterName", "203-0-113-7")),
    ],
)
def test_names_of_digits_are_names_in_headers(member: str, text: str) -> None:
    header = json.dumps({"code": 11, "extFields": {member: text, "queueId": "1234"}}).encode()
    fields = json.loads(frames().header(0, header))["extFields"]
    assert fields == {member: NAMES.name(text), "queueId": "1234"}


@pytest.mark.parametrize("text", ["13800138000", "203-0-113-7", "203.0.113.*", "203.0.113.7_1234"])
def test_numbers_of_unknown_members_may_be_names(text: str) -> None:
    body = json.dumps({"phoneOf": text, "clusterAddrTable": {"Prod": [text]}}).encode()
    new = frames().json_body(body)
    assert len(new) == len(body)
    assert text.encode() not in new
    assert new.count(NAMES.name(text).encode()) == 2
    rates = b'"0.0 12.5 17","offset":"123456","offsetTable":{"0":"123456"}}'
    assert frames().json_body(b'{"rates":' + rates).endswith(rates)


def test_names_of_digits_are_names_in_settings_and_bare_numbers() -> None:
    lines = "brokerName=10001\nbrokerClusterName=20240101\nobjectStoreAccessKey=12345678"
    new = frames().body(26, True, {}, f"{lines}\nlistenPort=10911".encode()).decode()
    parts = [line.split("=") for line in lines.split("\n")]
    assert new.split("\n")[-1] == "listenPort=10911"
    assert new.split("\n")[:-1] == [f"{name}={NAMES.name(value)}" for name, value in parts]
    topic = json.loads(frames().json_body(b'{"topic":12345678,"queueId":12345678}'))
    assert topic["topic"] != 12345678
    assert topic["queueId"] == 12345678


def test_the_broker_of_a_receipt_may_be_of_digits() -> None:
    receipt = "7 1795808898000 60000 0 0 10001 3 9"
    new = receipt.replace("10001", NAMES.name("10001"))
    header = json.dumps({"code": 200, "extFields": {"extraInfo": receipt}}).encode()
    assert json.loads(frames().header(0, header))["extFields"] == {"extraInfo": new}
    assert frames().properties(f"POP_CK\x01{receipt}\x02") == f"POP_CK\x01{new}\x02"


def test_only_a_batch_acknowledgement_has_bits() -> None:
    body = b'{"acks":[{"c":"orders","b":"%s"}]}'
    bits = body % b"BQ=="
    assert frames().body(200151, False, {}, bits).endswith(b'"b":"BQ=="}]}')
    assert b"BQ==" not in frames().body(200151, True, {}, bits)
    for code in (200151, 34):
        new = frames().body(code, False, {}, body % b"a secret")
        assert len(new) == len(body % b"a secret")
        assert b"secret" not in new


def test_a_topic_named_like_a_member_is_replaced_as_a_key() -> None:
    config = '{"topicName":"order","order":false,"attributes":{}}'
    body = f'{{"topicConfigTable":{{"order": {config}}},"groupList":{{"topic":["order"]}}}}'
    new = frames().json_body(body.encode())
    assert len(new) == len(body)
    order = NAMES.name("order")
    assert json.loads(new) == {
        "topicConfigTable": {order: {"topicName": order, "order": False, "attributes": {}}},
        "groupList": {NAMES.name("topic"): [order]},
    }
