"""Tables about delivery."""

from __future__ import annotations

from typing import Final

from ..life.again import Again
from ..report import ReportTable, TableColumn

_TOPIC: Final = TableColumn("topic", "string", "", "topic that messages were sent to")
_GROUP: Final = TableColumn("group", "string", "", "consumer group")
GROUPS: Final = ReportTable(
    "delivery_groups",
    "Delivery by topic and group",
    "One row per topic and consumer group, and one for a topic that nobody is seen to fetch; by"
    " topic. What comes from a retry topic counts for the topic that it was sent to.",
    (
        _TOPIC,
        _GROUP,
        TableColumn(
            "sent", "int", "", "messages that producers sent; absent: none was seen sending"
        ),
        TableColumn(
            "stored",
            "int",
            "",
            "of them stored, as answers or deliveries say; half messages once they are committed",
        ),
        TableColumn("stored_again", "int", "", "times that one of these was stored besides"),
        TableColumn("delivered", "int", "", "messages that the group got"),
        TableColumn("deliveries", "int", "", "times that it got one"),
        TableColumn(
            "again", "int", "", "of them of a message it had; of broadcasting: that the member had"
        ),
        TableColumn("returned", "int", "", "times that it gave one back"),
        TableColumn("dead", "int", "", "messages that became dead letters of the group"),
        TableColumn(
            "acknowledged",
            "int",
            "",
            "stored records it got that a commit or acknowledgement covers; absent: none was seen",
        ),
        TableColumn("unacknowledged", "int", "", "records it got that nothing covers yet"),
        TableColumn(
            "skipped",
            "int",
            "",
            "records that its commits passed, that it subscribes and was never seen to get",
        ),
        TableColumn("filtered", "int", "", "the same, but it does not subscribe their tag"),
        TableColumn(
            "unsure", "int", "", "the same, but what it subscribes is SQL or was not captured"
        ),
        TableColumn(
            "out_of_order", "int", "", "records it got after a later one of the same queue"
        ),
        TableColumn("to_fetch", "int", "", "messages that it had not fetched at last"),
        TableColumn("to_commit", "int", "", "messages that it had not committed at last"),
        TableColumn("clients", "int", "", "clients of the group that fetched"),
        TableColumn("first_time", "time", "", "the first fetch, delivery or return"),
        TableColumn("last_time", "time", "", "the last one"),
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
    "From born to delivered",
    "One row per topic, group and stage: how long the first delivery of a message took, without"
    " those that are due later. Stored is when the capture saw the answer of the broker.",
    (
        _TOPIC,
        TableColumn("group", "string", "", "consumer group; absent: the stage has none"),
        TableColumn(
            "stage", "string", "", "`born to stored`, `stored to delivered`, `born to delivered`"
        ),
        TableColumn(
            "clocks",
            "string",
            "",
            "whose clocks measured: `capture` alone, or two that may differ; a time below 0 is 0",
        ),
        TableColumn("messages", "int", "", "messages"),
        TableColumn("min_us", "int", "µs", "the shortest"),
        TableColumn("p50_us", "int", "µs", "half of them took no longer"),
        TableColumn("p90_us", "int", "µs", "90 % took no longer"),
        TableColumn("p99_us", "int", "µs", "99 % took no longer"),
        TableColumn("p999_us", "int", "µs", "99.9 % took no longer"),
        TableColumn("max_us", "int", "µs", "the longest"),
    ),
    order=("topic", "group", "stage", "clocks"),
    brief=("topic", "group", "stage", "messages", "p50_us", "p99_us", "max_us", "clocks", "p90_us"),
)
DUPLICATES: Final = ReportTable(
    "delivery_duplicates",
    "Delivered again",
    "One row per topic, group and cause; the most frequent first.",
    (
        _TOPIC,
        _GROUP,
        TableColumn(
            "cause",
            "string",
            "",
            f"`{Again.STORED_AGAIN}`: its producer sent it again; `{Again.OTHER_CLIENT}`: its queue"
            f" was handed over; `{Again.OTHER_CONNECTION}`: of the same client id; `{Again.SAME}`:"
            f" by the same one; `{Again.RETURNED}`; `{Again.EXPIRED}`: it was not acknowledged;"
            f" `{Again.RETURNED_UNSEEN}`: or not acknowledged, which is not in the capture",
        ),
        TableColumn("deliveries", "int", "", "deliveries that came so"),
        TableColumn("messages", "int", "", "of how many messages"),
        TableColumn("first_time", "time", "", "the first one"),
        TableColumn("last_time", "time", "", "the last one"),
        TableColumn("message", "string", "", "unique key of the first one, for `rmqtool trace`"),
        TableColumn("capture", "string", "", "its capture"),
        TableColumn("packet", "int", "", "its packet"),
    ),
    order=("-deliveries", "topic", "group", "cause"),
    brief=(
        *("topic", "group", "cause", "deliveries", "messages", "first_time", "message"),
        *("capture", "packet"),
    ),
)
LAG: Final = ReportTable(
    "delivery_lag",
    "Lag over time",
    "One row per window, group and topic in which the group fetched or committed; by time. Where a"
    " queue ends is known from answers to pulls only.",
    (
        TableColumn("start", "time", "", "begin of the window"),
        TableColumn("window_us", "int", "µs", "its length"),
        TableColumn("consumer", "string", "", "group and topic in one text"),
        _TOPIC,
        _GROUP,
        TableColumn("to_fetch", "int", "", "messages not fetched, at most, all queues together"),
        TableColumn("to_commit", "int", "", "messages not committed, at most"),
        TableColumn("queues", "int", "", "queues that are known by then"),
    ),
    order=("start", "topic", "group"),
    shown=0,
)
TABLES: Final = (GROUPS, TIMES, DUPLICATES, LAG)
