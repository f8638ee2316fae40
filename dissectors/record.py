"""The exchange as one flat row: the contract between decode, replay and the reports.

A column is one field of `ExchangeRecord`; JSONL, CSV, Arrow and Spark forms, the ``--where``
filter and ``docs/decoded-log.md`` follow from it and from `COLUMNS`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

ANSWERED = "answered"
UNANSWERED = "unanswered"
ONEWAY = "oneway"
ORPHAN = "orphan"
STATUSES = (ANSWERED, UNANSWERED, ONEWAY, ORPHAN)


class ExchangeRecord(msgspec.Struct, gc=False):
    """A request and its response, or what is known of them, as one row.

    Times are nanoseconds since the epoch here; JSONL and CSV show them as ISO 8601 in UTC,
    Parquet as UTC timestamps of microseconds.
    """

    capture: str
    conversation: int
    requester: str
    responder: str
    status: str
    request_packet: int | None
    response_packet: int | None
    request_time: int | None
    response_time: int | None
    latency_us: int | None
    opaque: int
    request_code: int | None
    request_name: str | None
    response_code: int | None
    response_name: str | None
    remark: str | None
    language: str | None
    version: int | None
    version_name: str | None
    serialize_type: str
    topic: str | None
    group: str | None
    queue_id: int | None
    broker_name: str | None
    unique_key: str | None
    keys: str | None
    tags: str | None
    body_bytes: int
    request_bytes: int | None
    response_bytes: int | None
    missing_bytes: int
    message_count: int | None
    queue_offset: int | None
    offset_msg_id: str | None
    rtt_us: int | None
    end: str | None
    expert: list[str]


class Column(NamedTuple):
    """What one column of the record holds."""

    name: str
    type: str
    """string, int, time (UTC) or list of strings"""
    unit: str
    """unit of a number; empty: none"""
    meaning: str
    source: str
    """where the value is taken from"""


COLUMNS: tuple[Column, ...] = (
    Column("capture", "string", "", "name of the capture file", "the file; `-` is standard input"),
    Column(
        "conversation", "int", "", "number of the TCP connection, in order of appearance", "TCP"
    ),
    Column("requester", "string", "", "`address:port` that sent the request", "IP and TCP header"),
    Column("responder", "string", "", "`address:port` that must answer", "IP and TCP header"),
    Column("status", "string", "", "`answered`, `unanswered`, `oneway` or `orphan`", "pairing"),
    Column("request_packet", "int", "", "packet that completed the request", "capture"),
    Column("response_packet", "int", "", "packet that completed the response", "capture"),
    Column("request_time", "time", "", "time of that packet", "capture"),
    Column("response_time", "time", "", "time of that packet", "capture"),
    Column("latency_us", "int", "µs", "response time less request time", "capture"),
    Column("opaque", "int", "", "number that pairs request and response", "frame header"),
    Column(
        "request_code",
        "int",
        "",
        "request code, the real one where the header cut it",
        "frame header",
    ),
    Column("request_name", "string", "", "its name", "RequestCode"),
    Column("response_code", "int", "", "response code", "frame header"),
    Column("response_name", "string", "", "its name", "ResponseCode"),
    Column("remark", "string", "", "remark of the response, else of the request", "frame header"),
    Column(
        "language",
        "string",
        "",
        "language of the requester (of the responder for an orphan)",
        "frame header",
    ),
    Column("version", "int", "", "MQVersion ordinal of the same", "frame header"),
    Column("version_name", "string", "", "its name", "MQVersion"),
    Column(
        "serialize_type",
        "string",
        "",
        "`JSON` or `ROCKETMQ`, of the request (of an orphan: the response)",
        "frame prefix",
    ),
    Column("topic", "string", "", "topic of the request", "ext fields `topic`, `b`, `originTopic`"),
    Column(
        "group",
        "string",
        "",
        "producer or consumer group of the request",
        "ext fields; heartbeat: body",
    ),
    Column(
        "queue_id",
        "int",
        "",
        "queue of the request, else of the response",
        "ext fields `queueId`, `e`",
    ),
    Column(
        "broker_name",
        "string",
        "",
        "broker name of the request",
        "ext fields `bname`, `n`, `brokerName`",
    ),
    Column(
        "unique_key",
        "string",
        "",
        "client's message id",
        "property `UNIQ_KEY`; send back and end transaction: ext field",
    ),
    Column("keys", "string", "", "keys of the message, separated by blanks", "property `KEYS`"),
    Column("tags", "string", "", "tag of the message", "property `TAGS`"),
    Column(
        "body_bytes",
        "int",
        "bytes",
        "body length of the request, or of the response where the request has none",
        "frame prefix",
    ),
    Column(
        "request_bytes",
        "int",
        "bytes",
        "whole frame of the request, length prefix included",
        "frame prefix",
    ),
    Column("response_bytes", "int", "bytes", "whole frame of the response", "frame prefix"),
    Column(
        "missing_bytes",
        "int",
        "bytes",
        "bytes of both bodies that the capture does not have",
        "TCP",
    ),
    Column("message_count", "int", "", "messages sent, or messages in the response", "body"),
    Column(
        "queue_offset",
        "int",
        "",
        "offset in the queue: of the response, else the one asked for",
        "ext fields `queueOffset`, `offset`, `commitOffset`",
    ),
    Column(
        "offset_msg_id", "string", "", "broker's message id", "ext field `msgId` of a send response"
    ),
    Column(
        "rtt_us",
        "int",
        "µs",
        "round trip of the connection: from its SYN to the acknowledgement of the SYN/ACK",
        "TCP handshake, where it was captured",
    ),
    Column(
        "end",
        "string",
        "",
        "how the connection of a request without answer ended: `reset`, `closed` or `open`"
        " (it had not when the request was given up)",
        "TCP",
    ),
    Column("expert", "list", "", "kinds of the findings about the two frames", "ExpertKind"),
)
