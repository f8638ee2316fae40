"""How long brokers and name servers took to answer, for whom, when, and how much was the network.

Rules: latency is what the capture saw, from the packet that completed the request to the one that
completed the answer. Requests that a broker holds back on purpose are never mixed with calls. The
exchanges are counted twice, by what they are about (`_cells`) and over time (`_windows`); most
tables are made from these. The network's part: `analytics.reports.latency_network`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .. import derived
from ..report import Chart, Report, ReportInput, ReportOptions, Rows
from ..sends.broker_names import BROKER_NAMES, broker_names, with_names
from ..sends.hops import RELAYS, relay_latencies
from ..sends.unavailable import UNAVAILABLE, failed_connects, outages
from ..spark.expressions import adding, grouped
from ..spark.percentiles import bucket_of, percentiles, power_below
from ..spark.windows import with_window
from . import latency_network
from .latency_tables import (
    BROKERS,
    GROUPS,
    HEAT,
    HISTOGRAM,
    NETWORK,
    OPERATIONS,
    OUTAGES,
    OVER_TIME,
    RELAYED,
    SLOWEST,
    TABLES,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SUMS = (
    *("exchanges", "answered", "failed", "not_durable", "no_answer", "unknown", "withdrawn"),
    "oneway",
)
_KEYS = ("operation", "responder", "broker_name", "topic", "group", "client", "long_poll")
_GROUP_KEYS = ("operation", "broker", "topic", "group", "client", "long_poll")
_PER_WINDOW = ("window_start", "window_us")


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:
    """Return the tables; `NETWORK` is absent where the input has no connections."""
    seen = _seen(given)
    cells = given.kept.frame(_cells(seen, _KEYS))
    names = broker_names(given, lambda: cells)
    named = with_names(cells, names)
    span = cells.selectExpr("unix_micros(max(last)) - unix_micros(min(first)) as _span")
    windows = given.kept.frame(_windows(seen, names, options.window_us))
    made: dict[str, Callable[[], DataFrame]] = {
        OPERATIONS.name: lambda: _table(named, span, ["operation", "long_poll"]),
        BROKERS.name: lambda: _table(named, span, ["broker", "long_poll"]),
        GROUPS.name: lambda: _table(named, span, _GROUP_KEYS),
        OVER_TIME.name: lambda: _over_time(windows, span),
        RELAYED.name: lambda: relay_latencies(given),
        HISTOGRAM.name: lambda: _histogram(cells),
        HEAT.name: lambda: _coarse(windows, _PER_WINDOW),
        SLOWEST.name: lambda: latency_network.slowest(given, names, options.slowest),
    }
    conversations = given.conversations
    if conversations is not None:
        failed = failed_connects(given)
        if failed is not None:
            made[OUTAGES.name] = lambda: outages(failed)
        made[NETWORK.name] = lambda: latency_network.pairs(given.exchanges, conversations, names)
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
    """Return one row per combination of `keys` and bucket: one pass over the exchanges."""
    return grouped(
        seen,
        [*keys, "bucket"],
        {
            "exchanges": "count(*)",
            "answered": "count_if(status = 'answered')",
            "failed": f"count_if(outcome = '{derived.FAILED}')",
            "not_durable": f"count_if(outcome = '{derived.NOT_DURABLE}')",
            "no_answer": f"count_if(outcome = '{derived.NO_ANSWER}')",
            "unknown": f"count_if(outcome = '{derived.UNKNOWN}')",
            "withdrawn": f"count_if(outcome = '{derived.WITHDRAWN}')",
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
    """Return one row per window, broker and bucket, without long polls: a pass of its own.

    Together with all that a request is about there would be about as many cells as exchanges.
    """
    windowed = with_window(seen.where("not long_poll"), "time", length_us)
    cells = _cells(windowed, [*_PER_WINDOW, "responder"])
    return with_names(cells, names)


def _over_time(windows: DataFrame, span: DataFrame) -> DataFrame:
    """Return the windows of each broker, and of all together."""
    by_broker = _table(windows, span, [*_PER_WINDOW, "broker"])
    whole = adding(_table(windows, span, _PER_WINDOW), {"broker": "cast(null as string)"})
    together = by_broker.unionByName(whole).drop("rate")
    return adding(together, {"rate": "exchanges * 1000000 / window_us"})


def _table(cells: DataFrame, span: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return one row per group of `keys`, with what all these tables have in common."""
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


def remarks(rows: Rows) -> list[str]:
    """Return what must be known before the numbers are read."""
    said = []
    gone = [row for row in rows.get(OUTAGES.name, ()) if row["producers"] or row["clients"]]
    if gone:
        names = ", ".join(sorted({str(row["broker"]) for row in gone})[:5])
        said.append(
            f"Could not be reached for a time, which is in no latency: {names}"
            f" ({OUTAGES.title.lower()})."
        )
    if relays := rows.get(RELAYED.name, ()):
        names = ", ".join(str(row["relay"]) for row in relays[:5])
        said.append(
            f"Sends through {names} were seen on both sides of it and count twice here, once for"
            f" each hop ({RELAYED.title.lower()})."
        )
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
    tables=TABLES,
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
    shares=(BROKER_NAMES, UNAVAILABLE, RELAYS),
)
