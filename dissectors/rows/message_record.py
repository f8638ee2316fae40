"""Row of a message in an exchange: the third table of the decoded log.

One row per message and exchange. The event is the furthest step that the exchange shows: an
answered send is `stored` or `refused`, and `sent` only if no response was seen. An offset commit
covers a range of messages, which its row has in `covers`.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from .column import Description, columns_of

SENT = "sent"
STORED = "stored"
REFUSED = "refused"
DELIVERED = "delivered"
VIEWED = "viewed"
ACKNOWLEDGED = "acknowledged"
RETURNED = "returned"
DEAD = "dead"
PREPARED = "prepared"
COMMITTED = "committed"
ROLLED_BACK = "rolled_back"
UNDECIDED = "undecided"
CHECKED = "checked"
RECALLED = "recalled"
ON_DISK = "on_disk"

EVENTS: Final = {
    SENT: "sent; unanswered, or oneway",
    STORED: "sent, and stored according to the response",
    REFUSED: "a request about the message was refused: see `request_name`, `response_name`",
    DELIVERED: "in the response to a pull or pop, or pushed as a reply",
    VIEWED: "in the response to a query, view, or peek; not a delivery",
    ACKNOWLEDGED: "covered by a POP acknowledgement or an offset commit",
    RETURNED: "returned by a consumer for redelivery, or given a new invisible time (POP)",
    DEAD: "moved to the dead-letter queue on request, or sent to a `%DLQ%` topic",
    PREPARED: "stored as a half message",
    COMMITTED: "its transaction was committed",
    ROLLED_BACK: "its transaction was rolled back",
    UNDECIDED: "its producer ended the transaction or responded to a check with `unknown`",
    CHECKED: "the broker checked back with its producer",
    RECALLED: "recalled before its delivery time",
    ON_DISK: "in the commit log of a broker: only from `decode store`, which also has the commits,"
    " rollbacks, and offsets in the store",
}
"""Event → what it means; the events in the order of a message's life."""

THIS = "message"
BEFORE = "before"


class MessageRecord(msgspec.Struct, gc=False):
    """A message in one exchange, as one row.

    Times are nanoseconds since the epoch here, as in `ExchangeRecord`.
    """

    capture: Annotated[str, Description("name of the capture file", "the file")]
    conversation: Annotated[
        int, Description("number of the TCP connection, as in the exchanges", "TCP")
    ]
    packet: Annotated[
        int | None, Description("packet that completed the command with the message", "capture")
    ]
    time: Annotated[int | None, Description("time of that packet", "capture", type="time")]
    request_packet: Annotated[
        int | None, Description("packet of the request: finds the exchange", "capture")
    ]
    place: Annotated[int, Description("place among the messages of the exchange, from 0", "body")]
    event: Annotated[str, Description("what happened to the message; see below", "operation")]
    request_name: Annotated[str | None, Description("name of the request", "RequestCode")]
    response_code: Annotated[int | None, Description("response code", "frame header")]
    response_name: Annotated[str | None, Description("name of the response code", "ResponseCode")]
    remark: Annotated[
        str | None,
        Description(
            "remark of the response, otherwise of the request; in `on_disk` rows: what the other"
            " files of the store say about the message",
            "frame header; consume queue and index of the store",
        ),
    ]
    latency_us: Annotated[
        int | None, Description("response time less request time", "capture", unit="µs")
    ]
    end: Annotated[
        str | None,
        Description(
            "how the connection of a request without response ended, as in the exchanges", "TCP"
        ),
    ]
    client_address: Annotated[
        str, Description("`address:port` of the producer or consumer", "IP and TCP header")
    ]
    client_id: Annotated[
        str | None,
        Description(
            "client id of that client, once it was seen on the connection",
            "heartbeat, unregistration or lock of queues; gRPC: metadata",
        ),
    ]
    server_address: Annotated[
        str,
        Description("`address:port` of the broker or proxy", "IP and TCP header"),
    ]
    broker_name: Annotated[
        str | None, Description("name of the broker", "ext fields `bname`, `n`, `brokerName`")
    ]
    topic: Annotated[
        str | None, Description("topic as seen", "ext fields; of stored messages: the record")
    ]
    original_topic: Annotated[
        str | None,
        Description(
            "topic that the producer sent the message to, also for `%RETRY%`, `%DLQ%`, scheduled"
            " and half messages; null: unknown",
            "properties `REAL_TOPIC`, `RETRY_TOPIC`, `DLQ_ORIGIN_TOPIC`; name of a POP retry topic",
        ),
    ]
    queue_id: Annotated[int | None, Description("queue of `topic`", "ext fields, the record")]
    queue_offset: Annotated[
        int | None,
        Description(
            "offset in that queue; of an offset commit: the first offset that it does not cover;"
            " null for messages that are not in their queue yet (half or delayed messages)",
            "ext fields, the record",
        ),
    ]
    covers: Annotated[
        str | None,
        Description(
            "what an acknowledgement covers: `message` (this message) or `before` (all messages"
            " before `queue_offset`)",
            "operation",
        ),
    ]
    producer_group: Annotated[
        str | None, Description("producer group", "ext fields; property `PGROUP`")
    ]
    consumer_group: Annotated[
        str | None,
        Description(
            "consumer group; of a response without its request the only one that fetches the topic"
            " over the same connection",
            "ext fields",
        ),
    ]
    unique_key: Annotated[
        str | None,
        Description(
            "client's message id", "property `UNIQ_KEY`; ext fields `originMsgId`, `msgId`"
        ),
    ]
    offset_msg_id: Annotated[
        str | None,
        Description("broker's message id", "ext fields `msgId`, `offsetMsgId`; the record"),
    ]
    commit_log_offset: Annotated[
        int | None,
        Description(
            "byte offset in the broker's commit log, as in `offset_msg_id`",
            "ext fields `offset`, `commitLogOffset`; the record",
            unit="bytes",
        ),
    ]
    keys: Annotated[
        str | None, Description("keys of the message, separated by blanks", "property `KEYS`")
    ]
    tags: Annotated[str | None, Description("tag of the message", "property `TAGS`")]
    transaction_id: Annotated[
        str | None, Description("transaction id", "ext field, property `__transactionId__`")
    ]
    born_time: Annotated[
        int | None,
        Description(
            "when the producer created the message, by the producer's clock",
            "ext fields, the record",
            type="time",
        ),
    ]
    store_time: Annotated[
        int | None,
        Description("when the broker stored it, by its clock", "the record", type="time"),
    ]
    deliver_time: Annotated[
        int | None,
        Description(
            "earliest delivery time of the message, if it has one",
            "recall handle; properties `TIMER_OUT_MS`, `TIMER_DELIVER_MS`, `__STARTDELIVERTIME`;"
            " new invisible time of POP",
            type="time",
        ),
    ]
    reconsume_times: Annotated[
        int | None, Description("number of returns for redelivery", "ext fields, the record")
    ]
    max_reconsume_times: Annotated[
        int | None,
        Description(
            "maximum number of returns before the message becomes a dead letter",
            "ext fields of a send back",
        ),
    ]
    delay_level: Annotated[
        int | None, Description("delay level", "property `DELAY`; ext field of a send back")
    ]
    body_bytes: Annotated[
        int | None,
        Description("bytes of its body as it travels", "frame prefix, the record", unit="bytes"),
    ]
    body_crc: Annotated[
        int | None, Description("CRC-32 of that body, as the record says", "the record")
    ]
    crc_ok: Annotated[
        bool | None,
        Description(
            "whether the body matches `body_crc`; null: there is no CRC, or bytes are missing",
            "body",
        ),
    ]
    body_form: Annotated[
        str | None,
        Description(
            "`text` or `base64`; `json` or `text` of a plug-in; null unless bodies are asked for",
            "body",
        ),
    ] = None
    body: Annotated[
        str | None,
        Description("first bytes of the body, decompressed; or what a plug-in makes of it", "body"),
    ] = None


MESSAGE_COLUMNS: Final = columns_of(MessageRecord)
