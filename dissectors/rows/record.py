"""The exchange as one flat row: the contract between decode, replay, and reports.

A column is a field of `ExchangeRecord` with its `Description`; JSONL, CSV, Arrow, and Spark forms,
the ``--where`` filter, and ``docs/decoded-log.md`` follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

import msgspec

from ..remoting.code_sets import SENDS
from ..remoting.ids.message_ids import key_time_of
from ..remoting.row_facts.names import CLIENT, fact_in
from ..remoting.topic_names import original_topic_of_name
from .column import Description, columns_of
from .outcome import ANSWERED, ONEWAY, ORPHAN, STATUSES, UNANSWERED, outcome_class_of

__all__ = [
    "ANSWERED",
    "COLUMNS",
    "DERIVED",
    "ONEWAY",
    "ORPHAN",
    "STATUSES",
    "UNANSWERED",
    "ExchangeRecord",
    "MessageIdentity",
    "identity_of",
]

MessageIdentity = tuple[str, str | None]
"""UNIQ_KEY and original topic: a consumer that forwards a message to another topic, or a
producer that sends one object to two, creates two messages with one UNIQ_KEY
"""


# gc=False: rows have only texts, numbers, and lists of texts, so they are never part of a cycle.
class ExchangeRecord(msgspec.Struct, gc=False):
    """A request and its response, or what is known of them, as one row.

    Times are nanoseconds since the epoch; JSONL and CSV show them as ISO 8601 in UTC, Parquet as
    UTC timestamps in microseconds.
    """

    capture: Annotated[
        str, Description("name of the capture file", "the file; `-` is standard input")
    ]
    conversation: Annotated[
        int, Description("number of the TCP connection, in order of appearance", "TCP")
    ]
    client_address: Annotated[
        str,
        Description("`address:port` that sent the request", "IP and TCP header"),
    ]
    server_address: Annotated[
        str,
        Description("`address:port` that must respond", "IP and TCP header"),
    ]
    status: Annotated[str, Description("`answered`, `unanswered`, `oneway` or `orphan`", "pairing")]
    request_packet: Annotated[
        int | None, Description("packet that completed the request", "capture")
    ]
    response_packet: Annotated[
        int | None, Description("packet that completed the response", "capture")
    ]
    request_time: Annotated[
        int | None, Description("time of `request_packet`", "capture", type="time")
    ]
    response_time: Annotated[
        int | None, Description("time of `response_packet`", "capture", type="time")
    ]
    latency_us: Annotated[
        int | None, Description("response time less request time", "capture", unit="µs")
    ]
    opaque: Annotated[int, Description("number that pairs request and response", "frame header")]
    request_code: Annotated[
        int | None,
        Description(
            "request code, restored if the header cut it to 16 bits; null for gRPC", "frame header"
        ),
    ]
    request_name: Annotated[
        str | None, Description("name of the request", "RequestCode; gRPC: method")
    ]
    response_code: Annotated[int | None, Description("response code", "frame header; gRPC: Status")]
    response_name: Annotated[
        str | None, Description("name of the response code", "ResponseCode; gRPC: Code")
    ]
    remark: Annotated[
        str | None, Description("remark of the response, otherwise of the request", "frame header")
    ]
    language: Annotated[
        str | None,
        Description("language of the client (of the server for an orphan)", "frame header"),
    ]
    version: Annotated[
        int | None,
        Description(
            "MQVersion ordinal of the client (of the server for an orphan); null for gRPC",
            "frame header",
        ),
    ]
    version_name: Annotated[
        str | None,
        Description(
            "name of that version; gRPC: version that the client reports", "MQVersion; metadata"
        ),
    ]
    serialize_type: Annotated[
        str,
        Description(
            "`JSON` or `ROCKETMQ`, of the request (of an orphan: the response); `PROTOBUF`: gRPC",
            "frame prefix",
        ),
    ]
    topic: Annotated[
        str | None, Description("topic of the request", "ext fields `topic`, `b`, `originTopic`")
    ]
    group: Annotated[
        str | None,
        Description("producer or consumer group of the request", "ext fields; heartbeat: body"),
    ]
    queue_id: Annotated[
        int | None,
        Description(
            "queue of the response to a send; otherwise of the request, or of the response if the"
            " request has none",
            "ext fields `queueId`, `e`",
        ),
    ]
    broker_name: Annotated[
        str | None,
        Description("broker name of the request", "ext fields `bname`, `n`, `brokerName`"),
    ]
    unique_key: Annotated[
        str | None,
        Description(
            "client's message id", "property `UNIQ_KEY`; send back and end transaction: ext field"
        ),
    ]
    keys: Annotated[
        str | None, Description("keys of the message, separated by blanks", "property `KEYS`")
    ]
    tags: Annotated[str | None, Description("tag of the message", "property `TAGS`")]
    body_bytes: Annotated[
        int,
        Description(
            "body length of the request, or of the response where the request has none",
            "frame prefix",
            unit="bytes",
        ),
    ]
    request_bytes: Annotated[
        int | None,
        Description(
            "whole frame of the request, length prefix included", "frame prefix", unit="bytes"
        ),
    ]
    response_bytes: Annotated[
        int | None, Description("whole frame of the response", "frame prefix", unit="bytes")
    ]
    missing_bytes: Annotated[
        int, Description("bytes of both bodies that the capture does not have", "TCP", unit="bytes")
    ]
    message_count: Annotated[
        int | None, Description("messages sent, or messages in the response", "body")
    ]
    queue_offset: Annotated[
        int | None,
        Description(
            "offset in the queue: of the response, otherwise of the request",
            "ext fields `queueOffset`, `offset`, `commitOffset`",
        ),
    ]
    offset_msg_id: Annotated[
        str | None, Description("broker's message id", "ext field `msgId` of a send response")
    ]
    rtt_us: Annotated[
        int | None,
        Description(
            "round trip of the connection: from its SYN to the acknowledgement of the SYN/ACK",
            "TCP handshake, where it was captured",
            unit="µs",
        ),
    ]
    end: Annotated[
        str | None,
        Description(
            "how the connection of a request without response ended: `reset`, `closed` or `open`"
            " (still open when the request counted as unanswered)",
            "TCP",
        ),
    ]
    findings: Annotated[
        list[str],
        Description("kinds of the findings about the two frames", "FindingKind"),
    ]
    max_reconsume_times: Annotated[
        int | None,
        Description(
            "maximum number of redeliveries before the message becomes a dead letter; 0: it"
            " becomes one at once",
            "ext fields `maxReconsumeTimes`, `delayLevel` of a send back",
        ),
    ] = None
    brokers: Annotated[
        list[str],
        Description(
            "addresses of brokers that the exchange names, as `name=address:port`",
            "response body of a route or cluster query; ext fields of a registration",
        ),
    ] = []
    facts: Annotated[
        list[str],
        Description(
            "additional data for diagnosis, as `name=value`; the names are listed below",
            "ext fields and bodies",
        ),
    ] = []
    outcome_class: Annotated[
        str,
        Description(
            "`ok`, `stored, not durable`, `expected` (an error that healthy clients cause),"
            " `failed`, `unanswered`, `oneway`, or `orphan`",
            "status and response code",
        ),
    ] = ""
    key_time: Annotated[
        int | None,
        Description(
            "creation time of the message that a producer sends, by the milliseconds in"
            " `unique_key`; the client's time zone is unknown, so this is the latest possible"
            " time before the request: exact if the message is at most 15 minutes old",
            "property `UNIQ_KEY`, time of the request",
            type="time",
        ),
    ] = None
    client_id: Annotated[
        str | None,
        Description(
            "client id that the request contains",
            "body of a heartbeat, and of a lock of queues; ext field `clientID`; gRPC: metadata",
        ),
    ] = None
    original_topic: Annotated[
        str | None,
        Description(
            "topic that the producer sent the message to; null: unknown, such as for the retry"
            " topic of a group",
            "`topic`; of a retry topic: properties `RETRY_TOPIC`, `DLQ_ORIGIN_TOPIC`,"
            " `REAL_TOPIC`, and the name of a POP retry topic",
        ),
    ] = None

    def __post_init__(self) -> None:
        # Rows of older logs, and of our own sends, lack these.
        if not self.outcome_class:
            self.outcome_class = outcome_class_of(
                self.status, self.request_name, self.response_name, self.topic
            )
        if self.key_time is None and self.request_time is not None:
            time = _key_time_of(self.request_code, self.unique_key, self.request_time // 1000)
            self.key_time = None if time is None else time * 1000
        if self.client_id is None and self.facts:
            self.client_id = _client_id_of(self.facts)
        if self.original_topic is None and self.topic is not None:
            self.original_topic = original_topic_of_name(self.topic, self.group)


def _key_time_of(
    request_code: int | None, unique_key: str | None, request_us: int | None
) -> int | None:
    """Return the column `key_time` in µs."""
    if unique_key is None or request_us is None or request_code not in SENDS:
        return None
    return key_time_of(unique_key, request_us)


def _client_id_of(facts: Sequence[str] | None) -> str | None:
    """Return the column `client_id` of an older log, which has it among the facts."""
    return fact_in(facts or (), CLIENT)


DERIVED: Final[Mapping[str, tuple[Callable[..., object], tuple[str, ...]]]] = {
    "outcome_class": (outcome_class_of, ("status", "request_name", "response_name", "topic")),
    "key_time": (_key_time_of, ("request_code", "unique_key", "request_time")),
    "client_id": (_client_id_of, ("facts",)),
    "original_topic": (original_topic_of_name, ("topic", "group")),
}
"""derived column -> its function and source columns; times are in µs; older logs lack these"""


def identity_of(row: ExchangeRecord) -> MessageIdentity | None:
    """Return the identity of the message in an exchange, or None without UNIQ_KEY."""
    return None if row.unique_key is None else (row.unique_key, row.topic)


COLUMNS: Final = columns_of(ExchangeRecord)
