"""Attempts as rows: the same as the row of the same exchange in a capture, and failed ones."""

from __future__ import annotations

import msgspec
import pytest

from dissectors.decode.pipeline import Decode
from dissectors.rows.record import ExchangeRecord
from replay.message import Attempt, Message, MessageQueue
from replay.sending.attempt import record_of_attempt
from tests.replay.java_sends import SAMPLES

OF_A_CAPTURE = (
    "capture",
    "request_packet",
    "response_packet",
    "rtt_us",
    "end",
    "findings",
    "facts",
)
QUEUE = MessageQueue("T", "broker-a", 1)


def _attempt_of(row: ExchangeRecord) -> Attempt:
    """The attempt that a capture saw."""
    assert row.request_time is not None
    assert row.request_code is not None
    return Attempt(
        1,
        MessageQueue(row.topic or "", row.broker_name or "", row.queue_id or 0),
        row.server_address,
        row.request_time,
        row.response_time,
        row.status,
        row.response_code,
        row.remark,
        local=row.client_address,
        conversation=row.conversation,
        opaque=row.opaque,
        request_code=row.request_code,
        serialize_type=row.serialize_type,
        language=row.language or "",
        version=row.version or 0,
        group=row.group or "",
        request_bytes=row.request_bytes,
        response_bytes=row.response_bytes,
        body_bytes=row.body_bytes,
        message_count=row.message_count or 0,
        queue_id=row.queue_id,
        queue_offset=row.queue_offset,
        offset_msg_id=row.offset_msg_id,
    )


@pytest.mark.parametrize(
    "name", ["send-sync-5x", "send-oneway-4x", "send-batch-5x", "acl-5x", "send-binary-header-4x"]
)
def test_a_row_says_what_the_row_of_a_capture_says(name: str) -> None:
    seen = 0
    for batch in Decode([str(SAMPLES / f"{name}.pcap")]).records():
        for row in batch:
            if row.request_code not in (310, 320):
                continue
            properties = {} if row.unique_key is None else {"UNIQ_KEY": row.unique_key}
            message = Message(row.topic or "", b"", row.tags, row.keys, properties)
            ours = record_of_attempt(message, _attempt_of(row))
            theirs = msgspec.structs.replace(row, capture="-")
            for column in OF_A_CAPTURE[1:]:
                empty: object = [] if column in ("findings", "facts") else None
                setattr(theirs, column, empty)
            assert ours == theirs
            seen += 1
    assert seen >= 3


@pytest.mark.parametrize(
    ("outcome", "status", "end"),
    [
        ("timeout", "unanswered", "open"),
        ("lost", "unanswered", "closed"),
        ("garbage", "unanswered", "closed"),
        ("connect", "unanswered", None),
        ("busy", "unanswered", None),
        ("cancelled", "unanswered", None),
    ],
)
def test_an_attempt_that_failed_is_a_row_too(outcome: str, status: str, end: str | None) -> None:
    attempt = Attempt(2, QUEUE, "127.0.0.1:1", 5, 900_000, outcome, error="connection refused")
    row = record_of_attempt(Message("T", b"b", properties={"UNIQ_KEY": "U"}), attempt)
    assert (row.status, row.end, row.remark) == (status, end, "connection refused")
    assert (row.response_time, row.latency_us, row.response_code) == (None, None, None)
    assert (row.server_address, row.broker_name, row.unique_key) == ("127.0.0.1:1", "broker-a", "U")
