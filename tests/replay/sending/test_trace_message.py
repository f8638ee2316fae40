"""Trace messages: those of Java clients built again, and when records are sent."""

from __future__ import annotations

import json

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.remoting.bodies.trace import decode_trace, encode_trace
from dissectors.remoting.messages.properties import decode_properties
from replay.config import ProducerConfig
from replay.errors import ConfigError, InvalidMessageError
from replay.message import (
    Attempt,
    Message,
    MessageQueue,
    SendMode,
    SendResult,
    SendStatus,
    TransactionState,
    message_of_properties,
)
from replay.namespace import wrap_namespace
from replay.sending.attempt import Stored, stored_of
from replay.sending.trace_message import (
    BATCH,
    MAX_WAITING,
    TraceBuffer,
    TraceDispatcher,
    messages_of,
    record_of_end,
    record_of_send,
    trace_group,
)
from replay.sending.transaction import Transactions
from tests.replay.java_sends import SAMPLES, VECTORS
from tests.replay.script import Bench

QUEUE = MessageQueue("T", "broker-a", 1)


@pytest.mark.parametrize("name", ["send-trace-5x", "send-trace-4x"])
def test_the_trace_message_is_the_one_that_java_sent(name: str) -> None:
    records, traced = [], []
    for batch in Decode([str(SAMPLES / f"{name}.pcap")]).exchanges():
        for exchange in batch:
            asked, answered = exchange.request, exchange.response
            if asked is None or answered is None or asked.command.code != 310:
                continue
            fields = asked.command.ext_fields
            properties = decode_properties(fields["i"])
            if fields["b"] == "RMQ_SYS_TRACE_TOPIC":
                traced.append((fields, properties, asked.body))
                continue
            stored = stored_of(answered.command, MessageQueue("T", "broker-a", int(fields["e"])))
            assert isinstance(stored, Stored)
            address = exchange.server_address
            result = SendResult(
                stored.status,
                properties["UNIQ_KEY"],
                stored.queue,
                offset_msg_id=stored.offset_msg_id,
                region=stored.region,
                attempts=(Attempt(1, stored.queue, address, 0),),
            )
            message = message_of_properties(fields["b"], b"", properties)
            length = asked.body_length
            record = record_of_send(message, result, fields["a"], int(fields["g"]), 1, length)
            assert record is not None
            records.append(record)
    (fields, properties, body), *more = traced
    assert not more
    assert fields["a"] == trace_group("sample_group")
    theirs = [dict(record) for record in decode_trace(body).records]
    for ours, java in zip(records, theirs, strict=True):
        # The clock is read once more between the two times that Java tells.
        assert abs(int(str(java["timeStamp"])) - int(str(ours["timeStamp"]))) <= 1
        java["timeStamp"], java["costTime"] = ours["timeStamp"], 1
    (message,) = messages_of(records)
    assert message.topic == fields["b"]
    assert message.body == encode_trace(theirs)
    assert set((message.keys or "").split()) == set(properties["KEYS"].split())
    assert message.tags is None


@pytest.mark.skipif(not VECTORS.exists(), reason="the protocol's test vectors are not here")
def test_the_end_of_a_transaction_is_told_as_the_java_class_does() -> None:
    strings = json.loads(VECTORS.read_text())["strings"]
    expected = next(v["value"] for v in strings if v["name"] == "trace_EndTransaction")
    message = Message("TopicTest", b"b", "TagA", "k1 k2")
    record = record_of_end(
        message,
        "MSGID",
        "TXID",
        "GRP",
        "10.0.0.1:10911",
        TransactionState.COMMIT,
        1700000000000,
        from_check=False,
    )
    told = encode_trace([{**record, "msgType": "Normal_Msg"}])  # what the vector was made with
    assert told.decode() == expected


@pytest.mark.parametrize(
    ("message", "result", "kind"),
    [
        (Message("T", b"b"), {}, "Normal_Msg"),
        (Message("T", b"b").with_delay_level(2), {}, "Delay_Msg"),
        (Message("T", b"b"), {"transaction_state": TransactionState.COMMIT}, "Trans_Msg_Half"),
        (Message("RMQ_SYS_TRACE_TOPIC", b"b"), {}, None),
        (Message("rmq_sys_TRACE_DATA_north", b"b"), {}, None),
        (Message("T", b"b"), {"trace_on": False}, None),
        (Message("T", b"b"), {"attempts": ()}, None),
    ],
)
def test_what_is_told_of_a_send(
    message: Message, result: dict[str, object], kind: str | None
) -> None:
    fields: dict[str, object] = {"attempts": (Attempt(1, QUEUE, "h:1", 0),), **result}
    sent = SendResult(SendStatus.FLUSH_DISK_TIMEOUT, "ID", QUEUE, **fields)  # type: ignore[arg-type]
    record = record_of_send(message, sent, "ns%g", 1, 2, 3, "ns")
    if kind is None:
        assert record is None
    else:
        assert record is not None
        assert record["msgType"] == kind
        assert record["success"] is False
        assert record["group"] == "g"
        assert decode_trace(encode_trace([record])).problem is None


def _record(number: int, keys: str | None = None) -> dict[str, object]:
    message = Message("T", b"b", keys=keys)
    attempts = (Attempt(1, QUEUE, "h:1", 0),)
    sent = SendResult(SendStatus.SEND_OK, f"ID{number}", QUEUE, attempts=attempts)
    record = record_of_send(message, sent, "g", 1, 2, 3)
    assert record is not None
    return dict(record)


def test_records_wait_for_others_and_not_for_ever() -> None:
    buffer = TraceBuffer(batch=3, wait_ms=100)
    assert buffer.due_ms() is None
    buffer.add(_record(1), 50)
    buffer.add(_record(2), 60)
    assert buffer.due_ms() == 150
    assert buffer.take(149) == []
    assert [len(decode_trace(m.body).records) for m in buffer.take(150)] == [2]
    for number in range(7):
        buffer.add(_record(number), 200)
    assert buffer.due_ms() == 200
    assert [len(decode_trace(m.body).records) for m in buffer.take(200)] == [3, 3]
    assert buffer.take(200) == []
    assert len(buffer.take(200, everything=True)) == 1
    assert buffer.due_ms() is None


def test_records_that_find_no_room_are_counted() -> None:
    buffer = TraceBuffer()
    for number in range(MAX_WAITING + 5):
        buffer.add({"kind": "Pub", "n": number}, 0)
    assert buffer.dropped == 5


def test_a_body_has_a_limit() -> None:
    records = [_record(number, "k" * 10_000) for number in range(20)]
    messages = messages_of(records)
    assert len(messages) == 2
    assert all(len(message.body) <= 128_000 for message in messages)
    told = [record for message in messages for record in decode_trace(message.body).records]
    assert [record["msgId"] for record in told] == [f"ID{number}" for number in range(20)]


def traced(**settings: object) -> tuple[Bench, TraceDispatcher]:
    """A producer's core with traces."""
    bench = Bench(trace=True, **settings)
    return bench, TraceDispatcher(bench.sender, Transactions(bench.sender))


@pytest.mark.parametrize(("group", "namespace"), [("g" * 90, "tenant"), ("g", "n" * 118)])
def test_the_group_of_traces_is_valid_with_the_namespace(group: str, namespace: str) -> None:
    _, tracing = traced(group=group, namespace=namespace)
    assert len(wrap_namespace(namespace, tracing._sender.config.group)) == 120


def test_a_trace_topic_is_checked_with_its_namespace() -> None:
    for settings, setting in (
        ({"trace_topic": "my traces"}, "trace_topic"),
        ({"trace_topic": "t" * 120, "namespace": "tenant-1"}, "namespace"),
    ):
        with pytest.raises(ConfigError, match=f"^{setting}: "):
            ProducerConfig(group="g", **settings)  # type: ignore[arg-type]


def test_a_trace_that_cannot_be_sent_fails_no_send() -> None:
    bench, tracing = traced(max_message_size=10)  # fewer bytes than a record has
    for _ in range(BATCH + 1):
        assert bench.run(bench.sender.send(Message("T", b"b"), SendMode.SYNC)).error is None
    assert tracing.failed == 1
    (last,) = tracing.farewell()
    assert isinstance(bench.run(last).error, InvalidMessageError)
