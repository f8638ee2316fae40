"""Tables of the overview: columns, order, and display."""

from __future__ import annotations

from ..report import ReportTable, TableColumn
from .latency_tables import RANK, WINDOW

COUNTS = (
    TableColumn("exchanges", "int", "", "requests"),
    TableColumn("failed", "int", "", "requests with a failure response"),
    TableColumn("not_durable", "int", "", "messages stored, but not flushed or replicated in time"),
    TableColumn(
        "no_response", "int", "", ("unanswered requests; the packets prove that no response came")
    ),
    TableColumn("unknown", "int", "", "requests whose response may simply not have been captured"),
    TableColumn("withdrawn", "int", "", "long polls that the client ended with its connection"),
)
_BYTES = TableColumn("bytes", "int", "bytes", "bytes of requests and responses (whole frames)")
_FIRST = TableColumn("first_time", "time", "", "first occurrence")
_LAST = TableColumn("last_time", "time", "", "last occurrence")
_LOOK_UP = (
    TableColumn("capture", "string", "", "capture of the first occurrence"),
    TableColumn("packet", "int", "", "packet of the response, or of an unanswered request"),
)

ERRORS = ReportTable(
    "errors",
    "Errors",
    "One row per non-success response code and remark; failures first, then by count.",
    (
        TableColumn(
            "class",
            "string",
            "",
            "`failed`; `stored, not durable`: the message is there, but not on disk or on a slave"
            " in time; `expected`: a consumer asked for its retry topic before it was made",
        ),
        TableColumn("response", "string", "", "response code name"),
        TableColumn("code", "int", "", "response code"),
        TableColumn(
            "remark",
            "string",
            "",
            ("remark of the first response; similar remarks differ only in numbers and IDs"),
        ),
        TableColumn(
            "alike",
            "string",
            "",
            ("common pattern of the remarks; numbers, IDs, and addresses as …"),
        ),
        TableColumn("exchanges", "int", "", "number of exchanges"),
        TableColumn("operations", "list", "", "operations with this response"),
        TableColumn("brokers", "list", "", "brokers or addresses with this response"),
        TableColumn("clients", "int", "", "number of client addresses"),
        TableColumn("topics", "list", "", "affected topics"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
        TableColumn("rank", "int", "", "severity rank; 1 is the most severe"),
    ),
    order=("rank", "-exchanges", "code", "alike"),
    brief=(
        "class",
        "response",
        "exchanges",
        "remark",
        "operations",
        "brokers",
        "topics",
        "capture",
        "packet",
    ),
)
UNANSWERED = ReportTable(
    "unanswered",
    "Unanswered requests",
    (
        "One row per operation, server, and connection end: proven first, client-ended long polls "
        "last."
    ),
    (
        TableColumn("operation", "string", "", "request name"),
        TableColumn("broker", "string", "", "server that should have responded"),
        TableColumn(
            "end",
            "string",
            "",
            "end of the connection: `reset`, `closed`, `open`, or empty: unknown",
        ),
        TableColumn(
            "proven",
            "bool",
            "",
            "whether the packets prove that no response came",
        ),
        TableColumn(
            "withdrawn",
            "bool",
            "",
            ("whether the client ended the long poll by closing its connection"),
        ),
        TableColumn("exchanges", "int", "", "number of exchanges"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
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
        TableColumn(
            "sends",
            "int",
            "",
            "send requests of clients; those of a relay or proxy for them do not count",
        ),
        TableColumn("sent", "int", "", "messages in successful sends"),
        TableColumn(
            "fetches",
            "int",
            "",
            "fetch requests: pull and POP; gRPC calls if no others were captured",
        ),
        TableColumn("fetched", "int", "", "messages in fetch responses"),
        _BYTES,
        TableColumn("total_us", "int", "µs", "total latency, without long polls"),
        *RANK,
        TableColumn("send_batch", "float", "", "messages per successful send"),
        TableColumn("fetch_batch", "float", "", "messages per fetch that returned any"),
        TableColumn("empty_share", "float", "share", "answered fetches without messages"),
        TableColumn("message_bytes", "float", "bytes", "average body of a stored message, as sent"),
        TableColumn("groups", "list", "", "groups named in requests"),
        TableColumn("brokers", "list", "", "brokers or addresses"),
        TableColumn("clients", "int", "", "client addresses"),
    ),
    order=("-total_us", "-exchanges", "topic"),
    brief=(
        "topic",
        "exchanges",
        "total_us",
        "time_share",
        "sent",
        "fetched",
        "failed",
        "no_response",
        "send_batch",
        "message_bytes",
        "cumulative",
        "fetch_batch",
        "empty_share",
        "unknown",
        "bytes",
        "groups",
        "brokers",
        "clients",
    ),
)
CLIENTS = ReportTable(
    "clients",
    "Clients",
    "One row per address, language, and version, most exchanges first.",
    (
        TableColumn("client", "string", "", "client address without port"),
        TableColumn("language", "string", "", "as reported by the client"),
        TableColumn("version", "string", "", "as reported by the client"),
        *COUNTS,
        TableColumn("connections", "int", "", "TCP connections with requests"),
        _BYTES,
        TableColumn("groups", "list", "", "groups named in requests"),
        TableColumn("operations", "list", "", "operations used"),
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
        TableColumn("language", "string", "", "as reported by the client"),
        TableColumn("version", "string", "", "as reported by the client"),
        TableColumn("clients", "int", "", "number of client addresses"),
        TableColumn("client_share", "float", "share", "share of all client addresses in the table"),
        *COUNTS,
        TableColumn("known_bugs", "list", "", "known bugs of this version, with their issue"),
        TableColumn("groups", "list", "", "groups named in requests"),
        _LAST,
    ),
    order=("-clients", "-exchanges", "language", "version"),
    brief=("language", "version", "clients", "exchanges", "failed", "known_bugs"),
)
TOPOLOGY = ReportTable(
    "topology",
    "Producers, topics, and consumers",
    "One row per topic and producer or consumer group, producers first.",
    (
        TableColumn("topic", "string", "", "topic"),
        TableColumn("role", "string", "", "`produces` or `consumes`"),
        TableColumn("party", "string", "", "group; client address if requests name no group"),
        TableColumn("clients", "int", "", "number of client addresses"),
        TableColumn("requests", "int", "", "sends or fetches"),
        TableColumn("messages", "int", "", "messages stored or fetched"),
    ),
    order=("topic", "-role", "party"),
)
SIZES = ReportTable(
    "message_sizes",
    "Message sizes",
    "One row per topic and power of two; a message of a batch has the average size of its batch.",
    (
        TableColumn("topic", "string", "", "topic"),
        TableColumn("from_bytes", "int", "bytes", "lower bound of the body size, as sent"),
        TableColumn("below_bytes", "int", "bytes", "exclusive upper bound"),
        TableColumn("sends", "int", "", "successful sends"),
        TableColumn("messages", "int", "", "messages stored by them"),
        TableColumn("share", "float", "share", "share of the topic's messages"),
        TableColumn("bytes", "int", "bytes", "bytes of their bodies"),
    ),
    order=("topic", "from_bytes"),
    aside=True,
)
ERRORS_OVER_TIME = ReportTable(
    "errors_over_time",
    "Errors over time",
    "One row per window and kind of failure.",
    (
        *WINDOW,
        TableColumn("error", "string", "", "response code name, `no response`, or `unknown`"),
        TableColumn("exchanges", "int", "", "number of exchanges"),
        TableColumn("operations", "list", "", "operations with this response"),
        TableColumn("brokers", "list", "", "brokers or addresses with this response"),
    ),
    order=("window_start", "-exchanges", "error"),
    shown=0,
)
