"""Tables of the consumer group report."""

from __future__ import annotations

from typing import Final

from ..report import ReportTable, TableColumn, column_names, table_columns

_GROUP: Final = TableColumn("group", "string", "", "consumer group")
_CLIENT: Final = TableColumn("client", "string", "", "client ID, or address if unknown")
_TOPIC: Final = TableColumn("topic", "string", "", "topic, including retry topics")
_BROKER: Final = TableColumn("broker", "string", "", "broker name if known, otherwise address")
_QUEUE: Final = (_TOPIC, _BROKER, TableColumn("queue_id", "int", "", "queue"))
_PACKET: Final = table_columns("""
    capture string: capture file
    packet int: packet number
""")
_SPAN: Final = table_columns("""
    first_time time: first event
    last_time time: last event
""")

MEMBERS: Final = ReportTable(
    "consumer_members",
    "Group members",
    (
        "One row per group, client, and membership period (from heartbeats and pulls), by group "
        "and time."
    ),
    (
        _GROUP,
        _CLIENT,
        *table_columns("""
            address string: first `address:port`
            since time: first event
            until time: last event, or the end of the membership
            began string: `joined` (connection started in the capture), `before the capture`, or
              empty: unknown
            ended string: `left` (unregistered), `connection ended: …`, or `still a member`
            heartbeats int: heartbeats for the group
            type string: CONSUME_PASSIVELY (push) or CONSUME_ACTIVELY (pull)
            model string: CLUSTERING or BROADCASTING
            brokers list: brokers that received heartbeats
        """),
    ),
    order=("group", "since", "client"),
    brief=("group", "client", "ended", "since", "heartbeats", "began", "until", "model"),
)
REBALANCES: Final = ReportTable(
    "consumer_rebalances",
    "Rebalances",
    "One row per change that triggers a rebalance, by group and time.",
    (
        _GROUP,
        *table_columns("""
            time time: time of the change
            cause string: `joined`, `left`, `connection ended: …`, `subscription changed`; `told by
              the broker`: who changed is not in the capture; `not seen`: queues moved and nothing
              says why
            client string: client that joined or left
            members_before int: members before the change; empty: unknown
            members_after int: members after the change
            told int: broker notifications to members (NOTIFY_CONSUMER_IDS_CHANGED)
            lists int: member list requests within 60 s (GET_CONSUMER_LIST_BY_GROUP)
            queues_moved int: queues that moved to another client
            length_us int µs: time until the last queue moved; empty: none moved
        """),
        *_PACKET,
    ),
    order=("group", "time", "cause", "client"),
    brief=column_names(
        "group time cause client members_after queues_moved length_us members_before told lists"
    ),
)
QUEUES: Final = ReportTable(
    "consumer_queues",
    "Queue ownership",
    (
        "One row per group, queue, and period in which one client pulled it. POP requests name no "
        "queues."
    ),
    (
        _GROUP,
        *_QUEUE,
        _CLIENT,
        *table_columns("""
            since time: first pull
            until time: last pull or its response
            next_client string: next client to pull the queue; empty: none
            pulls int: pulls
            messages int: messages in the responses
            first_offset int: first requested offset
            next_offset int: offset after the last response
        """),
    ),
    order=("group", "topic", "broker", "queue_id", "since", "client"),
    brief=column_names(
        "group topic queue_id client since until broker pulls messages first_offset next_offset"
    ),
)
ODD: Final = ReportTable(
    "consumer_queues_odd",
    "Unassigned or doubly assigned queues",
    (
        "One row per group, queue, and period, by group and queue; without broadcasting groups "
        "and gaps under one second."
    ),
    (
        _GROUP,
        *_QUEUE,
        *table_columns("""
            what string: `nobody pulled` (unassigned: between two clients, or always), or `two
              clients pulled` (each again after the other, without taking the queue over)
            clients list: clients before and after, or both clients
            since time: start; empty: the whole capture
            until time: end
            length_us int µs: duration
        """),
    ),
    order=("group", "topic", "broker", "queue_id", "since", "what", "clients"),
    brief=column_names("group topic queue_id what length_us clients since broker until"),
)
PULLS: Final = ReportTable(
    "consumer_pulls",
    "Pulls by result",
    (
        "One row per group, topic, client, operation, and result, most frequent first. Long-poll "
        "time is how long the broker had no messages."
    ),
    (
        _GROUP,
        _TOPIC,
        _CLIENT,
        *table_columns("""
            operation string: request name
            result string: response code name, or `unanswered`
            requests int: requests
            messages int: messages in the responses
            p50_us int µs: median latency
            p99_us int µs: 99th percentile latency
            max_us int µs: longest
        """),
        *_SPAN,
    ),
    order=("-requests", "group", "topic", "client", "operation", "result"),
    brief=column_names(
        "group topic client result requests messages p50_us max_us p99_us operation"
    ),
)
SLAVES: Final = ReportTable(
    "consumer_slaves",
    "Reads from slaves",
    "One row per group, topic, and slave, by group. Routes show which brokers are slaves.",
    (
        _GROUP,
        _TOPIC,
        _BROKER,
        *table_columns("""
            address string: slave `address:port`
            broker_id string: broker ID
            pulls int: pulls
            messages int: messages in the responses
            why string: `no master` (in the last route), `told by the master` (messages no longer in
              memory), or `not seen`
            clients list: clients that pulled
        """),
        *_SPAN,
    ),
    order=("group", "topic", "broker", "address"),
)
LOCKS: Final = ReportTable(
    "consumer_locks",
    "Orderly consumer locks",
    (
        "One row per group, client, and broker, by group. Rows do not name the queues that were "
        "not locked."
    ),
    (
        _GROUP,
        _CLIENT,
        _BROKER,
        *table_columns("""
            requests int: lock requests (LOCK_BATCH_MQ)
            queues_asked int: requested queues
            queues_locked int: locked queues
            not_all int: requests that did not lock all queues
            longest_us int µs: longest time without a fully successful lock request
            unanswered int: requests without a captured result
            unlocks int: unlock requests (UNLOCK_BATCH_MQ)
        """),
        *_SPAN,
    ),
    order=("group", "client", "broker"),
)
OFFSETS: Final = ReportTable(
    "consumer_offsets",
    "Offset jumps",
    "One row per pull or commit that does not continue at the previous offset, by group and time.",
    (
        _GROUP,
        *table_columns("""
            time time: when
            what string: `pulled again` or `skipped` (possibly `, by another client`), `moved by the
              broker` (offset out of range), `commit went back`, or `reset by an administrator`
        """),
        *_QUEUE,
        _CLIENT,
        *table_columns("""
            from_offset int: expected next offset
            to_offset int: actual offset
            messages int: messages in between
        """),
        *_PACKET,
    ),
    order=("group", "time", "topic", "broker", "queue_id", "what", "packet"),
    brief=column_names(
        "group time what topic queue_id from_offset to_offset client broker messages capture packet"
    ),
)
SUBSCRIPTIONS: Final = ReportTable(
    "consumer_subscriptions",
    "Member subscriptions",
    "One row per group, push client, and subscription, by group and client.",
    (
        _GROUP,
        _CLIENT,
        *table_columns("""
            subscribed string: topics with tags or SQL expressions
            model string: CLUSTERING or BROADCASTING
            since time: first heartbeat with this subscription
            until time: last event
            differs bool: whether it differs from another member at the same time
        """),
    ),
    order=("group", "client", "since", "subscribed"),
    brief=("group", "client", "subscribed", "differs", "since", "until", "model"),
)
LIMITS: Final = ReportTable(
    "consumer_limits",
    "Limits of the consumer tables",
    "One row per group whose events exceeded a limit.",
    (_GROUP, TableColumn("left_out", "int", "", "events that are in no table")),
    order=("group",),
    shown=0,
)
TABLES: Final = (
    MEMBERS,
    REBALANCES,
    QUEUES,
    ODD,
    PULLS,
    SLAVES,
    LOCKS,
    OFFSETS,
    SUBSCRIPTIONS,
    LIMITS,
)
