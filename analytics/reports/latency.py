"""How long brokers and name servers took to answer, for whom, when, and how much was the network.

Rules: latency is what the capture saw, from the packet that completed the request to the one that
completed the answer. Requests that a broker holds back on purpose are never mixed with calls. The
exchanges are counted twice, by what they are about (`_cells`) and over time (`_windows`); most
tables are made from these, those of percentiles in one query. The network's part:
`analytics.reports.latency_network`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from .. import derived
from ..report import Chart, Report, ReportInput, ReportOptions, Rows
from ..sends.broker_names import BROKER_NAMES, broker_names, with_names
from ..sends.hops import RELAYS, relays
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import UNAVAILABLE, failed_connects, outages
from ..sql.expressions import texts, total_of
from ..sql.percentiles import percentiles, power_below, with_bucket
from ..sql.relation import Relation
from ..sql.windows import window_of, with_window
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
    TOTAL,
)

_KEYS = ("operation", "responder", "broker_name", "topic", "group", "client", "long_poll")
_PER_WINDOW = ("window_start", "window_us")
_WINDOW_KEYS = (*_PER_WINDOW, "responder")
_ALL_WINDOWS = "all brokers over time"
_GROUPED: Mapping[str, tuple[str, ...]] = {
    TOTAL.name: ("long_poll",),
    OPERATIONS.name: ("operation", "long_poll"),
    BROKERS.name: ("broker", "long_poll"),
    GROUPS.name: ("operation", "broker", "topic", "group", "client", "long_poll"),
    OVER_TIME.name: (*_PER_WINDOW, "broker"),
    _ALL_WINDOWS: _PER_WINDOW,
}
"""Name of a table, or of a part of one -> what its rows are grouped by."""
_BY_TIME = (OVER_TIME.name, _ALL_WINDOWS)
_TABLE = "_table"
_KEY_TYPES = {
    **dict.fromkeys(("operation", "broker", "topic", "group", "client"), "string"),
    "long_poll": "boolean",
    "window_start": "timestamp",
    "window_us": "bigint",
}
_MOST = f"{2**63 - 1}D"
"""SQL: the largest number of 64 bits, as a floating-point one."""
_COUNTED = ("answered", "failed", "not_durable", "no_answer", "unknown", "withdrawn", "oneway")
_SUMS = ("exchanges", *_COUNTED)
_NUMBERS = ("bucket", "values", "total_us", "smallest_us", "largest_us", *_SUMS)
"""Columns of cells that are added up, or that percentiles are made from."""


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables; `NETWORK` is absent where the input has no connections."""
    every = {table.name for table in TABLES}
    wanted = every if options.tables is None else every & options.tables
    seen = _seen(given)
    cells = given.kept.frame(_cells(seen, _KEYS))
    names = broker_names(given, lambda: cells)
    made: dict[str, Callable[[], Relation]] = {
        RELAYED.name: lambda: relays(given),
        HISTOGRAM.name: lambda: _histogram(cells),
        SLOWEST.name: lambda: latency_network.slowest(
            given, names, options.slowest, _least_of_slowest(given, cells, options.slowest)
        ),
    }
    whole_us, calls_us = _spans_of(given, cells)
    windows = None
    if not wanted.isdisjoint((OVER_TIME.name, HEAT.name)):
        length = options.window_us or window_of(calls_us)
        windows = given.kept.frame(_windows(seen, names, length))
        made[HEAT.name] = partial(_coarse, windows, _PER_WINDOW)
    chosen = [name for name in _GROUPED if name in wanted]
    if windows is not None and OVER_TIME.name in chosen:
        chosen.append(_ALL_WINDOWS)
    if chosen:
        found = _tables(with_names(cells, names), windows, whole_us, chosen)
        tables = given.kept.frame(found)
        for name in chosen:
            made[name] = partial(given.kept.part, tables, _TABLE, name)
        made[OPERATIONS.name] = lambda: _operations(
            cells, given.kept.part(tables, _TABLE, OPERATIONS.name)
        )
        made[OVER_TIME.name] = lambda: tables.where(f"{_TABLE} in {texts(_BY_TIME)}")
    conversations = given.conversations
    if conversations is not None:
        failed = failed_connects(given)
        if failed is not None:
            made[OUTAGES.name] = lambda: outages(given, failed)
        made[NETWORK.name] = lambda: latency_network.pairs(given.exchanges, conversations, names)
    return {name: make() for name, make in made.items() if name in wanted}


def operations(given: ReportInput) -> Relation:
    """Return the table `OPERATIONS` alone."""
    cells = given.kept.frame(_cells(_seen(given), _KEYS))
    span = _spans_of(given, cells)[0]
    names = broker_names(given, lambda: cells)
    return _operations(cells, _tables(with_names(cells, names), None, span, [OPERATIONS.name]))


def _operations(cells: Relation, found: Relation) -> Relation:
    """Return the rows by operation with what percentiles do not need."""
    more = cells.grouped(
        ("operation",),
        {
            "code": "max(code)",
            "bytes": "sum(bytes)",
            "clients": "count(distinct client)",
            "brokers": "count(distinct responder)",
        },
    )
    whole = found.join(more, ["operation"], "left", small=True)
    return whole.adding({"share": "exchanges / sum(exchanges) over ()"})


def _seen(given: ReportInput) -> Relation:
    """Return the requests with what they are counted by."""
    every = derived.with_outcome(given.exchanges, given.conversations)
    told = every.where("outcome != 'orphan'").adding(
        {
            "operation": derived.OPERATION,
            "client": derived.address_of("requester"),
            "long_poll": derived.WAITS,
            "time": derived.HAPPENED,
        },
    )
    return with_bucket(told, "latency_us")


def _cells(seen: Relation, keys: Sequence[str]) -> Relation:
    """Return one row per combination of `keys`, bucket and outcome: one pass over the exchanges.

    The bucket comes first: groups that share a place in Spark's hash map are told apart by it. That
    the outcome is a key spares each exchange a counter for each kind of outcome.
    """
    counted = seen.grouped(
        ["bucket", *keys, "outcome"],
        {
            "exchanges": "count(*)",
            "total_us": total_of("latency_us"),
            "smallest_us": "min(latency_us)",
            "largest_us": "max(latency_us)",
            "bytes": "sum(coalesce(request_bytes, 0) + coalesce(response_bytes, 0))",
            "code": "max(request_code)",
            "first": "min(time)",
            "last": "max(time)",
        },
    )
    told = derived.counted_by_outcome(*_COUNTED)
    return counted.adding({**told, "values": "if(bucket is null, 0L, exchanges)"})


def _spans_of(given: ReportInput, cells: Relation) -> tuple[int | None, int | None]:
    """Return the µs from the first to the last exchange, and those of calls; None: no time."""
    call = "filter (where not long_poll)"
    spans = cells.grouped(
        (),
        {
            "whole": "unix_micros(max(last)) - unix_micros(min(first))",
            "calls": f"unix_micros(max(last) {call}) - unix_micros(min(first) {call})",
        },
    )
    rows = given.kept.rows(spans)
    return rows.column("whole")[0].as_py(), rows.column("calls")[0].as_py()


def _least_of_slowest(given: ReportInput, cells: Relation, count: int) -> int | None:
    """Return a latency that the slowest `count` calls have, and few others; None: there are none.

    To sort all exchanges of a large input takes longer than to ask their cells.
    """
    calls = cells.where("bucket is not null and answered > 0 and not long_poll")
    by_bucket = calls.grouped(("bucket",), {"calls": "sum(answered)", "least": "min(smallest_us)"})
    found = given.kept.rows(by_bucket)
    columns = (found.column(name).to_pylist() for name in found.column_names)
    least = None
    for _, calls_there, smallest in sorted(zip(*columns, strict=True), reverse=True):
        if count <= 0:
            break
        least = smallest
        count -= calls_there
    return least


def _windows(seen: Relation, names: Relation, length_us: int) -> Relation:
    """Return one row per window, broker and bucket, without long polls: a pass of its own.

    Together with all that a request is about there would be about as many cells as exchanges.
    """
    windowed = with_window(seen.where("not long_poll"), "time", length_us)
    return with_names(_cells(windowed, _WINDOW_KEYS), names)


def _tables(
    cells: Relation, windows: Relation | None, span: int | None, chosen: Sequence[str]
) -> Relation:
    """Return the rows of all that is grouped, with the name of the table: one look at the cells."""
    keys = sorted({key for name in chosen for key in _GROUPED[name]})
    parts = [
        relation.select(
            f"explode(array({', '.join(_key_of(one, keys) for one in of)})) as _key", *_NUMBERS
        )
        for relation, of in (
            (cells, [name for name in chosen if name not in _BY_TIME]),
            (windows, [name for name in chosen if name in _BY_TIME]),
        )
        if relation is not None and of
    ]
    keyed = reduce(lambda one, other: one.union(other), parts)
    every = keyed.select(*(f"_key.`{key}` as `{key}`" for key in (_TABLE, *keys)), *_NUMBERS)
    found = percentiles(every, [_TABLE, *keys], [*_SUMS, "total_us"])
    by_time = "exchanges * 1000000 / window_us" if "window_us" in keys else "null"
    whole = "cast(null as double)" if span is None else f"try_divide(exchanges * 1000000, {span}L)"
    return found.adding(
        {
            "total_us": f"if(total_us >= {_MOST}, {2**63 - 1}L, cast(total_us as bigint))",
            "failed_share": "try_divide(failed, answered)",
            "no_answer_share": "try_divide(no_answer, answered + no_answer)",
            "rate": f"if({_TABLE} in {texts(_BY_TIME)}, {by_time}, {whole})",
        },
    )


def _key_of(name: str, keys: Sequence[str]) -> str:
    """Return, as SQL, what a table is grouped by, with the keys of other tables as null."""
    values = (f"`{key}`" if key in _GROUPED[name] else "null" for key in keys)
    typed = (
        f"'{key}', cast({value} as {_KEY_TYPES[key]})"
        for key, value in zip(keys, values, strict=True)
    )
    return f"named_struct('{_TABLE}', '{name}', {', '.join(typed)})"


def _histogram(cells: Relation) -> Relation:
    keys = ["operation", "long_poll"]
    whole = cells.grouped(keys, {"_all": "sum(values)"})
    joined = _coarse(cells, keys).join(whole, keys, small=True)
    return joined.adding({"share": "exchanges / _all"})


def _coarse(cells: Relation, keys: Sequence[str]) -> Relation:
    """Return the answered exchanges of each group by powers of two, which no bucket straddles."""
    known = cells.where("bucket is not null")
    powers = known.adding({"from_us": power_below("largest_us")})
    counted = powers.grouped([*keys, "from_us"], {"exchanges": "sum(values)"})
    # no power of two of 64 bits is above the largest one
    above = f"if(from_us >= {2**62}L, {2**63 - 1}L, greatest(from_us * 2, 1L))"
    return counted.adding({"below_us": above})


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
    if behind := rows.get(RELAYED.name, ()):
        names = ", ".join(str(row["relay"]) for row in behind[:5])
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
    question=(
        "How long did brokers take to respond, to whom, when, and how much of it was network?"
    ),
    tables=TABLES,
    build=build,
    charts=(
        Chart(
            "lines",
            "p99 latency by broker",
            OVER_TIME.name,
            {
                "x": "window_start",
                "y": "p99_us",
                "axis": "p99 latency",
                "by": "broker",
                "width": "window_us",
            },
        ),
        Chart(
            "heat",
            "Latency heatmap",
            HEAT.name,
            {
                "x": "window_start",
                "y": "from_us",
                "axis": "latency",
                "value": "exchanges",
                "width": "window_us",
            },
        ),
    ),
    remarks=remarks,
    shares=(BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS),
)
