"""The tables of the latency report: what their columns mean, how they are sorted and shown."""

from __future__ import annotations

from ..report import ReportTable, TableColumn
from ..sends.hops import RELAY_COLUMNS
from ..sends.unavailable import OUTAGE_COLUMNS

_ANSWERS: tuple[TableColumn, ...] = (
    TableColumn("exchanges", "int", "", "number of requests; orphan responses are not counted"),
    TableColumn("answered", "int", "", "requests with a response, successful or not"),
    TableColumn("failed", "int", "", "requests with a failure response"),
    TableColumn("not_durable", "int", "", "messages stored, but not flushed or replicated in time"),
    TableColumn(
        "no_answer", "int", "", ("unanswered requests; the packets prove that no response came")
    ),
    TableColumn("unknown", "int", "", "requests whose response may simply not have been captured"),
    TableColumn(
        "withdrawn", "int", "", ("long polls that the client ended by closing its connection")
    ),
    TableColumn("oneway", "int", "", "requests that expect no response"),
    TableColumn("failed_share", "float", "share", "failed / answered"),
    TableColumn(
        "no_answer_share", "float", "share", "no_answer / (answered + no_answer), without unknown"
    ),
)
_LATENCY: tuple[TableColumn, ...] = (
    TableColumn("mean_us", "float", "µs", "mean latency of answered requests"),
    TableColumn("p50_us", "int", "µs", "median latency"),
    TableColumn("p90_us", "int", "µs", "90th percentile latency"),
    TableColumn("p95_us", "int", "µs", "95th percentile latency"),
    TableColumn("p99_us", "int", "µs", "99th percentile latency"),
    TableColumn("p999_us", "int", "µs", "99.9th percentile latency"),
    TableColumn("max_us", "int", "µs", "longest"),
)
_RATE = TableColumn("rate", "float", "1/s", "exchanges per second over the whole capture")
_OPERATION = TableColumn("operation", "string", "", "request name")
_WAITS = TableColumn(
    "long_poll", "bool", "", "whether the broker may hold the request until a message arrives"
)
_BROKER = TableColumn("broker", "string", "", "broker name if known, otherwise address")
_CLIENT = TableColumn("client", "string", "", "client address without port")
_WINDOW = TableColumn("window_start", "time", "", "start of the window")
_WINDOW_US = TableColumn("window_us", "int", "µs", "length of the window")
_COARSE = (
    TableColumn("from_us", "int", "µs", "lower bound of the bucket"),
    TableColumn("below_us", "int", "µs", "exclusive upper bound of the bucket"),
)

TOTAL = ReportTable(
    "latency_total",
    "Overall latency",
    "One row for calls and one for long polls, most frequent first.",
    (_WAITS, *_ANSWERS, _RATE, *_LATENCY),
    order=("-exchanges", "long_poll"),
    brief=(
        "long_poll",
        "exchanges",
        "p50_us",
        "p99_us",
        "max_us",
        "failed",
        "no_answer",
        "unknown",
        "rate",
    ),
)
OPERATIONS = ReportTable(
    "operations",
    "Operations",
    "One row per operation, most frequent first.",
    (
        _OPERATION,
        TableColumn("code", "int", "", "request code"),
        _WAITS,
        *_ANSWERS,
        TableColumn("share", "float", "share", "share of all exchanges"),
        _RATE,
        *_LATENCY,
        TableColumn("bytes", "int", "bytes", "bytes of requests and responses (whole frames)"),
        TableColumn("clients", "int", "", "number of client addresses"),
        TableColumn("brokers", "int", "", "number of server addresses"),
    ),
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
        "clients",
        "brokers",
        "long_poll",
    ),
)
BROKERS = ReportTable(
    "latency_brokers",
    "Latency by broker",
    "One row per broker or NameServer, most frequent first; long polls separately.",
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
    "Latency by all dimensions",
    "One row per operation, broker, topic, group, and client, largest total time first.",
    (
        _OPERATION,
        _BROKER,
        TableColumn("topic", "string", "", "topic of the request; empty if the request names none"),
        TableColumn(
            "group", "string", "", ("producer or consumer group; empty if the request names none")
        ),
        _CLIENT,
        _WAITS,
        *_ANSWERS,
        _RATE,
        *_LATENCY,
        TableColumn("total_us", "int", "µs", "total latency of answered requests"),
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
    "One row per window and broker (empty: all brokers), without long polls.",
    (_WINDOW, _WINDOW_US, _BROKER, *_ANSWERS, _RATE, *_LATENCY),
    order=("window_start", "broker"),
    shown=0,
)
HISTOGRAM = ReportTable(
    "latency_histogram",
    "Latency histogram",
    "One row per operation and non-empty bucket; bucket bounds are powers of two.",
    (
        _OPERATION,
        _WAITS,
        *_COARSE,
        TableColumn("exchanges", "int", "", "answered exchanges in the bucket"),
        TableColumn("share", "float", "share", "share of the operation's answered requests"),
    ),
    order=("long_poll", "operation", "from_us"),
    shown=0,
)
HEAT = ReportTable(
    "latency_heat",
    "Latency heatmap",
    "One row per window and non-empty bucket, without long polls.",
    (_WINDOW, _WINDOW_US, *_COARSE, TableColumn("exchanges", "int", "", "answered exchanges")),
    order=("window_start", "from_us"),
    shown=0,
)
SLOWEST = ReportTable(
    "latency_slowest",
    "Slowest exchanges",
    "One row per exchange, slowest first, without long polls.",
    (
        TableColumn("latency_us", "int", "µs", "latency from request to response"),
        TableColumn("time", "time", "", "time of the request"),
        _OPERATION,
        _BROKER,
        TableColumn("topic", "string", "", "topic of the request"),
        TableColumn("group", "string", "", "producer or consumer group"),
        TableColumn("requester", "string", "", "client `address:port`"),
        TableColumn("responder", "string", "", "server `address:port`"),
        TableColumn("answer", "string", "", "response code name"),
        TableColumn("remark", "string", "", "remark of the response"),
        TableColumn(
            "network_us",
            "int",
            "µs",
            ("handshake round-trip time on the server side of the capture"),
        ),
        TableColumn(
            "broker_us", "int", "µs", ("latency minus network_us: time spent in the broker")
        ),
        TableColumn(
            "retransmitted", "bool", "", ("whether parts of the exchange were retransmitted")
        ),
        TableColumn("capture", "string", "", "capture file"),
        TableColumn("request_packet", "int", "", "request packet number"),
        TableColumn("response_packet", "int", "", "response packet number"),
        TableColumn("unique_key", "string", "", "UNIQ_KEY of the message"),
    ),
    # calls of one packet may have all of these in common but the key
    order=("-latency_us", "time", "capture", "request_packet", "response_packet", "unique_key"),
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
    "Network versus broker",
    "One row per client and server, most exchanges first.",
    (
        TableColumn("client", "string", "", "client address without port"),
        TableColumn("server", "string", "", "server `address:port`"),
        _BROKER,
        TableColumn("connections", "int", "", "TCP connections, including refused ones"),
        TableColumn("refused", "int", "", "connects refused with RST"),
        TableColumn("unreachable", "int", "", "connections whose SYN got no response"),
        TableColumn("reset", "int", "", "connections ended by RST"),
        TableColumn("exchanges", "int", "", "answered requests, without long polls"),
        TableColumn("mean_us", "float", "µs", "mean latency of these requests"),
        TableColumn(
            "network_us",
            "float",
            "µs",
            (
                "mean network share of the latency (handshake round trip to the server); empty "
                "without a captured handshake"
            ),
        ),
        TableColumn("network_share", "float", "share", "network_us / latency, where known"),
        TableColumn("known_share", "float", "share", "requests with a known network share"),
        TableColumn(
            "beyond_us",
            "float",
            "µs",
            "round-trip time on the client side, which the latency does not include",
        ),
        TableColumn("retransmitted", "int", "", "answered requests with retransmissions"),
        TableColumn("retransmitted_mean_us", "float", "µs", "mean latency of these requests"),
        TableColumn("retransmissions", "int", "", "retransmitted segments in both directions"),
        TableColumn("zero_windows", "int", "", "zero-window packets in both directions"),
        TableColumn("gap_bytes", "int", "bytes", "bytes missing from the capture"),
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
    "Unreachable brokers",
    "One row per server and period of failed connects. No exchange shows this latency.",
    OUTAGE_COLUMNS,
    order=("first_time", "broker", "server"),
    brief=("broker", "first_time", "lasted_us", "connects", "producers", "clients", "strangers"),
)
RELAYED = ReportTable(
    "relays",
    "Proxies and relays",
    "One row per relay address and upstream server. Other latencies are those of both hops.",
    RELAY_COLUMNS,
    order=("-sends", "relay", "server", "from_host"),
)
TABLES = (
    TOTAL,
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
