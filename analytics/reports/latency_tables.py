"""The tables of the latency report: what their columns mean, how they are sorted and shown."""

from __future__ import annotations

from ..report import ReportTable, TableColumn
from ..sends.hops import RELAY_COLUMNS
from ..sends.unavailable import OUTAGE_COLUMNS

_ANSWERS: tuple[TableColumn, ...] = (
    TableColumn("exchanges", "int", "", "requests; responses without a request are not counted"),
    TableColumn("answered", "int", "", "of them answered, whatever the answer"),
    TableColumn("failed", "int", "", "answered with a failure"),
    TableColumn("not_durable", "int", "", "stored, but not on disk or on a slave in time"),
    TableColumn("no_answer", "int", "", "not answered, and the packets show that none came"),
    TableColumn(
        "unknown", "int", "", "not answered within the capture, which cannot say whether one came"
    ),
    TableColumn("withdrawn", "int", "", "long polls that the requester ended with its connection"),
    TableColumn("oneway", "int", "", "sent without expecting an answer"),
    TableColumn("failed_share", "float", "share", "failed / answered"),
    TableColumn(
        "no_answer_share", "float", "share", "no_answer / (answered + no_answer): unknown left out"
    ),
)
_LATENCY: tuple[TableColumn, ...] = (
    TableColumn("mean_us", "float", "µs", "mean latency of the answered ones"),
    TableColumn("p50_us", "int", "µs", "half of them took no longer"),
    TableColumn("p90_us", "int", "µs", "90 % took no longer"),
    TableColumn("p95_us", "int", "µs", "95 % took no longer"),
    TableColumn("p99_us", "int", "µs", "99 % took no longer"),
    TableColumn("p999_us", "int", "µs", "99.9 % took no longer"),
    TableColumn("max_us", "int", "µs", "the longest"),
)
_RATE = TableColumn("rate", "float", "1/s", "exchanges a second, from the first to the last of all")
_OPERATION = TableColumn("operation", "string", "", "name of the request")
_WAITS = TableColumn(
    "long_poll", "bool", "", "the broker may hold the request back until there is a message"
)
_BROKER = TableColumn(
    "broker", "string", "", "broker name where requests to the address agree on it, else address"
)
_CLIENT = TableColumn("client", "string", "", "address of the requester, without port")
_WINDOW = TableColumn("window_start", "time", "", "beginning of the window")
_WINDOW_US = TableColumn("window_us", "int", "µs", "length of the window")
_COARSE = (
    TableColumn("from_us", "int", "µs", "lower bound of the bucket"),
    TableColumn("below_us", "int", "µs", "upper bound, not in the bucket"),
)

OPERATIONS = ReportTable(
    "latency_operations",
    "Latency by operation",
    "One row per operation, the most frequent first.",
    (_OPERATION, _WAITS, *_ANSWERS, _RATE, *_LATENCY),
    order=("long_poll", "-exchanges", "operation"),
    brief=(
        "operation",
        "exchanges",
        "p50_us",
        "p99_us",
        "max_us",
        "failed",
        "no_answer",
        "unknown",
        "rate",
        "p90_us",
        "p95_us",
        "p999_us",
        "oneway",
        "long_poll",
    ),
)
BROKERS = ReportTable(
    "latency_brokers",
    "Latency by broker",
    "One row per broker or name server, long polls apart; the most frequent first.",
    (_BROKER, _WAITS, *_ANSWERS, _RATE, *_LATENCY),
    order=("long_poll", "-exchanges", "broker"),
    brief=(
        "broker",
        "exchanges",
        "p50_us",
        "p99_us",
        "max_us",
        "failed",
        "no_answer",
        "unknown",
        "long_poll",
        "rate",
        "p95_us",
    ),
)
GROUPS = ReportTable(
    "latency",
    "Latency by operation, broker, topic, group and client",
    "A row each combination, the one that took the most time first.",
    (
        _OPERATION,
        _BROKER,
        TableColumn("topic", "string", "", "topic of the request; absent: it names none"),
        TableColumn("group", "string", "", "producer or consumer group; absent: it names none"),
        _CLIENT,
        _WAITS,
        *_ANSWERS,
        _RATE,
        *_LATENCY,
        TableColumn("total_us", "int", "µs", "latency of all its answered exchanges together"),
    ),
    order=("long_poll", "-total_us", "operation", "broker", "topic", "group", "client"),
    brief=(
        "operation",
        "broker",
        "topic",
        "exchanges",
        "p50_us",
        "p99_us",
        "group",
        "client",
        "failed",
        "no_answer",
        "unknown",
        "max_us",
    ),
    shown=15,
)
OVER_TIME = ReportTable(
    "latency_over_time",
    "Latency over time",
    "One row per window and broker (absent: all of them), long polls left out.",
    (_WINDOW, _WINDOW_US, _BROKER, *_ANSWERS, _RATE, *_LATENCY),
    order=("window_start", "broker"),
    shown=0,
)
HISTOGRAM = ReportTable(
    "latency_histogram",
    "Histogram of latencies",
    "One row per operation and bucket that has something in it; buckets are powers of two.",
    (
        _OPERATION,
        _WAITS,
        *_COARSE,
        TableColumn("exchanges", "int", "", "answered exchanges in the bucket"),
        TableColumn("share", "float", "share", "of the operation's answered exchanges"),
    ),
    order=("long_poll", "operation", "from_us"),
    shown=0,
)
HEAT = ReportTable(
    "latency_heat",
    "Latencies over time, how many",
    "One row per window and bucket that has something in it, long polls left out.",
    (_WINDOW, _WINDOW_US, *_COARSE, TableColumn("exchanges", "int", "", "answered exchanges")),
    order=("window_start", "from_us"),
    shown=0,
)
SLOWEST = ReportTable(
    "latency_slowest",
    "Slowest exchanges",
    "One row per exchange, the slowest first, long polls left out.",
    (
        TableColumn("latency_us", "int", "µs", "from request to answer"),
        TableColumn("time", "time", "", "time of the request"),
        _OPERATION,
        _BROKER,
        TableColumn("topic", "string", "", "topic of the request"),
        TableColumn("group", "string", "", "producer or consumer group"),
        TableColumn("requester", "string", "", "`address:port` that asked"),
        TableColumn("responder", "string", "", "`address:port` that answered"),
        TableColumn("answer", "string", "", "name of the response code"),
        TableColumn("remark", "string", "", "what the answer says"),
        TableColumn(
            "network_us", "int", "µs", "round trip of the connection's handshake on that side"
        ),
        TableColumn("broker_us", "int", "µs", "latency less that: what is left for the broker"),
        TableColumn("retransmitted", "bool", "", "bytes of its frames were seen repeatedly"),
        TableColumn("capture", "string", "", "where to look it up"),
        TableColumn("request_packet", "int", "", "packet of the request"),
        TableColumn("response_packet", "int", "", "packet of the answer"),
        TableColumn("unique_key", "string", "", "client's message id"),
    ),
    order=("-latency_us", "time", "capture", "request_packet", "response_packet"),
    brief=(
        "latency_us",
        "time",
        "request_packet",
        "operation",
        "topic",
        "broker",
        "answer",
        "network_us",
        "retransmitted",
        "response_packet",
        "requester",
        "capture",
    ),
    shown=10,
)
NETWORK = ReportTable(
    "latency_network",
    "Network and broker",
    "One row per client and server, by the connections between them; the most exchanges first.",
    (
        TableColumn("client", "string", "", "address that connected, without port"),
        TableColumn("server", "string", "", "`address:port` it connected to"),
        _BROKER,
        TableColumn("connections", "int", "", "TCP connections, refused ones too"),
        TableColumn("refused", "int", "", "of them refused: SYN answered by RST"),
        TableColumn("unreachable", "int", "", "of them with a SYN that was never answered"),
        TableColumn("reset", "int", "", "of them ended by RST"),
        TableColumn("exchanges", "int", "", "answered exchanges on them, long polls left out"),
        TableColumn("mean_us", "float", "µs", "their mean latency"),
        TableColumn(
            "network_us",
            "float",
            "µs",
            "mean part of it that is network: round trip between capture and the other end; absent:"
            " no handshake was captured",
        ),
        TableColumn("network_share", "float", "share", "that part, of those where it is known"),
        TableColumn("known_share", "float", "share", "exchanges with a known network part"),
        TableColumn(
            "beyond_us",
            "float",
            "µs",
            "round trip on the other side of the capture, which the latency does not contain",
        ),
        TableColumn("retransmitted", "int", "", "answered exchanges with repeated bytes"),
        TableColumn("retransmitted_mean_us", "float", "µs", "their mean latency"),
        TableColumn("retransmissions", "int", "", "segments repeated, both directions"),
        TableColumn("zero_windows", "int", "", "packets that said: no room left, both directions"),
        TableColumn("gap_bytes", "int", "bytes", "bytes that the capture does not have"),
    ),
    order=("-exchanges", "-connections", "client", "server"),
    brief=(
        "client",
        "server",
        "exchanges",
        "mean_us",
        "network_us",
        "network_share",
        "retransmissions",
        "zero_windows",
        "refused",
        "reset",
        "connections",
        "broker",
        "unreachable",
    ),
)
OUTAGES = ReportTable(
    "latency_unavailable",
    "Brokers that could not be reached",
    "One row per server and period in which connects to it failed: a latency that no exchange has.",
    OUTAGE_COLUMNS,
    order=("first_time", "broker", "server"),
    brief=("broker", "first_time", "lasted_us", "connects", "producers", "clients", "strangers"),
)
RELAYED = ReportTable(
    "latency_relays",
    "Proxies and other relays",
    "One row per address that takes sends and makes them again, and the server behind it; both hops"
    " are in the other tables, each for itself.",
    RELAY_COLUMNS,
    order=("-sends", "relay", "server", "from_host"),
)
TABLES = (
    OPERATIONS,
    BROKERS,
    OUTAGES,
    RELAYED,
    GROUPS,
    OVER_TIME,
    HISTOGRAM,
    HEAT,
    SLOWEST,
    NETWORK,
)
