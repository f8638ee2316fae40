"""Latency of brokers and name servers: by client, over time, and the network's part.

Latency is measured at the capture, from the packet that completed the request to the one that
completed the response. Long polls are never mixed with calls. The network's part is the round trip
between the capture point and the responding end, measured by the connection's handshake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial, reduce
from typing import NamedTuple

from dissectors.quantities import counted
from dissectors.times import text_of_time

from .. import derived
from ..cells import CellTable
from ..report import Report, ReportInput, ReportOptions, Row, Rows, column_names, sum_of
from ..schema import SOURCE
from ..sends.broker_names import BROKER_NAMES, ROUTES, broker_names, with_names
from ..sends.hops import RELAYS, relays
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import UNAVAILABLE, failed_connects
from ..sql.expressions import number_of, place_of, ranked_by, ratio_of, texts, total_of, whole_of
from ..sql.percentiles import lowest_of, percentiles, power_below, with_bucket
from ..sql.relation import Relation
from ..sql.windows import span_of, usual_of, window_of
from .in_flight import in_flight, of_brokers
from .latency_tables import (
    BROKERS,
    GROUPS,
    HEAT,
    HISTOGRAM,
    NETWORK,
    OPERATIONS,
    OVER_TIME,
    RELAYED,
    SLO,
    SLO_OVER_TIME,
    SLOWEST,
    TABLES,
    TOTAL,
    over_time,
)
from .unreachable import OUTAGES, outages

SLOWEST_CELLS = CellTable(
    "slowest",
    order=(
        "latency_us desc",
        *column_names(
            "request_time capture request_packet response_packet unique_key request_name topic"
        ),
        "`group`",
    ),
)
_PROTOCOLS = ("ROCKETMQ", "unknown", "no payload", "")
_NEAR = "if(client_address = opener, syn_rtt_us, ack_rtt_us)"
"""SQL: round trip between the capture point and the responding end."""
_FAR = "if(client_address = opener, ack_rtt_us, syn_rtt_us)"
"""SQL: round trip between the requesting end and the capture point."""
_REPEATED = "array_contains(findings, 'RETRANSMISSION')"


def _slowest(
    report_input: ReportInput, names: Relation, count: int, least_us: int | None = None
) -> Relation:
    """Return the slowest exchanges with the network's part, without long polls.

    `least_us` is a lower bound of their latencies, if known.
    """

    # twice: before the join, so that it has few rows, and after other runs' cells were merged
    def slowest_of(calls: Relation) -> Relation:
        return calls.ordered(SLOWEST_CELLS.order, count)

    slow = "latency_us is not null" if least_us is None else f"latency_us >= {least_us}"
    calls = report_input.exchanges.where(f"{slow} and status = 'answered' and not {derived.WAITS}")
    known = report_input.kept.cells(
        SLOWEST_CELLS, lambda: _with_network(report_input, slowest_of(calls))
    )
    return with_names(slowest_of(known), names).adding(
        {
            "time": "request_time",
            "operation": derived.OPERATION,
            "response": "response_name",
            "broker_us": "if(network_us is null, null, greatest(latency_us - network_us, 0L))",
            "retransmitted": _REPEATED,
        },
    )


def _with_network(report_input: ReportInput, chosen: Relation) -> Relation:
    """Return exchanges with the network's part of their latencies."""
    if report_input.conversations is None:
        known = chosen.adding({"network_us": "cast(null as bigint)"})
    else:
        ends = report_input.conversations.select(
            SOURCE, "conversation", "client_address as opener", "syn_rtt_us", "ack_rtt_us"
        )
        joined = chosen.join(ends, [SOURCE, "conversation"], "left")
        known = joined.adding({"network_us": _NEAR})
    return known.select(*chosen.columns, "network_us")


def _network_pairs(exchanges: Relation, conversations: Relation, names: Relation) -> Relation:
    """Return one row per client and server, including connections without exchanges."""
    answered = exchanges.where(f"latency_us is not null and not {derived.WAITS}")
    carried = answered.grouped(
        [SOURCE, "conversation", "client_address"],
        {
            "carried": "count(*)",
            "total_us": total_of("latency_us"),
            "repeated": f"count_if({_REPEATED})",
            "repeated_us": total_of(f"if({_REPEATED}, latency_us, 0L)"),
        },
    )
    # Calls of gRPC count as commands; connections of other gRPC services have none.
    known = conversations.where(f"protocol in {texts(_PROTOCOLS)} or coalesce(commands, 0) > 0")
    opened = known.renamed({"client_address": "opener"})
    sides = opened.join(carried, [SOURCE, "conversation"], "left").adding(
        {
            "near": _NEAR,
            "far": _FAR,
            # a connection with requests in both directions appears twice; count its own facts once
            "once": f"row_number() over (partition by {SOURCE}, conversation"
            " order by client_address) = 1",
            "client": derived.address_of("opener"),
        },
    )
    return _per_pair(sides, names)


def _per_pair(sides: Relation, names: Relation) -> Relation:
    """Return one row per client address and server."""
    grouped = sides.grouped(
        ["client", "server_address"],
        {
            "connections": "count_if(once)",
            "refused": "count_if(once and `end` = 'refused')",
            "unreachable": "count_if(once and `end` = 'no_response')",
            "reset": "count_if(once and `end` = 'reset')",
            "exchanges": "coalesce(sum(carried), 0L)",
            "mean_us": ratio_of("sum(total_us)", "sum(carried)"),
            "_known": "sum(if(near is null, 0L, carried))",
            # The handshake may have been slower than the requests; their share is at most the
            # whole.
            "_part": "sum(if(near is null, 0D, least(cast(near as double) * carried, total_us)))",
            "_known_us": "sum(if(near is null, 0D, total_us))",
            "beyond_us": "avg(far)",
            "retransmitted": "coalesce(sum(repeated), 0L)",
            "retransmitted_mean_us": ratio_of("sum(repeated_us)", "sum(repeated)"),
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
    return with_names(grouped, names).adding(
        {
            "network_us": ratio_of("_part", "_known"),
            "network_share": ratio_of("_part", "_known_us"),
            "known_share": "try_divide(coalesce(_known, 0L), exchanges)",
        },
    )


_KEYS = ("operation", "server_address", "broker_name", "topic", "group", "client", "long_poll")
_PER_WINDOW = ("window_start", "window_us")
_WINDOW_KEYS = (*_PER_WINDOW, "server_address")
_ALL_WINDOWS = "all brokers over time"
_GROUPED: Mapping[str, tuple[str, ...]] = {
    TOTAL.name: ("long_poll",),
    OPERATIONS.name: ("operation", "long_poll"),
    BROKERS.name: ("broker", "long_poll"),
    GROUPS.name: ("operation", "broker", "topic", "group", "client", "long_poll"),
    OVER_TIME.name: (*_PER_WINDOW, "broker"),
    _ALL_WINDOWS: _PER_WINDOW,
}
"""Table name, or part of one -> columns to group by."""
_BY_TIME = (OVER_TIME.name, _ALL_WINDOWS)
_TABLE = "_table"
_KEY_TYPES = {
    **dict.fromkeys(("operation", "broker", "topic", "group", "client"), "string"),
    "long_poll": "boolean",
    "window_start": "timestamp",
    "window_us": "bigint",
}
_VALUES = {
    **dict.fromkeys(("exchanges", "values", "total_us", "bytes"), "sum"),
    **dict.fromkeys(("smallest_us", "first"), "min"),
    **dict.fromkeys(("largest_us", "code", "last"), "max"),
}
CELLS = CellTable("latency", (*_KEYS, "outcome"), _VALUES)
BUCKETS = CellTable("latency_buckets", ("bucket", *CELLS.keys), {"values": "sum", "time": "min"})
CELLS_OVER_TIME = CellTable("latency_over_time", ("bucket", *_WINDOW_KEYS, "outcome"), _VALUES)
_COUNTED = ("answered", "failed", "not_durable", "no_response", "unknown", "withdrawn", "oneway")
_SUMS = ("exchanges", *_COUNTED, "bytes")
_NUMBERS = ("id", "values", "total_us", "smallest_us", "largest_us", *_SUMS)
"""Columns of cells to sum, or to compute percentiles from."""


class _Counts(NamedTuple):
    """Exchanges counted by some columns and outcome, and their latencies by bucket."""

    cells: Relation
    """one row per combination, with `id`; or several, if windows were merged"""
    buckets: Relation
    """one row per combination (`id`) and `bucket`, with `values` and the first `time`"""

    def placed(self, *columns: str) -> Relation:
        """Return the buckets with columns of the cells."""
        return self.buckets.join(self.cells.select_distinct("id", *columns), ["id"])


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables; `NETWORK` is absent if the input has no connections."""
    names_of_tables = {table.name for table in TABLES}
    wanted = names_of_tables if options.tables is None else names_of_tables & options.tables
    seen = _seen(report_input)
    limit_us = None if options.slo is None else options.slo.latency_us
    # The exchanges are counted twice: here by operation, broker, and client, and in `_windows` over
    # time. Most tables derive from these counts.
    counts = _counts(report_input, seen, limit_us)
    cells = counts.cells
    # The counts have the broker names of requests: no further pass over the exchanges.
    names = broker_names(report_input, lambda: cells)
    made: dict[str, Callable[[], Relation]] = {
        RELAYED.name: lambda: relays(report_input),
        HISTOGRAM.name: lambda: _histogram(report_input, counts, seen),
        SLOWEST.name: lambda: _slowest(
            report_input,
            names,
            options.slowest,
            _least_of_slowest(report_input, counts, options.slowest),
        ),
    }
    whole_us, calls_us = _spans_of(report_input, cells)
    length = options.window_us or window_of(calls_us)
    windows = None
    if not wanted.isdisjoint((OVER_TIME.name, HEAT.name, SLO_OVER_TIME.name)):
        windows = _windows(report_input, seen, names, length, limit_us)
        made[HEAT.name] = lambda: _coarse(windows.placed(*_PER_WINDOW), _PER_WINDOW)
    if options.slo is not None:
        budget = options.slo.budget
        made[SLO.name] = lambda: _slo(with_names(cells, names), ("operation", "broker"), budget)
        if windows is not None:
            made[SLO_OVER_TIME.name] = partial(_slo_over_time, windows.cells, budget)
    chosen = [name for name in _GROUPED if name in wanted]
    if windows is not None and OVER_TIME.name in chosen:
        chosen.append(_ALL_WINDOWS)
    if chosen:
        named = counts._replace(cells=with_names(cells, names))
        # the percentiles of all tables in one query
        rows_of_tables = _tables(named, windows, whole_us, chosen)
        tables = report_input.kept.frame(rows_of_tables)
        for name in chosen:
            made[name] = partial(report_input.kept.part, tables, _TABLE, name)
        made[OPERATIONS.name] = lambda: _operations(
            cells, report_input.kept.part(tables, _TABLE, OPERATIONS.name)
        )
        if not wanted.isdisjoint((OVER_TIME.name, BROKERS.name)):
            loads = report_input.kept.frame(in_flight(report_input.kept, seen, names, length))
            made[BROKERS.name] = lambda: report_input.kept.part(tables, _TABLE, BROKERS.name).join(
                of_brokers(loads), ["broker", "long_poll"], "left", small=True
            )
            made[OVER_TIME.name] = lambda: _over_time(
                tables.where(f"{_TABLE} in {texts(_BY_TIME)}"), loads
            )
    conversations = report_input.conversations
    if conversations is not None:
        failed = failed_connects(report_input)
        if failed is not None:
            made[OUTAGES.name] = lambda: outages(report_input, conversations, failed)
        made[NETWORK.name] = lambda: _network_pairs(report_input.exchanges, conversations, names)
    return {name: make() for name, make in made.items() if name in wanted}


def operations(report_input: ReportInput) -> Relation:
    """Return only the table `OPERATIONS`."""
    counts = _counts(report_input, _seen(report_input))
    span = _spans_of(report_input, counts.cells)[0]
    return _operations(counts.cells, _tables(counts, None, span, [OPERATIONS.name]))


def _operations(cells: Relation, by_operation: Relation) -> Relation:
    """Return the rows by operation, with the columns that are not percentiles."""
    more = cells.grouped(
        ("operation",),
        {
            "code": "max(code)",
            "clients": "count(distinct client)",
            "brokers": "count(distinct server_address)",
        },
    )
    whole = by_operation.join(more, ["operation"], "left", small=True)
    return whole.adding(
        {
            "share": "exchanges / sum(exchanges) over ()",
            **ranked_by("total_us", "operation", "partition by long_poll"),
        }
    )


def _over_time(windows: Relation, loads: Relation) -> Relation:
    """Return the rows of windows with the requests in flight; broker is null for all brokers."""
    # null is the broker of all brokers together, so the join must take null for equal
    calls = loads.where("not long_poll").select(
        "broker as _broker", "window_start as _start", "in_flight", "peak_in_flight"
    )
    met = "window_start = _start and broker is not distinct from _broker"
    return windows.join(calls, met, "left", small=True)


def _seen(report_input: ReportInput) -> Relation:
    """Return the requests with the columns to group them by."""
    exchanges = derived.with_outcome(report_input.exchanges, report_input.conversations)
    requests = exchanges.where("outcome != 'orphan'").adding(
        {
            "operation": derived.OPERATION,
            "client": derived.address_of("client_address"),
            "long_poll": derived.WAITS,
            "time": derived.HAPPENED,
        },
    )
    return with_bucket(requests, "latency_us")


def _counts(report_input: ReportInput, seen: Relation, limit_us: int | None = None) -> _Counts:
    """Return the exchanges counted by `_KEYS`."""
    kept, number = report_input.kept, {"id": number_of(CELLS.keys)}

    def counted_cells() -> Relation:
        return _cells(seen, CELLS.keys, limit_us)

    # the hashes of the engines differ: the one that has the exchanges computes both numbers
    if kept.counted is None:
        cells = kept.frame(counted_cells().adding(number))
        buckets = kept.frame(_buckets(seen.adding(number), ("id",)))
    else:
        cells = kept.cells(CELLS, counted_cells).adding(number)
        found = kept.cells(BUCKETS, lambda: _buckets(seen, CELLS.keys))
        buckets = found.adding(number).select("id", "bucket", "values", "time")
    return _Counts(_with_outcomes(cells), buckets)


def _cells(seen: Relation, keys: Sequence[str], limit_us: int | None = None) -> Relation:
    """Return one row per combination of `keys`, among them the outcome: one pass.

    If `limit_us` is given, `within` counts the exchanges that took at most that long.
    """
    within = {} if limit_us is None else {"within": f"count_if(latency_us <= {limit_us}L)"}
    return seen.grouped(
        keys,
        {
            "exchanges": "count(*)",
            "values": "count(latency_us)",
            "total_us": total_of("latency_us"),
            "smallest_us": "min(latency_us)",
            "largest_us": "max(latency_us)",
            "bytes": "sum(coalesce(request_bytes, 0) + coalesce(response_bytes, 0))",
            "code": "max(request_code)",
            "first": "min(time)",
            "last": "max(time)",
            **within,
        },
    )


def _buckets(seen: Relation, keys: Sequence[str]) -> Relation:
    """Return how many exchanges of each combination of `keys` are in each bucket."""
    # Not in the pass of the cells: grouped by bucket as well, there are almost as many groups as
    # exchanges, each with all sums.
    return seen.where("bucket is not null").grouped(
        ("bucket", *keys), {"values": "count(*)", "time": "min(time)"}
    )


def _with_outcomes(cells: Relation) -> Relation:
    """Return cells with a count for each outcome."""
    return cells.adding(derived.counted_by_outcome(*_COUNTED))


def _spans_of(report_input: ReportInput, cells: Relation) -> tuple[int | None, int | None]:
    """Return the µs from the first to the last exchange, and those of calls; None without times."""
    call = "filter (where not long_poll)"
    whole, calls = (
        span_of(
            report_input.kept.engine,
            cells,
            (f"min(first){only}", f"max(last){only}"),
            report_input.exchanges,
            derived.HAPPENED,
        )
        for only in ("", f" {call}")
    )
    return whole, calls


def _least_of_slowest(report_input: ReportInput, counts: _Counts, count: int) -> int | None:
    """Return a latency that the slowest `count` calls reach, and few others, or None."""
    # from the highest bucket down, until enough calls are in these buckets
    # Sorting all exchanges of a large input takes longer than this query of their cells.
    calls = counts.placed("answered", "long_poll").where("answered > 0 and not long_poll")
    by_bucket = calls.grouped(("bucket",), {"calls": "sum(values)"})
    rows = report_input.kept.rows(by_bucket.adding({"least": lowest_of("bucket")}))
    columns = (rows.column(name).to_pylist() for name in ("bucket", "calls", "least"))
    least = None
    for _, calls_there, smallest in sorted(zip(*columns, strict=True), reverse=True):
        if count <= 0:
            break
        least = smallest
        count -= calls_there
    return least


def _windows(
    report_input: ReportInput, seen: Relation, names: Relation, length_us: int, limit_us: int | None
) -> _Counts:
    """Return the exchanges counted by window and broker, without long polls.

    These are few enough for one pass with cells and buckets.
    """
    kept, keys = report_input.kept, (*_WINDOW_KEYS, "outcome")
    both = kept.cells_over_time(
        CELLS_OVER_TIME,
        seen.where("not long_poll"),
        length_us,
        lambda windowed: _cells(windowed, CELLS_OVER_TIME.keys, limit_us),
    ).adding({"id": number_of(keys)})
    merged = _VALUES if limit_us is None else {**_VALUES, "within": "sum"}
    cells = both.grouped(("id", *keys), {name: f"{how}({name})" for name, how in merged.items()})
    buckets = both.where("bucket is not null").grouped(
        ("id", "bucket"), {"values": "sum(values)", "time": "min(first)"}
    )
    return _Counts(kept.frame(with_names(_with_outcomes(cells), names)), kept.frame(buckets))


def _slo(cells: Relation, keys: Sequence[str], budget: str) -> Relation:
    """Return how many requests of each group met the objective; `budget` is the allowed miss share.

    A request meets it if it was answered in time without a failure. Unknown outcomes do not count.
    """
    counted = cells.where("answered + no_response > 0 and not coalesce(long_poll, false)").grouped(
        keys,
        {
            "requests": "sum(answered + no_response)",
            # A cell has one outcome, so one that counts failures has no good request.
            "good": "sum(if(failed = 0, within, 0L))",
            "failed": "sum(failed)",
            "no_response": "sum(no_response)",
        },
    )
    return counted.adding(
        {
            "slow": "requests - good - failed - no_response",
            "missed": "requests - good",
            "good_share": "good / requests",
            "burn_rate": f"(requests - good) / (requests * {budget})",
        }
    )


def _slo_over_time(windows: Relation, budget: str) -> Relation:
    """Return the windows with the share of the total error budget spent by their end."""
    result = _slo(windows.adding({"long_poll": "false"}), _PER_WINDOW, budget)
    missed = "sum(missed) over (order by window_start rows unbounded preceding)"
    return result.adding({"budget_spent": f"{missed} / (sum(requests) over () * {budget})"})


def _tables(
    counts: _Counts, windows: _Counts | None, span: int | None, chosen: Sequence[str]
) -> Relation:
    """Return the rows of all grouped tables, with the table name: one pass over the cells."""
    keys = sorted({key for name in chosen for key in _GROUPED[name]})
    sources = [
        (source, of)
        for source, of in (
            (counts, [name for name in chosen if name not in _BY_TIME]),
            (windows, [name for name in chosen if name in _BY_TIME]),
        )
        if source is not None and of
    ]
    parts = [
        source.cells.select(
            f"explode(array({', '.join(_key_of(name, keys) for name in of)})) as _key", *_NUMBERS
        )
        for source, of in sources
    ]
    buckets = [source.buckets.select("id", "bucket", "values") for source, _ in sources]
    keyed, all_buckets = (reduce(Relation.union, some) for some in (parts, buckets))
    all_groups = keyed.select(*(f"_key.`{key}` as `{key}`" for key in (_TABLE, *keys)), *_NUMBERS)
    rows = percentiles(all_groups, [_TABLE, *keys], [*_SUMS, "total_us"], all_buckets)
    by_time = "exchanges * 1000000 / window_us" if "window_us" in keys else "null"
    whole = "cast(null as double)" if span is None else f"try_divide(exchanges * 1000000, {span}L)"
    return rows.adding(
        {
            "total_us": whole_of("total_us"),
            "failed_share": "try_divide(failed, answered)",
            "no_response_share": "try_divide(no_response, answered + no_response)",
            "rate": f"if({_TABLE} in {texts(_BY_TIME)}, {by_time}, {whole})",
        },
    )


def _key_of(name: str, keys: Sequence[str]) -> str:
    """Return, as SQL, the grouping key of a table; keys of other tables are null."""
    # `explode` takes an array, whose structs must all have the same fields and types
    values = (f"`{key}`" if key in _GROUPED[name] else "null" for key in keys)
    typed = (
        f"'{key}', cast({value} as {_KEY_TYPES[key]})"
        for key, value in zip(keys, values, strict=True)
    )
    return f"named_struct('{_TABLE}', '{name}', {', '.join(typed)})"


def _histogram(report_input: ReportInput, counts: _Counts, seen: Relation) -> Relation:
    """Return the buckets of each operation, with the packets of the first exchange in each."""
    keys = ["operation", "long_poll"]
    whole = counts.cells.grouped(keys, {"_all": "sum(values)"})
    buckets = _coarse(counts.placed(*keys), keys).join(whole, keys, small=True)
    buckets = report_input.kept.frame(buckets)
    # the packets are not in the counts: the exchanges are read again, joined with few rows
    wanted = buckets.select("operation as _operation", "from_us", "below_us", "time as _time")
    within = f"(latency_us < below_us or from_us >= {2**62}L)"
    of_bucket = f"operation = _operation and greatest(latency_us, 0L) >= from_us and {within}"
    place = place_of("capture", "request_packet", "response_packet")
    first = seen.join(wanted, f"time = _time and {of_bucket}", small=True).grouped(
        ("operation", "from_us"), {"place": f"min({place})"}
    )
    packets_of = report_input.kept.frame(first)
    placed = buckets.join(packets_of, ["operation", "from_us"], "left", small=True)
    packets = ("capture", "request_packet", "response_packet")
    return placed.adding(
        {"share": "exchanges / _all", **{name: f"place.{name}" for name in packets}}
    )


def _coarse(buckets: Relation, keys: Sequence[str]) -> Relation:
    """Return the answered exchanges of each group by powers of two, which no bucket straddles."""
    powers = buckets.adding({"from_us": power_below("bucket")})
    counted = powers.grouped([*keys, "from_us"], {"exchanges": "sum(values)", "time": "min(time)"})
    # the largest power of two in 64 bits
    above = f"if(from_us >= {2**62}L, {2**63 - 1}L, greatest(from_us * 2, 1L))"
    return counted.adding({"below_us": above})


def report_notes(rows: Rows) -> list[str]:
    """Return the notes of the report."""
    notes = _about_strays(rows.get(OVER_TIME.name, ()))
    gone = [row for row in rows.get(OUTAGES.name, ()) if row["producers"] or row["clients"]]
    if gone:
        brokers = sorted({str(row["broker"]) for row in gone})[:5]
        names = ", ".join(brokers)
        was = "was" if len(brokers) == 1 else "were"
        notes.append(
            f"{names} {was} unreachable at times; latencies do not include these waits"
            f" (see {OUTAGES.title.lower()})."
        )
    if behind := rows.get(RELAYED.name, ()):
        names = ", ".join(str(row["relay"]) for row in behind[:5])
        notes.append(
            f"Sends through {names} were captured on both sides and count twice here, once per hop"
            f" ({RELAYED.title.lower()})."
        )
    operations = rows.get(OPERATIONS.name, ())
    if unknown := sum_of(operations, "unknown"):
        notes.append(
            f"{counted(unknown, 'request has', 'requests have')} no captured response, which may"
            " still have been sent. Percentages exclude them."
        )
    return notes


def _about_strays(rows: Sequence[Row]) -> list[str]:
    """Return notes about exchanges that are far away in time from all others."""
    windows = [
        (
            round(start.timestamp()) * 1_000_000,
            sum_of([row], "window_us"),
            sum_of([row], "exchanges"),
        )
        for row in rows
        if row["broker"] is None and isinstance(start := row["window_start"], datetime)
    ]
    usual = usual_of((start, start + length, count) for start, length, count in windows)
    if usual is None or not usual.stray:
        return []
    stray = min(start for start, _, _ in windows if not usual.first <= start <= usual.last)
    many = "1 exchange is" if usual.stray == 1 else f"{usual.stray:,} exchanges are"
    return [
        f"{many} more than a month away from all others ({text_of_time(stray * 1000)[:10]}):"
        " a clock may not have been set. Rates and windows ignore them."
    ]


REPORT = Report(
    name="latency",
    title="Latency",
    question=(
        "How long did brokers take to respond, to whom, when, and how much of it was network?"
    ),
    tables=TABLES,
    build=build,
    charts=(
        over_time(
            "lines", "p99 latency by broker", OVER_TIME, y="p99_us", axis="p99 latency", by="broker"
        ),
        over_time(
            "lines",
            "Peak requests in flight by broker",
            OVER_TIME,
            y="peak_in_flight",
            axis="requests in flight",
            by="broker",
        ),
        over_time(
            "lines",
            "Burn rate of the latency objective",
            SLO_OVER_TIME,
            y="burn_rate",
            axis="burn rate (1: the budget just lasts)",
        ),
        over_time("heat", "Latency heatmap", HEAT, y="from_us", axis="latency", value="exchanges"),
    ),
    notes=report_notes,
    shares=(BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS),
    cells=(
        CELLS,
        BUCKETS,
        CELLS_OVER_TIME,
        SLOWEST_CELLS,
        ROUTES,
    ),
    # the others need rows: of connections, of both sides of a relay, or for each objective
    additive=frozenset(table.name for table in TABLES)
    - {table.name for table in (SLO, SLO_OVER_TIME, OUTAGES, RELAYED, NETWORK)},
)
