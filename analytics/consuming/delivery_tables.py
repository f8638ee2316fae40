"""Tables of the delivery report."""

from __future__ import annotations

from typing import Final

from ..life.again import Again
from ..report import ReportTable, TableColumn

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
        TableColumn("sent", "int", "", "messages sent; empty: no producer captured"),
        TableColumn(
            "stored",
            "int",
            "",
            "messages stored, by responses or deliveries; half messages after commit",
        ),
        TableColumn("stored_again", "int", "", "additional stored copies"),
        TableColumn("delivered", "int", "", "messages delivered to the group"),
        TableColumn("deliveries", "int", "", "deliveries to the group"),
        TableColumn("again", "int", "", "redeliveries (for broadcasting: per member)"),
        TableColumn("returned", "int", "", "messages returned for redelivery"),
        TableColumn("dead", "int", "", "messages moved to the group's DLQ"),
        TableColumn(
            "acknowledged",
            "int",
            "",
            "delivered records covered by a commit or ack; empty: none captured",
        ),
        TableColumn("unacknowledged", "int", "", "delivered records not yet covered"),
        TableColumn(
            "skipped",
            "int",
            "",
            "subscribed records that commits passed without a captured delivery",
        ),
        TableColumn("filtered", "int", "", "records passed by commits with an unsubscribed tag"),
        TableColumn(
            "unsure", "int", "", "records passed by commits with an SQL or unknown subscription"
        ),
        TableColumn(
            "out_of_order", "int", "", "records delivered after a later record of the same queue"
        ),
        TableColumn("to_fetch", "int", "", "messages not fetched at the end"),
        TableColumn("to_commit", "int", "", "messages not committed at the end"),
        TableColumn("clients", "int", "", "clients that fetched"),
        TableColumn("first_time", "time", "", "first fetch, delivery, or return"),
        TableColumn("last_time", "time", "", "last event"),
    ),
    order=("topic", "group"),
    brief=(
        *("topic", "group", "sent", "stored", "delivered", "again", "returned", "dead"),
        *("skipped", "out_of_order", "to_commit", "unacknowledged", "deliveries", "filtered"),
        *("to_fetch", "clients"),
    ),
)
TIMES: Final = ReportTable(
    "delivery_times",
    "End-to-end latency",
    (
        "One row per topic, group, and stage of the first delivery, without delayed messages. A "
        "message counts as stored when the broker's response was captured."
    ),
    (
        _TOPIC,
        TableColumn("group", "string", "", "consumer group; empty for producer stages"),
        TableColumn(
            "stage",
            "string",
            "",
            ("`creation to stored`, `stored to delivered`, or `creation to delivered`"),
        ),
        TableColumn(
            "clocks",
            "string",
            "",
            (
                "clocks involved: `capture` only, or two clocks that may differ; negative times "
                "count as 0"
            ),
        ),
        TableColumn("messages", "int", "", "messages"),
        TableColumn("min_us", "int", "µs", "shortest"),
        TableColumn("p50_us", "int", "µs", "median latency"),
        TableColumn("p90_us", "int", "µs", "90th percentile latency"),
        TableColumn("p99_us", "int", "µs", "99th percentile latency"),
        TableColumn("p999_us", "int", "µs", "99.9th percentile latency"),
        TableColumn("max_us", "int", "µs", "longest"),
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
        TableColumn("deliveries", "int", "", "redeliveries with this cause"),
        TableColumn("messages", "int", "", "number of messages"),
        TableColumn("first_time", "time", "", "first event"),
        TableColumn("last_time", "time", "", "last event"),
        TableColumn(
            "message", "string", "", ("unique key of the first redelivery, for `rmqtool trace`")
        ),
        TableColumn("capture", "string", "", "capture file"),
        TableColumn("packet", "int", "", "packet number"),
    ),
    order=("-deliveries", "topic", "group", "cause"),
    brief=(
        *("topic", "group", "cause", "deliveries", "messages", "first_time", "message"),
        *("capture", "packet"),
    ),
)
LAG: Final = ReportTable(
    "delivery_lag",
    "Consumer lag",
    (
        "One row per window, group, and topic with fetches or commits, by time. Only pull "
        "responses show the end of a queue."
    ),
    (
        TableColumn("start", "time", "", "start of the window"),
        TableColumn("window_us", "int", "µs", "length of the window"),
        TableColumn("consumer", "string", "", "group and topic"),
        _TOPIC,
        _GROUP,
        TableColumn("to_fetch", "int", "", "maximum unfetched messages over all queues"),
        TableColumn("to_commit", "int", "", "maximum uncommitted messages over all queues"),
        TableColumn("queues", "int", "", "number of known queues"),
    ),
    order=("start", "topic", "group"),
    shown=0,
)
TABLES: Final = (GROUPS, TIMES, DUPLICATES, LAG)
