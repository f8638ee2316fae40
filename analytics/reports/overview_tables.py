"""The tables of the overview: what their columns mean, how they are sorted and shown."""

from __future__ import annotations

from ..report import ReportTable, TableColumn
from ..sends.hops import RELAY_COLUMNS
from ..sends.unavailable import CONNECT_COLUMNS

COUNTS = (
    TableColumn("exchanges", "int", "", "requests"),
    TableColumn("failed", "int", "", "answered with a failure"),
    TableColumn("not_durable", "int", "", "stored, but not on disk or on a slave in time"),
    TableColumn("no_answer", "int", "", "not answered, and the packets show that none came"),
    TableColumn("unknown", "int", "", "not answered within the capture, which cannot say more"),
)
_BYTES = TableColumn("bytes", "int", "bytes", "of requests and answers, whole frames")
_FIRST = TableColumn("first_time", "time", "", "the first time")
_LAST = TableColumn("last_time", "time", "", "the last time")
_LOOK_UP = (
    TableColumn("capture", "string", "", "capture of the first one"),
    TableColumn("packet", "int", "", "its packet: of the answer, or of a request without one"),
)

ERRORS = ReportTable(
    "errors",
    "Errors",
    "One row per response code and remark other than success; failures first, then by count.",
    (
        TableColumn(
            "class",
            "string",
            "",
            "`failed`; `stored, not durable`: the message is there, but not on disk or on a slave"
            " in time; `expected`: a consumer asked for its retry topic before it was made",
        ),
        TableColumn("answer", "string", "", "name of the response code"),
        TableColumn("code", "int", "", "response code"),
        TableColumn(
            "remark", "string", "", "of the first one; alike ones differ in numbers and ids only"
        ),
        TableColumn(
            "alike", "string", "", "what the remarks have in common; numbers, ids, addresses as …"
        ),
        TableColumn("exchanges", "int", "", "how often"),
        TableColumn("operations", "list", "", "requests that were answered so"),
        TableColumn("brokers", "list", "", "who answered so: names or addresses"),
        TableColumn("clients", "int", "", "how many client addresses"),
        TableColumn("topics", "list", "", "topics concerned"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
        TableColumn("rank", "int", "", "of the class: 1 is the gravest"),
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
    "Requests without an answer",
    "One row per operation, responder and end of the connection: proven ones first, long polls that"
    " the requester ended last.",
    (
        TableColumn("operation", "string", "", "name of the request"),
        TableColumn("broker", "string", "", "who should have answered"),
        TableColumn(
            "end",
            "string",
            "",
            "what became of the connection: `reset`, `closed`, `open`; absent: unknown",
        ),
        TableColumn(
            "proven",
            "bool",
            "",
            "the packets show that none came; else it may have been missed",
        ),
        TableColumn(
            "withdrawn", "bool", "", "a long poll that the requester ended with its connection"
        ),
        TableColumn("exchanges", "int", "", "how often"),
        _FIRST,
        _LAST,
        *_LOOK_UP,
    ),
    order=("withdrawn", "-proven", "-exchanges", "operation", "broker", "end"),
)
UNREACHABLE = ReportTable(
    "unreachable",
    "Connects that failed",
    "One row per server and client address whose connects failed, the most frequent first.",
    CONNECT_COLUMNS,
    order=("-connects", "broker", "server", "client"),
    brief=("broker", "client", "who", "connects", "first_time", "last_time", "silent", "server"),
)
RELAYED = ReportTable(
    "relays",
    "Proxies and other relays",
    "One row per address that takes sends and makes them again, and the server behind it: what it"
    " made is counted in the other tables, too. `latency_relays` has the latency of both hops.",
    RELAY_COLUMNS[:3],
    order=("relay", "server", "from_host"),
)
OPERATIONS = ReportTable(
    "operations",
    "Operations",
    "One row per operation, the most frequent first.",
    (
        TableColumn("operation", "string", "", "name of the request"),
        TableColumn("code", "int", "", "request code"),
        *COUNTS,
        TableColumn("oneway", "int", "", "sent without expecting an answer"),
        TableColumn("share", "float", "share", "of all exchanges"),
        _BYTES,
        TableColumn("clients", "int", "", "addresses that asked so"),
        TableColumn("brokers", "int", "", "addresses that were asked so"),
    ),
    order=("-exchanges", "operation", "code"),
)
TOPICS = ReportTable(
    "topics",
    "Topics",
    "One row per topic, the one with most exchanges first.",
    (
        TableColumn("topic", "string", "", "name of the topic"),
        *COUNTS,
        TableColumn("sends", "int", "", "requests that send messages to it"),
        TableColumn("sent", "int", "", "messages in the sends that succeeded"),
        TableColumn("fetches", "int", "", "requests that fetch messages: pull and POP"),
        TableColumn("fetched", "int", "", "messages in their answers"),
        _BYTES,
        TableColumn("groups", "list", "", "groups that asked"),
        TableColumn("brokers", "list", "", "brokers that were asked: names or addresses"),
        TableColumn("clients", "int", "", "client addresses"),
    ),
    order=("-exchanges", "topic"),
)
CLIENTS = ReportTable(
    "clients",
    "Clients",
    "One row per address, language and version, the one with most exchanges first.",
    (
        TableColumn("client", "string", "", "address of the requester, without port"),
        TableColumn("language", "string", "", "as it says"),
        TableColumn("version", "string", "", "as it says"),
        *COUNTS,
        TableColumn("connections", "int", "", "TCP connections on which it asked"),
        _BYTES,
        TableColumn("groups", "list", "", "groups it named"),
        TableColumn("operations", "list", "", "what it asked"),
        _FIRST,
        _LAST,
    ),
    order=("-exchanges", "client", "language", "version"),
)
