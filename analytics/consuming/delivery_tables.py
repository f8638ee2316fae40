"""Tables of the delivery report."""

from __future__ import annotations

from typing import Final

from ..life.again import Again
from ..report import ReportTable, TableColumn, column_names, table_columns

_TOPIC: Final = TableColumn("topic", "string", "", "original topic")
_GROUP: Final = TableColumn("group", "string", "", "consumer group")
GROUPS: Final = ReportTable(
    "delivery_groups",
    "Delivery by group",
    (
        "One row per topic and consumer group, by topic; one row for a topic without consumers. "
        "Deliveries from a retry topic count for the original topic."
    ),
    (
        _TOPIC,
        _GROUP,
        *table_columns("""
            sent int: messages sent; empty: no producer captured
            stored int: messages stored, by responses or deliveries; half messages after commit
            stored_again int: additional stored copies
            delivered int: messages delivered to the group
            deliveries int: deliveries to the group
            again int: redeliveries (for broadcasting: per member)
            returned int: messages returned for redelivery
            dead int: messages moved to the group's DLQ
            acknowledged int: delivered records covered by a commit or ack; empty: none captured
            unacknowledged int: delivered records not yet covered
            skipped int: subscribed records that commits passed without a captured delivery
            filtered int: records passed by commits with an unsubscribed tag
            unsure int: records passed by commits with an SQL or unknown subscription
            out_of_order int: records delivered after a later record of the same queue
            to_fetch int: messages not fetched at the end
            to_commit int: messages not committed at the end
            clients int: clients that fetched
            first_time time: first fetch, delivery, or return
            last_time time: last event
        """),
    ),
    order=("topic", "group"),
    brief=column_names(
        "topic group sent stored delivered again returned dead skipped out_of_order to_commit"
        " unacknowledged deliveries filtered to_fetch clients"
    ),
)
TIMES: Final = ReportTable(
    "delivery_times",
    "End-to-end latency",
    (
        "One row per topic, group, and stage of the first delivery, without delayed messages. The "
        "stored time is the capture time of the broker's response."
    ),
    (
        _TOPIC,
        *table_columns("""
            group string: consumer group; empty for producer stages
            stage string: `creation to stored`, `stored to delivered`, or `creation to delivered`
            clocks string: clocks involved: `capture` only, or two clocks that may differ; negative
              times count as 0
            messages int: messages
            min_us int µs: shortest
            p50_us int µs: median latency
            p90_us int µs: 90th percentile latency
            p99_us int µs: 99th percentile latency
            p999_us int µs: 99.9th percentile latency
            max_us int µs: longest
        """),
    ),
    order=("topic", "group", "stage", "clocks"),
    brief=("topic", "group", "stage", "messages", "p50_us", "p99_us", "max_us", "clocks", "p90_us"),
)
DUPLICATES: Final = ReportTable(
    "delivery_duplicates",
    "Redeliveries",
    "One row per topic, group, and cause, most frequent first.",
    (
        _TOPIC,
        _GROUP,
        TableColumn(
            "cause",
            "string",
            "",
            f"`{Again.STORED_AGAIN}`: its producer sent it again; `{Again.OTHER_CLIENT}`: its queue"
            f" was handed over; `{Again.OTHER_CONNECTION}`: the same client ID reconnected;"
            f" `{Again.SAME}`: the same client fetched it again; `{Again.RETURNED}`: a consumer"
            f" returned it; `{Again.EXPIRED}`: it was not acknowledged in time;"
            f" `{Again.RETURNED_UNSEEN}`: it was returned, or not acknowledged, outside the"
            " capture",
        ),
        *table_columns("""
            deliveries int: redeliveries with this cause
            messages int: number of messages
            first_time time: first event
            last_time time: last event
            message string: unique key of the first redelivery, for `rmqtool trace`
            capture string: capture file
            packet int: packet number
        """),
    ),
    order=("-deliveries", "topic", "group", "cause"),
    brief=column_names("topic group cause deliveries messages first_time message capture packet"),
)
LAG: Final = ReportTable(
    "delivery_lag",
    "Consumer lag",
    (
        "One row per window, group, and topic with fetches or commits, by time. Only pull "
        "responses show the end of a queue."
    ),
    (
        *table_columns("""
            start time: start of the window
            window_us int µs: length of the window
            consumer string: group and topic
        """),
        _TOPIC,
        _GROUP,
        *table_columns("""
            to_fetch int: maximum unfetched messages over all queues
            to_commit int: maximum uncommitted messages over all queues
            queues int: number of known queues
        """),
    ),
    order=("start", "topic", "group"),
    shown=0,
)
TABLES: Final = (GROUPS, TIMES, DUPLICATES, LAG)
