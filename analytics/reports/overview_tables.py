"""Tables of the overview: columns, order, and display."""

from __future__ import annotations

from ..report import ReportTable, TableColumn, column_names, table_columns
from .latency_tables import RANK, WINDOW

COUNTS = table_columns("""
    exchanges int: requests
    failed int: requests with a failure response
    not_durable int: messages stored, but not flushed or replicated in time
    no_response int: unanswered requests; the packets prove that no response came
    unknown int: requests whose response may simply not have been captured
    withdrawn int: long polls that the client ended with its connection
""")
_BYTES = TableColumn("bytes", "int", "bytes", "bytes of requests and responses (whole frames)")
_FIRST = TableColumn("first_time", "time", "", "first occurrence")
_LAST = TableColumn("last_time", "time", "", "last occurrence")
_FOUND = (
    _FIRST,
    _LAST,
    *table_columns("""
        capture string: capture of the first occurrence
        packet int: packet of the response, or of an unanswered request
    """),
)

ERRORS = ReportTable(
    "errors",
    "Errors",
    "One row per non-success response code and remark; failures first, then by count.",
    (
        *table_columns("""
            class string: `failed`; `stored, not durable`: the message is there, but not on disk or
              on a slave in time; `expected`: a consumer asked for its retry topic before it was
              created
            response string: response code name
            code int: response code
            remark string: remark of the first response; similar remarks differ only in numbers and
              IDs
            alike string: common pattern of the remarks; numbers, IDs, and addresses as …
            exchanges int: number of exchanges
            operations list: operations with this response
            brokers list: brokers or addresses with this response
            clients int: number of client addresses
            topics list: affected topics
        """),
        *_FOUND,
        TableColumn("rank", "int", "", "severity rank; 1 is the most severe"),
    ),
    order=("rank", "-exchanges", "code", "alike"),
    brief=column_names("class response exchanges remark operations brokers topics capture packet"),
)
UNANSWERED = ReportTable(
    "unanswered",
    "Unanswered requests",
    (
        "One row per operation, server, and connection end: proven first, client-ended long polls "
        "last."
    ),
    (
        *table_columns("""
            operation string: request name
            broker string: server that should have responded
            end string: end of the connection: `reset`, `closed`, `open`, or empty: unknown
            proven bool: whether the packets prove that no response came
            withdrawn bool: whether the client ended the long poll by closing its connection
            exchanges int: number of exchanges
        """),
        *_FOUND,
    ),
    order=("withdrawn", "-proven", "-exchanges", "operation", "broker", "end"),
)
TOPICS = ReportTable(
    "topics",
    "Topics",
    "One row per topic, largest total latency first.",
    (
        TableColumn("topic", "string", "", "topic"),
        *COUNTS,
        *table_columns("""
            sends int: send requests of clients; those of a relay or proxy for them do not count
            sent int: messages in successful sends
            fetches int: fetch requests: pull and POP; gRPC calls if no others were captured
            fetched int: messages in fetch responses
        """),
        _BYTES,
        TableColumn("total_us", "int", "µs", "total latency, without long polls"),
        *RANK,
        *table_columns("""
            send_batch float: messages per successful send
            fetch_batch float: messages per fetch that returned any
            empty_share float share: answered fetches without messages
            message_bytes float bytes: average body of a stored message, as sent
            groups list: groups named in requests
            brokers list: brokers or addresses
            clients int: client addresses
        """),
    ),
    order=("-total_us", "-exchanges", "topic"),
    brief=column_names(
        "topic exchanges total_us time_share sent fetched failed no_response send_batch"
        " message_bytes cumulative fetch_batch empty_share unknown bytes groups brokers clients"
    ),
)
CLIENTS = ReportTable(
    "clients",
    "Clients",
    "One row per address, language, and version, most exchanges first.",
    (
        *table_columns("""
            client string: client address without port
            language string: as reported by the client
            version string: as reported by the client
        """),
        *COUNTS,
        TableColumn("connections", "int", "", "TCP connections with requests"),
        _BYTES,
        *table_columns("""
            groups list: groups named in requests
            operations list: operations used
        """),
        _FIRST,
        _LAST,
    ),
    order=("-exchanges", "client", "language", "version"),
)
VERSIONS = ReportTable(
    "client_versions",
    "Client versions",
    "One row per language and version, most clients first, with known bugs of that version.",
    (
        *table_columns("""
            language string: as reported by the client
            version string: as reported by the client
            clients int: number of client addresses
            client_share float share: share of all client addresses in the table
        """),
        *COUNTS,
        *table_columns("""
            known_bugs list: known bugs of this version, with their issue
            groups list: groups named in requests
        """),
        _LAST,
    ),
    order=("-clients", "-exchanges", "language", "version"),
    brief=("language", "version", "clients", "exchanges", "failed", "known_bugs"),
)
TOPOLOGY = ReportTable(
    "topology",
    "Producers, topics, and consumers",
    "One row per topic and producer or consumer group, producers first.",
    table_columns("""
        topic string: topic
        role string: `produces` or `consumes`
        party string: group; client address if requests name no group
        clients int: number of client addresses
        requests int: sends or fetches
        messages int: messages stored or fetched
    """),
    order=("topic", "-role", "party"),
)
SIZES = ReportTable(
    "message_sizes",
    "Message sizes",
    "One row per topic and power of two; a message of a batch has the average size of its batch.",
    table_columns("""
        topic string: topic
        from_bytes int bytes: lower bound of the body size, as sent
        below_bytes int bytes: exclusive upper bound
        sends int: successful sends
        messages int: messages stored by them
        share float share: share of the topic's messages
        bytes int bytes: message body bytes
    """),
    order=("topic", "from_bytes"),
    aside=True,
)
ERRORS_OVER_TIME = ReportTable(
    "errors_over_time",
    "Errors over time",
    "One row per window and kind of failure.",
    (
        *WINDOW,
        *table_columns("""
            error string: response code name, `no response`, or `unknown`
            exchanges int: number of exchanges
            operations list: operations with this response
            brokers list: brokers or addresses with this response
        """),
    ),
    order=("window_start", "-exchanges", "error"),
    shown=0,
)
