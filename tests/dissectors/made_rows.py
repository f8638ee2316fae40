"""Rows for tests: one good exchange, and what differs from it."""

from __future__ import annotations

import msgspec

from dissectors.rows.record import ExchangeRecord

START = 1_795_168_800_000_000_000  # 2026-11-20T10:00:00Z

_BASE = ExchangeRecord(
    capture="a.pcap",
    conversation=3,
    client_address="10.0.0.5:51234",
    server_address="10.0.0.1:10911",
    status="answered",
    request_packet=4,
    response_packet=6,
    request_time=START + 123_456_789,
    response_time=START + 124_690_789,
    latency_us=1234,
    opaque=17,
    request_code=310,
    request_name="SEND_MESSAGE_V2",
    response_code=0,
    response_name="SUCCESS",
    remark=None,
    language="JAVA",
    version=401,
    version_name="V4_9_4",
    serialize_type="JSON",
    topic="OrderTopic",
    group="order-producers",
    queue_id=3,
    broker_name="broker-a",
    unique_key="0A000005D2F418B4AAC2123456780000",
    keys="order-1 order-2",
    tags="created",
    body_bytes=324,
    request_bytes=612,
    response_bytes=180,
    missing_bytes=0,
    message_count=1,
    queue_offset=4711,
    offset_msg_id="0A00000100002A9F0000000000000000",
    rtt_us=210,
    end=None,
    findings=[],
)


def record(**changes: object) -> ExchangeRecord:
    """Return the good exchange with other values in some columns."""
    return msgspec.structs.replace(_BASE, **({"outcome_class": "", "key_time": None} | changes))


def unanswered(**changes: object) -> ExchangeRecord:
    """Return an exchange without a response."""
    absent = dict.fromkeys(
        [
            "response_packet",
            "response_time",
            "latency_us",
            "response_code",
            "response_name",
            "response_bytes",
            "queue_offset",
            "offset_msg_id",
        ]
    )
    return record(**(absent | {"status": "unanswered", "end": "open"} | changes))
