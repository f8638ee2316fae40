"""How long brokers and name servers took to answer, for whom, when, and how much was the network.

Rules: latency is what the capture saw, from the packet that completed the request to the one that
completed the answer. Requests that a broker holds back on purpose are never mixed with calls. The
network's part is the round trip between the place of the capture and the other end, as the
handshake showed it; where no handshake was captured it is unknown. All tables but two come from one
pass over the exchanges (`_cells`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from .. import derived
from ..percentiles import bucket_of, percentiles, power_below
from ..schema import SOURCE
from ..windows import with_window
from . import Chart, Report, ReportInput, ReportOptions, ReportTable, Rows, TableColumn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

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
_PER_WINDOW = ("window_start", "window_us")
_PROTOCOLS = ("ROCKETMQ", "unknown", "no payload", "")


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:
    """Return the tables; `NETWORK` is absent where the input has no connections."""
    cells = _cells(given, options).persist()
    names = derived.broker_names(cells)
    named = _with_broker(cells, names)
    span = named.agg((F.unix_micros(F.max("last")) - F.unix_micros(F.min("first"))).alias("_span"))
    calls = named.where(~F.col("long_poll"))
    over_time = _table(calls, span, [*_PER_WINDOW, "broker"]).unionByName(
        _table(calls, span, _PER_WINDOW).withColumn("broker", F.lit(None).cast("string"))
    )
    tables = {
        OPERATIONS.name: _table(named, span, ["operation", "long_poll"]),
        BROKERS.name: _table(named, span, ["broker", "long_poll"]),
        GROUPS.name: _table(
            named, span, ["operation", "broker", "topic", "group", "client", "long_poll"]
        ),
        OVER_TIME.name: over_time.withColumn(
            "rate", F.col("exchanges") * 1_000_000 / F.col("window_us")
        ),
        HISTOGRAM.name: _histogram(cells),
        HEAT.name: _coarse(cells.where(~F.col("long_poll")), _PER_WINDOW),
        SLOWEST.name: _slowest(given, names, options.slowest),
    }
    if given.conversations is not None:
        tables[NETWORK.name] = _network(given.exchanges, given.conversations, names)
    return tables


def _cells(given: ReportInput, options: ReportOptions) -> DataFrame:
    """Return a row a combination, window and bucket; the one pass over the exchanges."""
    seen = derived.with_outcome(given.exchanges, given.conversations)
    seen = seen.where(F.col("outcome") != "orphan").withColumns(
        {
            "operation": F.coalesce("request_name", F.lit("?")),
            "client": derived.address("requester"),
            "long_poll": derived.waits_on_purpose(),
            "time": derived.happened(),
            "bucket": bucket_of("latency_us"),
        }
    )
    windowed = with_window(seen, "time", options.window_us)

    def counted(*outcomes: str) -> Column:
        return F.count(F.when(F.col("outcome").isin(*outcomes), 1))

    return windowed.groupBy(*_KEYS, *_PER_WINDOW, "bucket").agg(
        F.count("*").alias("exchanges"),
        counted(derived.OK, derived.FAILED).alias("answered"),
        counted(derived.FAILED).alias("failed"),
        counted(derived.NO_ANSWER).alias("no_answer"),
        counted(derived.UNKNOWN).alias("unknown"),
        counted("oneway").alias("oneway"),
        F.count("latency_us").alias("values"),
        F.sum("latency_us").alias("total_us"),
        F.min("latency_us").alias("smallest_us"),
        F.max("latency_us").alias("largest_us"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
    )


def _with_broker(frame: DataFrame, names: DataFrame) -> DataFrame:
    joined = frame.join(F.broadcast(names), "responder", "left")
    return joined.withColumn("broker", F.coalesce("broker", "responder"))


def _table(cells: DataFrame, span: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return a row a group of `keys`, with what all these tables have in common."""
    found = percentiles(cells, keys, [*_SUMS, "total_us"]).crossJoin(F.broadcast(span))
    asked = F.col("answered") + F.col("no_answer")
    return found.withColumns(
        {
            "failed_share": F.try_divide("failed", "answered"),
            "no_answer_share": F.try_divide(F.col("no_answer"), asked),
            "rate": F.try_divide(F.col("exchanges") * 1_000_000, F.col("_span")),
        }
    )


def _histogram(cells: DataFrame) -> DataFrame:
    keys = ["operation", "long_poll"]
    whole = cells.groupBy(*keys).agg(F.sum("values").alias("_all"))
    joined = _coarse(cells, keys).join(F.broadcast(whole), keys)
    return joined.withColumn("share", F.col("exchanges") / F.col("_all"))


def _coarse(cells: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the answered exchanges of each group by powers of two, which no bucket straddles."""
    known = cells.where(F.col("bucket").isNotNull())
    powers = known.withColumn("from_us", power_below("largest_us"))
    counted = powers.groupBy(*keys, "from_us").agg(F.sum("values").alias("exchanges"))
    return counted.withColumn("below_us", F.greatest(F.col("from_us") * 2, F.lit(1)))


def _slowest(given: ReportInput, names: DataFrame, count: int) -> DataFrame:
    order = [F.desc("latency_us"), "request_time", "capture", "request_packet", "response_packet"]
    chosen = given.exchanges.where(
        F.col("latency_us").isNotNull()
        & ~derived.waits_on_purpose()
        & (F.col("status") == "answered")
    )
    chosen = chosen.orderBy(*order).limit(count)
    if given.conversations is None:
        known = chosen.withColumn("network_us", F.lit(None).cast("long"))
    else:
        ends = given.conversations.select(
            SOURCE, "conversation", "client", "syn_rtt_us", "ack_rtt_us"
        )
        known = chosen.join(ends, [SOURCE, "conversation"], "left").withColumn(
            "network_us", _network_us()
        )
    return _with_broker(known, names).withColumns(
        {
            "time": F.col("request_time"),
            "operation": F.coalesce("request_name", F.lit("?")),
            "answer": F.col("response_name"),
            "broker_us": F.greatest(F.col("latency_us") - F.col("network_us"), F.lit(0)),
            "retransmitted": F.array_contains("expert", "RETRANSMISSION"),
        }
    )


def _network_us() -> Column:
    """Return the round trip between the place of the capture and the end that answered."""
    is_client = F.col("requester") == F.col("client")
    return F.when(is_client, F.col("syn_rtt_us")).otherwise(F.col("ack_rtt_us"))


def _network(exchanges: DataFrame, conversations: DataFrame, names: DataFrame) -> DataFrame:
    repeated = F.array_contains("expert", "RETRANSMISSION")
    answered = exchanges.where(F.col("latency_us").isNotNull() & ~derived.waits_on_purpose())
    carried = answered.groupBy(SOURCE, "conversation", "requester").agg(
        F.count("*").alias("carried"),
        F.sum("latency_us").alias("total_us"),
        F.count(F.when(repeated, 1)).alias("repeated"),
        F.sum(F.when(repeated, F.col("latency_us"))).alias("repeated_us"),
    )
    sides = conversations.where(F.col("protocol").isin(*_PROTOCOLS)).join(
        carried, [SOURCE, "conversation"], "left"
    )
    # a connection on which both ends asked comes twice: its own facts count once
    once = F.coalesce(F.col("requester") == F.col("client"), F.lit(True)) | (
        F.count("*").over(_one_connection()) == 1
    )
    sides = sides.withColumns(
        {
            "network": _network_us(),
            "beyond": F.when(F.col("requester") == F.col("client"), F.col("ack_rtt_us")).otherwise(
                F.col("syn_rtt_us")
            ),
            "once": once,
        }
    )
    return _per_pair(sides, names)


def _one_connection() -> WindowSpec:
    return Window.partitionBy(SOURCE, "conversation")


def _per_pair(sides: DataFrame, names: DataFrame) -> DataFrame:
    """Return a row a pair of client address and server."""

    def connections(condition: Column) -> Column:
        return F.count(F.when(F.col("once") & condition, 1))

    def summed(*columns: str) -> Column:
        value = sum((F.col(name) for name in columns[1:]), F.col(columns[0]))
        return F.coalesce(F.sum(F.when(F.col("once"), value)), F.lit(0))

    known = F.col("network").isNotNull()
    part = F.least(F.col("network") * F.col("carried"), F.col("total_us"))
    found = sides.groupBy(derived.address("client").alias("client"), "server").agg(
        connections(F.lit(True)).alias("connections"),
        connections(F.col("end") == "refused").alias("refused"),
        connections(F.col("end") == "no_answer").alias("unreachable"),
        connections(F.col("end") == "reset").alias("reset"),
        F.coalesce(F.sum("carried"), F.lit(0)).alias("exchanges"),
        (F.sum("total_us") / F.sum("carried")).alias("mean_us"),
        F.sum(F.when(known, F.col("carried"))).alias("_known"),
        F.sum(part).alias("_part"),
        F.sum(F.when(known, F.col("total_us"))).alias("_known_us"),
        F.avg("beyond").alias("beyond_us"),
        F.coalesce(F.sum("repeated"), F.lit(0)).alias("retransmitted"),
        F.try_divide(F.sum("repeated_us"), F.sum("repeated")).alias("retransmitted_mean_us"),
        summed("client_retransmissions", "server_retransmissions").alias("retransmissions"),
        summed("client_zero_windows", "server_zero_windows").alias("zero_windows"),
        summed("gap_bytes").alias("gap_bytes"),
    )
    named = found.withColumn("responder", F.col("server"))
    return _with_broker(named, names).withColumns(
        {
            "network_us": F.try_divide("_part", "_known"),
            "network_share": F.try_divide("_part", "_known_us"),
            "known_share": F.try_divide(F.coalesce("_known", F.lit(0)), "exchanges"),
        }
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
    if NETWORK.name not in rows:
        said.append(
            "The input has exchanges only, no TCP connections: what the network's part was, and"
            " whether a missing answer never came, is unknown."
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
            {"x": "window_start", "y": "p50_us p95_us p99_us max_us", "only": "broker"},
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
