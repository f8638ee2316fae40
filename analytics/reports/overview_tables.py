"""The tables of the overview: what their columns mean, how they are sorted and shown."""

from __future__ import annotations

from ..report import ReportTable, TableColumn

COUNTS = (
    TableColumn("exchanges", "int", "", "requests"),
    TableColumn("failed", "int", "", "requests with a failure response"),
    TableColumn("not_durable", "int", "", "messages stored, but not flushed or replicated in time"),
    TableColumn(
        "no_answer", "int", "", ("unanswered requests; the packets prove that no response came")
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
        TableColumn("answer", "string", "", "response code name"),
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
        "answer",
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
    "One row per topic, most exchanges first.",
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
        TableColumn("groups", "list", "", "number of groups"),
        TableColumn("brokers", "list", "", "brokers or addresses"),
        TableColumn("clients", "int", "", "client addresses"),
    ),
    order=("-exchanges", "topic"),
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
