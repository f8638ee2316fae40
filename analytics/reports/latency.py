"""How long brokers and name servers took to answer, for whom, when, and how much was the network.

Rules: latency is what the capture saw, from the packet that completed the request to the one that
completed the answer. Requests that a broker holds back on purpose are never mixed with calls. The
network's part is the round trip between the place of the capture and the other end, as the
handshake showed it; where no handshake was captured it is unknown. The exchanges are counted twice,
by what they are about (`_cells`) and over time (`_windows`); most tables are made from these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .. import derived
from ..expressions import adding, grouped, texts
from ..percentiles import bucket_of, percentiles, power_below
from ..schema import SOURCE
from ..windows import with_window
from . import Chart, Report, ReportInput, ReportOptions, ReportTable, Rows, TableColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ANSWERS: tuple[TableColumn, ...] = (
    TableColumn("exchanges", "int", "", "requests; responses without a request are not counted"),
    TableColumn("answered", "int", "", "of them answered, whatever the answer"),
    TableColumn("failed", "int", "", "answered with a failure"),
    TableColumn("no_answer", "int", "", "not answered, and the packets show that none came"),
    TableColumn(
        "unknown", "int", "", "not answered within the capture, which cannot say whether one came"
    ),
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
    "A row an operation, the most frequent first.",
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
    "A row a broker or name server, long polls apart; the most frequent first.",
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
    "A row a window and broker (absent: all of them), long polls left out.",
    (_WINDOW, _WINDOW_US, _BROKER, *_ANSWERS, _RATE, *_LATENCY),
    order=("window_start", "broker"),
    shown=0,
)
HISTOGRAM = ReportTable(
    "latency_histogram",
    "Histogram of latencies",
    "A row an operation and bucket that has something in it; buckets are powers of two.",
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
    "A row a window and bucket that has something in it, long polls left out.",
    (_WINDOW, _WINDOW_US, *_COARSE, TableColumn("exchanges", "int", "", "answered exchanges")),
    order=("window_start", "from_us"),
    shown=0,
)
SLOWEST = ReportTable(
    "latency_slowest",
    "Slowest exchanges",
    "A row an exchange, the slowest first, long polls left out.",
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
        "operation",
        "broker",
        "topic",
        "network_us",
        "retransmitted",
        "answer",
        "time",
        "capture",
        "request_packet",
        "response_packet",
        "requester",
    ),
    shown=10,
)
NETWORK = ReportTable(
    "latency_network",
    "Network and broker",
    "A row a client and server, by the connections between them; the most exchanges first.",
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

_SUMS = ("exchanges", "answered", "failed", "no_answer", "unknown", "oneway")
_KEYS = ("operation", "responder", "broker_name", "topic", "group", "client", "long_poll")
_GROUP_KEYS = ("operation", "broker", "topic", "group", "client", "long_poll")
_PER_WINDOW = ("window_start", "window_us")
_PROTOCOLS = ("ROCKETMQ", "unknown", "no payload", "")


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:
    """Return the tables; `NETWORK` is absent where the input has no connections."""
    seen = _seen(given)
    cells = _cells(seen, _KEYS).persist()
    names = derived.broker_names(cells)
    named = derived.with_names(cells, names)
    span = cells.selectExpr("unix_micros(max(last)) - unix_micros(min(first)) as _span")
    windows = _windows(seen, names, options.window_us)
    made: dict[str, Callable[[], DataFrame]] = {
        OPERATIONS.name: lambda: _table(named, span, ["operation", "long_poll"]),
        BROKERS.name: lambda: _table(named, span, ["broker", "long_poll"]),
        GROUPS.name: lambda: _table(named, span, _GROUP_KEYS),
        OVER_TIME.name: lambda: _over_time(windows, span),
        HISTOGRAM.name: lambda: _histogram(cells),
        HEAT.name: lambda: _coarse(windows, _PER_WINDOW),
        SLOWEST.name: lambda: _slowest(given, names, options.slowest),
    }
    conversations = given.conversations
    if conversations is not None:
        made[NETWORK.name] = lambda: _network(given.exchanges, conversations, names)
    wanted = options.tables
    return {name: make() for name, make in made.items() if wanted is None or name in wanted}


def _seen(given: ReportInput) -> DataFrame:
    """Return the requests with what they are counted by."""
    return adding(
        derived.with_outcome(given.exchanges, given.conversations).where("outcome != 'orphan'"),
        {
            "operation": derived.OPERATION,
            "client": derived.address_of("requester"),
            "long_poll": derived.WAITS,
            "time": derived.HAPPENED,
            "bucket": bucket_of("latency_us"),
        },
    )


def _cells(seen: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return a row a combination of `keys` and bucket: one pass over the exchanges."""
    return grouped(
        seen,
        [*keys, "bucket"],
        {
            "exchanges": "count(*)",
            "answered": f"count_if(outcome in ('{derived.OK}', '{derived.FAILED}'))",
            "failed": f"count_if(outcome = '{derived.FAILED}')",
            "no_answer": f"count_if(outcome = '{derived.NO_ANSWER}')",
            "unknown": f"count_if(outcome = '{derived.UNKNOWN}')",
            "oneway": "count_if(outcome = 'oneway')",
            "values": "count(latency_us)",
            "total_us": "sum(latency_us)",
            "smallest_us": "min(latency_us)",
            "largest_us": "max(latency_us)",
            "first": "min(time)",
            "last": "max(time)",
        },
    )


def _windows(seen: DataFrame, names: DataFrame, length_us: int | None) -> DataFrame:
    """Return a row a window, broker and bucket, without long polls: a pass of its own.

    Together with all that a request is about there would be about as many cells as exchanges.
    """
    windowed = with_window(seen.where("not long_poll"), "time", length_us)
    cells = _cells(windowed, [*_PER_WINDOW, "responder"])
    return derived.with_names(cells, names).persist()


def _over_time(windows: DataFrame, span: DataFrame) -> DataFrame:
    """Return the windows of each broker, and of all together."""
    by_broker = _table(windows, span, [*_PER_WINDOW, "broker"])
    whole = adding(_table(windows, span, _PER_WINDOW), {"broker": "cast(null as string)"})
    together = by_broker.unionByName(whole).drop("rate")
    return adding(together, {"rate": "exchanges * 1000000 / window_us"})


def _table(cells: DataFrame, span: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return a row a group of `keys`, with what all these tables have in common."""
    found = percentiles(cells, keys, [*_SUMS, "total_us"]).crossJoin(F.broadcast(span))
    return adding(
        found,
        {
            "failed_share": "try_divide(failed, answered)",
            "no_answer_share": "try_divide(no_answer, answered + no_answer)",
            "rate": "try_divide(exchanges * 1000000, _span)",
        },
    )


def _histogram(cells: DataFrame) -> DataFrame:
    keys = ["operation", "long_poll"]
    whole = grouped(cells, keys, {"_all": "sum(values)"})
    joined = _coarse(cells, keys).join(F.broadcast(whole), keys)
    return adding(joined, {"share": "exchanges / _all"})


def _coarse(cells: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the answered exchanges of each group by powers of two, which no bucket straddles."""
    known = cells.where("bucket is not null")
    powers = adding(known, {"from_us": power_below("largest_us")})
    counted = grouped(powers, [*keys, "from_us"], {"exchanges": "sum(values)"})
    return adding(counted, {"below_us": "greatest(from_us * 2, 1L)"})


def _slowest(given: ReportInput, names: DataFrame, count: int) -> DataFrame:
    calls = given.exchanges.where(
        f"latency_us is not null and status = 'answered' and not {derived.WAITS}"
    )
    order = ["request_time", "capture", "request_packet", "response_packet"]
    chosen = calls.orderBy(F.desc("latency_us"), *order).limit(count)
    if given.conversations is None:
        known = adding(chosen, {"network_us": "cast(null as bigint)"})
    else:
        ends = given.conversations.select(
            SOURCE, "conversation", "client", "syn_rtt_us", "ack_rtt_us"
        )
        joined = chosen.join(ends, [SOURCE, "conversation"], "left")
        known = adding(joined, {"network_us": _NEAR})
    return adding(
        derived.with_names(known, names),
        {
            "time": "request_time",
            "operation": derived.OPERATION,
            "answer": "response_name",
            "broker_us": "if(network_us is null, null, greatest(latency_us - network_us, 0L))",
            "retransmitted": _REPEATED,
        },
    )


_NEAR = "if(requester = client, syn_rtt_us, ack_rtt_us)"
"""SQL: round trip between the place of the capture and the end that answered."""
_FAR = "if(requester = client, ack_rtt_us, syn_rtt_us)"
"""SQL: round trip between the end that asked and the place of the capture."""
_REPEATED = "array_contains(expert, 'RETRANSMISSION')"


def _network(exchanges: DataFrame, conversations: DataFrame, names: DataFrame) -> DataFrame:
    """Return a row a client and server; connections without exchanges count as well."""
    carried = grouped(
        exchanges.where(f"latency_us is not null and not {derived.WAITS}"),
        [SOURCE, "conversation", "requester"],
        {
            "carried": "count(*)",
            "total_us": "sum(latency_us)",
            "repeated": f"count_if({_REPEATED})",
            "repeated_us": f"sum(if({_REPEATED}, latency_us, 0L))",
        },
    )
    known = conversations.where(f"protocol in {texts(_PROTOCOLS)}")
    sides = adding(
        known.join(carried, [SOURCE, "conversation"], "left"),
        {
            "near": _NEAR,
            "far": _FAR,
            # a connection on which both ends ask comes twice; its own facts count once
            "once": f"row_number() over (partition by {SOURCE}, conversation order by requester)"
            " = 1",
            "_client": derived.address_of("client"),
        },
    )
    return _per_pair(sides.drop("client").withColumnRenamed("_client", "client"), names)


def _per_pair(sides: DataFrame, names: DataFrame) -> DataFrame:
    """Return a row a pair of client address and server."""
    found = grouped(
        sides,
        ["client", "server"],
        {
            "connections": "count_if(once)",
            "refused": "count_if(once and `end` = 'refused')",
            "unreachable": "count_if(once and `end` = 'no_answer')",
            "reset": "count_if(once and `end` = 'reset')",
            "exchanges": "coalesce(sum(carried), 0L)",
            "mean_us": "try_divide(sum(total_us), sum(carried))",
            "_known": "sum(if(near is null, 0L, carried))",
            "_part": "sum(least(near * carried, total_us) * if(near is null, 0, 1))",
            "_known_us": "sum(if(near is null, 0L, total_us))",
            "beyond_us": "avg(far)",
            "retransmitted": "coalesce(sum(repeated), 0L)",
            "retransmitted_mean_us": "try_divide(sum(repeated_us), sum(repeated))",
            **{
                name: f"coalesce(sum(if(once, {columns}, 0L)), 0L)"
                for name, columns in (
                    ("retransmissions", "client_retransmissions + server_retransmissions"),
                    ("zero_windows", "client_zero_windows + server_zero_windows"),
                    ("gap_bytes", "gap_bytes"),
                )
            },
        },
    )
    return adding(
        derived.with_names(adding(found, {"responder": "server"}), names),
        {
            "network_us": "try_divide(_part, _known)",
            "network_share": "try_divide(_part, _known_us)",
            "known_share": "try_divide(coalesce(_known, 0L), exchanges)",
        },
    )


def remarks(rows: Rows) -> list[str]:
    """Return what must be known before the numbers are read."""
    said = []
    operations = rows.get(OPERATIONS.name, ())
    unknown = sum(_int(row, "unknown") for row in operations)
    if unknown:
        said.append(
            f"{unknown:,} requests were not answered within the capture, which cannot say whether"
            " an answer came: they are in no share."
        )
    return said


def _int(row: Mapping[str, object], name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0


REPORT = Report(
    name="latency",
    title="Latency",
    question="How long did brokers take to answer, for whom, when, and how much was the network?",
    tables=(OPERATIONS, BROKERS, GROUPS, OVER_TIME, HISTOGRAM, HEAT, SLOWEST, NETWORK),
    build=build,
    charts=(
        Chart(
            "lines",
            "Latency over time",
            OVER_TIME.name,
            {
                "x": "window_start",
                "y": "p50_us p95_us p99_us max_us",
                "only": "broker",
                "width": "window_us",
            },
        ),
        Chart(
            "lines",
            "99th percentile over time by broker",
            OVER_TIME.name,
            {"x": "window_start", "y": "p99_us", "by": "broker", "width": "window_us"},
        ),
        Chart(
            "heat",
            "Latencies over time, how many",
            HEAT.name,
            {"x": "window_start", "y": "from_us", "value": "exchanges", "width": "window_us"},
        ),
    ),
    remarks=remarks,
)
