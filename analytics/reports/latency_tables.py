"""Tables of the latency report: columns, order, and display."""

from __future__ import annotations

from ..report import Chart, ReportTable, TableColumn, column_names, table_columns
from ..sends.hops import RELAY_COLUMNS
from .unreachable import OUTAGES

_RESPONSES = table_columns("""
    exchanges int: number of requests; orphan responses are not counted
    answered int: requests with a response, successful or not
    failed int: requests with a failure response
    not_durable int: messages stored, but not flushed or replicated in time
    no_response int: unanswered requests; the packets prove that no response came
    unknown int: requests whose response may simply not have been captured
    withdrawn int: long polls that the client ended by closing its connection
    oneway int: requests that expect no response
    failed_share float share: failed / answered
    no_response_share float share: no_response / (answered + no_response), without unknown
""")
_LATENCY = table_columns("""
    mean_us float µs: mean latency of answered requests
    p50_us int µs: median latency
    p90_us int µs: 90th percentile latency
    p95_us int µs: 95th percentile latency
    p99_us int µs: 99th percentile latency
    p999_us int µs: 99.9th percentile latency
    max_us int µs: longest
    bucket_mean float: mean histogram bucket (64 per power of two), for --compare
    bucket_sd float: standard deviation of the histogram bucket
""")
_RATE = TableColumn(
    ("rate"), "float", "1/s", "exchanges per second, over the whole capture or the row's window"
)
_OPERATION = TableColumn("operation", "string", "", "request name")
_WAITS = TableColumn(
    "long_poll", "bool", "", "whether the broker may hold the request until a message arrives"
)
_BROKER = TableColumn("broker", "string", "", "broker name if known, otherwise address")
_CLIENT = TableColumn("client", "string", "", "client address without port")
WINDOW = table_columns("""
    window_start time: start of the window
    window_us int µs: length of the window
""")
"""Columns added by `analytics.sql.windows.with_window`."""


def over_time(kind: str, title: str, table: ReportTable, **parts: str) -> Chart:
    """Return a chart of a table with the columns WINDOW."""
    return Chart(kind, title, table.name, {"x": "window_start", **parts, "width": "window_us"})


_BYTES = TableColumn("bytes", "int", "bytes", "bytes of requests and responses (whole frames)")
_TOTAL = TableColumn("total_us", "int", "µs", "total latency of answered requests")
RANK = table_columns("""
    time_share float share: share of the total latency of all long polls, or of all other requests
    cumulative float share: time_share of this row and all above it
""")
"""Columns added by `analytics.sql.expressions.ranked_by`."""
_LOAD = (
    _BYTES,
    *table_columns("""
        in_flight float: average number of requests waiting for their response
        peak_in_flight float: highest average over 1/1000 of a window
    """),
)
_PACKETS = table_columns("""
    capture string: capture file
    request_packet int: request packet number
    response_packet int: response packet number
""")
_OBJECTIVE = table_columns("""
    requests int: answered and provably unanswered requests, no long polls
    good int: requests answered in time without a failure
    good_share float share: good / requests
    missed int: requests that were slow, failed, or unanswered
    slow int: successful responses that came too late
    failed int: requests with a failure response
    no_response int: requests that provably got no response
    burn_rate float: missed share / allowed share; above 1 the error budget does not last
""")
_COARSE = table_columns("""
    from_us int µs: lower bound of the bucket
    below_us int µs: exclusive upper bound of the bucket
""")

TOTAL = ReportTable(
    "latency_total",
    "Overall latency",
    "One row for long polls and one for all other requests, most frequent first.",
    (_WAITS, *_RESPONSES, _RATE, *_LATENCY),
    order=("-exchanges", "long_poll"),
    brief=column_names("long_poll exchanges p50_us p99_us max_us failed no_response unknown rate"),
)
OPERATIONS = ReportTable(
    "operations",
    "Operations",
    "One row per operation, largest total latency first; long polls last.",
    (
        _OPERATION,
        TableColumn("code", "int", "", "request code"),
        _WAITS,
        *_RESPONSES,
        TableColumn("share", "float", "share", "share of all exchanges"),
        _RATE,
        *_LATENCY,
        _TOTAL,
        *RANK,
        _BYTES,
        *table_columns("""
            clients int: number of client addresses
            brokers int: number of server addresses
        """),
    ),
    order=("long_poll", "-total_us", "-exchanges", "operation"),
    brief=column_names(
        "operation exchanges total_us time_share p50_us p99_us max_us failed no_response"
        " cumulative unknown rate p90_us p95_us p999_us oneway clients brokers long_poll"
    ),
)
BROKERS = ReportTable(
    "latency_brokers",
    "Latency by broker",
    "One row per broker or NameServer, most frequent first; long polls separately.",
    (_BROKER, _WAITS, *_RESPONSES, _RATE, *_LATENCY, *_LOAD),
    order=("long_poll", "-exchanges", "broker"),
    brief=column_names(
        "broker exchanges p50_us p99_us max_us failed no_response peak_in_flight bytes"
        " long_poll unknown in_flight rate p95_us"
    ),
)
GROUPS = ReportTable(
    "latency",
    "Latency by all dimensions",
    "One row per operation, broker, topic, group, and client, largest total time first.",
    (
        _OPERATION,
        _BROKER,
        *table_columns("""
            topic string: topic of the request; empty if the request names none
            group string: producer or consumer group; empty if the request names none
        """),
        _CLIENT,
        _WAITS,
        *_RESPONSES,
        _RATE,
        *_LATENCY,
        _TOTAL,
    ),
    order=("long_poll", "-total_us", "operation", "broker", "topic", "group", "client"),
    brief=column_names(
        "operation broker topic exchanges p50_us p99_us group client failed no_response unknown"
        " max_us"
    ),
    shown=15,
)
OVER_TIME = ReportTable(
    "latency_over_time",
    "Latency over time",
    "One row per window and broker (empty: all brokers), without long polls.",
    (*WINDOW, _BROKER, *_RESPONSES, _RATE, *_LATENCY, *_LOAD),
    order=("window_start", "broker"),
    shown=0,
)
HISTOGRAM = ReportTable(
    "latency_histogram",
    "Latency histogram",
    "One row per operation and non-empty power of two, with its first exchange.",
    (
        _OPERATION,
        _WAITS,
        *_COARSE,
        *table_columns("""
            exchanges int: answered exchanges in the bucket
            share float share: share of the operation's answered requests
            time time: time of the first exchange in the bucket
        """),
        *_PACKETS,
    ),
    order=("long_poll", "operation", "from_us"),
    shown=0,
)
HEAT = ReportTable(
    "latency_heat",
    "Latency heatmap",
    "One row per window and non-empty bucket, without long polls.",
    (*WINDOW, *_COARSE, TableColumn("exchanges", "int", "", "answered exchanges")),
    order=("window_start", "from_us"),
    shown=0,
)
SLOWEST = ReportTable(
    "latency_slowest",
    "Slowest exchanges",
    "One row per exchange, slowest first, without long polls.",
    (
        *table_columns("""
            latency_us int µs: latency from request to response
            time time: time of the request
        """),
        _OPERATION,
        _BROKER,
        *table_columns("""
            topic string: topic of the request
            group string: producer or consumer group
            client_address string: client `address:port`
            server_address string: server `address:port`
            response string: response code name
            remark string: remark of the response
            network_us int µs: handshake round-trip time on the server side of the capture
            broker_us int µs: latency minus network_us: time spent in the broker
            retransmitted bool: whether parts of the exchange were retransmitted
        """),
        *_PACKETS,
        TableColumn("unique_key", "string", "", "UNIQ_KEY of the message"),
    ),
    # calls of gRPC may share their packets
    order=column_names(
        "-latency_us time capture request_packet response_packet unique_key operation topic group"
    ),
    brief=column_names(
        "latency_us time request_packet operation topic broker response network_us"
        " client_address retransmitted response_packet capture"
    ),
    shown=10,
)
NETWORK = ReportTable(
    "latency_network",
    "Network versus broker",
    "One row per client and server, most exchanges first.",
    (
        *table_columns("""
            client string: client address without port
            server_address string: server `address:port`
        """),
        _BROKER,
        *table_columns("""
            connections int: TCP connections, including refused ones
            refused int: connection attempts refused with RST
            unreachable int: connections whose SYN got no response
            reset int: connections ended by RST
            exchanges int: answered requests, without long polls
            mean_us float µs: mean latency of these requests
            network_us float µs: mean network share of the latency (handshake round trip to the
              server); empty without a captured handshake
            network_share float share: network_us / latency, where known
            known_share float share: requests with a known network share
            beyond_us float µs: round-trip time on the client side, which the latency does not
              include
            retransmitted int: answered requests with retransmissions
            retransmitted_mean_us float µs: mean latency of these requests
            retransmissions int: retransmitted segments in both directions
            zero_windows int: zero-window packets in both directions
            gap_bytes int bytes: bytes missing from the capture
        """),
    ),
    order=("-exchanges", "-connections", "client", "server_address"),
    brief=column_names(
        "client server_address exchanges mean_us network_us network_share retransmissions"
        " zero_windows refused reset connections broker unreachable"
    ),
)
RELAYED = ReportTable(
    "relays",
    "Proxies and relays",
    "One row per relay address and upstream server. Latencies in other tables include both hops.",
    RELAY_COLUMNS,
    order=("-sends", "relay", "server_address", "from_host"),
)
SLO = ReportTable(
    "latency_slo",
    "Latency objective",
    "One row per operation and broker, most missed requests first. Needs --slo.",
    (_OPERATION, _BROKER, *_OBJECTIVE),
    order=("-missed", "-requests", "operation", "broker"),
    option="slo",
)
SLO_OVER_TIME = ReportTable(
    "latency_slo_over_time",
    "Latency objective over time",
    "One row per window. Needs --slo.",
    (
        *WINDOW,
        *_OBJECTIVE,
        TableColumn(
            "budget_spent", "float", "share", "share of the error budget spent by the window's end"
        ),
    ),
    order=("window_start",),
    shown=0,
    option="slo",
)
TABLES = (
    TOTAL,
    SLO,
    OPERATIONS,
    BROKERS,
    OUTAGES,
    RELAYED,
    GROUPS,
    OVER_TIME,
    SLO_OVER_TIME,
    HISTOGRAM,
    HEAT,
    SLOWEST,
    NETWORK,
)
