"""Tables about consumer groups."""

from __future__ import annotations

from typing import Final

from ..report import ReportTable, TableColumn

_GROUP: Final = TableColumn("group", "string", "", "consumer group")
_CLIENT: Final = TableColumn("client", "string", "", "client id, else address")
_TOPIC: Final = TableColumn("topic", "string", "", "topic, retry topics too")
_BROKER: Final = TableColumn("broker", "string", "", "broker name, else address")
_QUEUE: Final = TableColumn("queue_id", "int", "", "queue")
_CAPTURE: Final = TableColumn("capture", "string", "", "capture of the packet")
_PACKET: Final = TableColumn("packet", "int", "", "packet that shows it")
_FIRST: Final = TableColumn("first_time", "time", "", "the first one")
_LAST: Final = TableColumn("last_time", "time", "", "the last one")

MEMBERS: Final = ReportTable(
    "consumer_members",
    "Members over time",
    "One row per group, client and period in which it was a member, as its heartbeats and pulls"
    " show; by group and time.",
    (
        _GROUP,
        _CLIENT,
        TableColumn("address", "string", "", "`address:port` from which it was seen first"),
        TableColumn("since", "time", "", "its first sign"),
        TableColumn("until", "time", "", "its last sign, or when it ended"),
        TableColumn(
            "began",
            "string",
            "",
            "`joined`: its connection began in the capture; `before the capture`; absent: unknown",
        ),
        TableColumn(
            "ended",
            "string",
            "",
            "`left` (it said so), `connection ended: …` (all that it had), `still a member`",
        ),
        TableColumn("heartbeats", "int", "", "heartbeats that name the group"),
        TableColumn("type", "string", "", "CONSUME_PASSIVELY (push) or CONSUME_ACTIVELY (pull)"),
        TableColumn("model", "string", "", "CLUSTERING or BROADCASTING"),
        TableColumn("brokers", "list", "", "brokers that got its heartbeats"),
    ),
    order=("group", "since", "client"),
    brief=("group", "client", "ended", "since", "heartbeats", "began", "until", "model"),
)
REBALANCES: Final = ReportTable(
    "consumer_rebalances",
    "Why queues were shared out anew",
    "One row per change after which the members of a group share out their queues; by group and "
    "time.",
    (
        _GROUP,
        TableColumn("time", "time", "", "when it happened"),
        TableColumn(
            "cause",
            "string",
            "",
            "`joined`, `left`, `connection ended: …`, `subscribed otherwise`; `told by the broker`:"
            " who changed is not in the capture; `not seen`: queues moved and nothing says why",
        ),
        TableColumn("client", "string", "", "who joined, left, …"),
        TableColumn("members_before", "int", "", "members that were seen; absent: not known"),
        TableColumn("members_after", "int", "", "the same behind it"),
        TableColumn("told", "int", "", "notices of brokers to members (40) about it"),
        TableColumn("lists", "int", "", "lists of members that were asked for (38) within 60 s"),
        TableColumn("queues_moved", "int", "", "queues that another client began to pull by then"),
        TableColumn("length_us", "int", "µs", "until the last of them moved; absent: none did"),
        _CAPTURE,
        _PACKET,
    ),
    order=("group", "time", "cause", "client"),
    brief=(
        *("group", "time", "cause", "client", "members_after", "queues_moved", "length_us"),
        *("members_before", "told", "lists"),
    ),
)
QUEUES: Final = ReportTable(
    "consumer_queues",
    "Who pulled which queue when",
    "One row per group, queue and period in which one client pulled it; by group, queue and"
    " time. POP names no queues.",
    (
        _GROUP,
        _TOPIC,
        _BROKER,
        _QUEUE,
        _CLIENT,
        TableColumn("since", "time", "", "its first pull"),
        TableColumn("until", "time", "", "its last pull, or the answer to it"),
        TableColumn("next_client", "string", "", "who pulled it next; absent: nobody was seen"),
        TableColumn("pulls", "int", "", "pulls"),
        TableColumn("messages", "int", "", "messages in the answers"),
        TableColumn("first_offset", "int", "", "offset that it asked for first"),
        TableColumn("next_offset", "int", "", "offset after the last answer"),
    ),
    order=("group", "topic", "broker", "queue_id", "since", "client"),
    brief=(
        *("group", "topic", "queue_id", "client", "since", "until", "broker", "pulls", "messages"),
        *("first_offset", "next_offset"),
    ),
)
ODD: Final = ReportTable(
    "consumer_queues_odd",
    "Queues that nobody or two clients pulled",
    "One row per group, queue and time; by group and queue. Groups that broadcast are left out, and"
    " times below a second in which nobody pulled.",
    (
        _GROUP,
        _TOPIC,
        _BROKER,
        _QUEUE,
        TableColumn(
            "what",
            "string",
            "",
            "`nobody pulled`: between two clients, or by the route ever; `two clients pulled`: each"
            " asked again after the other, three turns within a minute",
        ),
        TableColumn("clients", "list", "", "clients before and behind, or both"),
        TableColumn("since", "time", "", "begin; absent: all the time"),
        TableColumn("until", "time", "", "end"),
        TableColumn("length_us", "int", "µs", "how long"),
    ),
    order=("group", "topic", "broker", "queue_id", "since", "what", "clients"),
    brief=(
        *("group", "topic", "queue_id", "what", "length_us", "clients", "since", "broker"),
        "until",
    ),
)
PULLS: Final = ReportTable(
    "consumer_pulls",
    "Pulls by result",
    "One row per group, topic, client, operation and result; the most frequent first. The time of a"
    " long poll is how long the broker had nothing.",
    (
        _GROUP,
        _TOPIC,
        _CLIENT,
        TableColumn("operation", "string", "", "name of the request"),
        TableColumn("result", "string", "", "name of the answer, `unanswered`"),
        TableColumn("requests", "int", "", "requests"),
        TableColumn("messages", "int", "", "messages in the answers"),
        TableColumn("p50_us", "int", "µs", "half of the answers took no longer"),
        TableColumn("p99_us", "int", "µs", "99 % took no longer"),
        TableColumn("max_us", "int", "µs", "the longest"),
        _FIRST,
        _LAST,
    ),
    order=("-requests", "group", "topic", "client", "operation", "result"),
    brief=(
        *("group", "topic", "client", "result", "requests", "messages", "p50_us", "max_us"),
        *("p99_us", "operation"),
    ),
)
SLAVES: Final = ReportTable(
    "consumer_slaves",
    "Reads from slaves",
    "One row per group, topic and slave that was pulled from; by group. Slaves are known from "
    "routes.",
    (
        _GROUP,
        _TOPIC,
        _BROKER,
        TableColumn("address", "string", "", "`address:port` of the slave"),
        TableColumn("broker_id", "string", "", "its broker id"),
        TableColumn("pulls", "int", "", "pulls"),
        TableColumn("messages", "int", "", "messages in the answers"),
        TableColumn(
            "why",
            "string",
            "",
            "`no master` in the last route; `told by the master`: what is read is no longer in its"
            " memory; `not seen`",
        ),
        TableColumn("clients", "list", "", "who pulled"),
        _FIRST,
        _LAST,
    ),
    order=("group", "topic", "broker", "address"),
)
LOCKS: Final = ReportTable(
    "consumer_locks",
    "Locks of orderly consumers",
    "One row per group, client and broker; by group. Which queues were not locked, and"
    " whether a lock was lost or never had, is not in the rows.",
    (
        _GROUP,
        _CLIENT,
        _BROKER,
        TableColumn("requests", "int", "", "requests for locks (41)"),
        TableColumn("queues_asked", "int", "", "queues in them"),
        TableColumn("queues_locked", "int", "", "queues that were given"),
        TableColumn("not_all", "int", "", "requests that did not get all their queues"),
        TableColumn("longest_us", "int", "µs", "the longest time in which none got all its queues"),
        TableColumn("unanswered", "int", "", "requests of which no number is known"),
        TableColumn("unlocks", "int", "", "requests that give locks back (42)"),
        _FIRST,
        _LAST,
    ),
    order=("group", "client", "broker"),
)
OFFSETS: Final = ReportTable(
    "consumer_offsets",
    "Offsets that jumped",
    "One row per pull or commit of a group that does not go on where the one before ended; by"
    " group and time.",
    (
        _GROUP,
        TableColumn("time", "time", "", "when"),
        TableColumn(
            "what",
            "string",
            "",
            "`pulled again`, `skipped`, both also `, by another client`; `moved by the broker`: the"
            " queue has no such offset; `commit went back`; `reset by an administrator`",
        ),
        _TOPIC,
        _BROKER,
        _QUEUE,
        _CLIENT,
        TableColumn("from_offset", "int", "", "offset that would have been next"),
        TableColumn("to_offset", "int", "", "offset that it was"),
        TableColumn("messages", "int", "", "messages between the two"),
        _CAPTURE,
        _PACKET,
    ),
    order=("group", "time", "topic", "broker", "queue_id", "what", "packet"),
    brief=(
        *("group", "time", "what", "topic", "queue_id", "from_offset", "to_offset", "client"),
        *("broker", "messages", "capture", "packet"),
    ),
)
SUBSCRIPTIONS: Final = ReportTable(
    "consumer_subscriptions",
    "Subscriptions of members",
    "One row per group, push client and form of its subscription; by group and client.",
    (
        _GROUP,
        _CLIENT,
        TableColumn("subscribed", "string", "", "topics with tags or SQL"),
        TableColumn("model", "string", "", "CLUSTERING or BROADCASTING"),
        TableColumn("since", "time", "", "the first heartbeat that says so"),
        TableColumn("until", "time", "", "the last one"),
        TableColumn(
            "differs", "bool", "", "from a member that lives at the same time, as diagnosis judges"
        ),
    ),
    order=("group", "client", "since", "subscribed"),
    brief=("group", "client", "subscribed", "differs", "since", "until", "model"),
)
TABLES: Final = (*(MEMBERS, REBALANCES, QUEUES, ODD, PULLS, SLAVES, LOCKS, OFFSETS, SUBSCRIPTIONS),)
