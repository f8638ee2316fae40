"""The sends that relays made of sends of clients, by the one rule for all views: `dissectors.rows`.

A query chooses the sends of messages that were seen more than once; the rule pairs their hops. What
a proxy sends for a message of a call is no attempt of a client, and its responses say what became
of the message where those to the call do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissectors.endpoint import host_of
from dissectors.rows.outcome import FAILED, NOT_DURABLE, OK
from dissectors.rows.relays import Hop, hop_pairs

from ..report import ReportInput, TableColumn
from ..schema import SOURCE, arrow_schema_of
from ..sql.expressions import texts
from ..sql.percentiles import percentiles, with_bucket
from ..sql.relation import Relation
from . import sends
from .attempts import REFUSED, STORED, WITHIN_US
from .suspects import suspects

if TYPE_CHECKING:
    import pyarrow

RELAYS = "relays"
"""The share of `ReportInput.kept` that these are."""

RELAY_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("relay", "string", "", "relay `address:port`"),
    TableColumn("server", "string", "", "upstream `address:port`"),
    TableColumn("from_host", "string", "", "source address of the relay's upstream connections"),
    TableColumn("sends", "int", "", "answered sends seen on both hops"),
    TableColumn("outer_p50_us", "int", "µs", "median latency of the outer hop (client view)"),
    TableColumn("inner_p50_us", "int", "µs", "median latency of the inner hop (broker)"),
    TableColumn("own_p50_us", "int", "µs", "median time spent in the relay"),
    TableColumn("outer_p99_us", "int", "µs", "99th percentile of the outer hop"),
    TableColumn("inner_p99_us", "int", "µs", "99th percentile of the inner hop"),
    TableColumn("own_p99_us", "int", "µs", "99th percentile of time spent in the relay"),
    TableColumn("own_max_us", "int", "µs", "maximum time spent in the relay"),
)
"""One row per relay and server behind it."""

_PAIR_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn(SOURCE, "string", "", ""),
    TableColumn("conversation", "int", "", ""),
    TableColumn("opaque", "int", "", ""),
    TableColumn("unique_key", "string", "", ""),
    TableColumn("place", "int", "", "place of the outer hop among those that may be it"),
    TableColumn("relay", "string", "", ""),
    TableColumn("from_host", "string", "", ""),
    TableColumn("server", "string", "", ""),
    TableColumn("proven", "bool", "", ""),
    TableColumn("of_call", "bool", "", ""),
    TableColumn("outer_us", "int", "µs", ""),
    TableColumn("inner_us", "int", "µs", ""),
)
"""One row per inner hop and outer hop that it may be made of: `relays.HopPair`."""
_INNER_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("topic", "string", "", ""),
    TableColumn("inner_sends", "int", "", ""),
    TableColumn("inner_sent", "int", "", ""),
)
_GOOD = texts((OK, NOT_DURABLE))
_FOUND = ("relay", "from_host", "server")
_SIDES = ("outer", "inner", "own")
"""What the latency of a send on both sides of a relay is split into."""
_PLACE = (SOURCE, "conversation", "opaque", "unique_key")
"""Columns that identify a send."""
_PARTS = 64
"""Parts of the messages of a large input that are paired one after the other."""


def has_relays(given: ReportInput) -> bool:
    """Return whether any send of the input was made by a relay or a proxy."""
    return not given.kept.is_empty(_pairs(given))


def _pairs(given: ReportInput) -> Relation:
    """Return each inner hop with its outer hop: `_PAIR_COLUMNS`."""
    return given.kept.once(RELAYS, None, lambda: _paired(given))


def _paired(given: ReportInput) -> Relation:
    every = _repeated(given)
    if every is None:
        return given.kept.empty(_PAIR_COLUMNS, RELAYS)
    parts = 1 if given.exchanges.is_here else _PARTS
    hops = every.where("unique_key is not null and not " + sends.LOGGED).select(
        *(SOURCE, "capture", "conversation", "opaque", "requester", "responder", "offset_msg_id"),
        *("unique_key", "topic", "`call`", "unix_micros(request_time) as begin", "latency_us"),
        f"pmod({sends.KEY}, {parts}) as part",
    )
    paired = given.kept.by_group(hops, "part", _pairs_of, _PAIR_COLUMNS, RELAYS)
    if given.kept.is_empty(paired):
        return paired
    proven = paired.where("proven and not of_call").select_distinct(*_FOUND)
    known = paired.join(proven, _FOUND, "left semi", small=True)
    made = paired.where("of_call").union(known)
    first = f"row_number() over (partition by {', '.join(_PLACE)} order by place) as row"
    return given.kept.frame(made.select("*", first).where("row = 1").without("row"), RELAYS)


def _pairs_of(table: pyarrow.Table) -> pyarrow.Table:
    """Return `_PAIR_COLUMNS` of sends, all of some messages."""
    import pyarrow

    messages: dict[object, list[int]] = {}
    identities = zip(
        *(table.column(name).to_pylist() for name in ("unique_key", "topic")), strict=True
    )
    for row, identity in enumerate(identities):
        messages.setdefault(identity, []).append(row)
    hops = list(map(_hop_of, *(table.column(name).to_pylist() for name in _OF_HOP)))
    inner: list[int] = []
    outer: list[int] = []
    made: list[tuple[object, ...]] = []
    for rows in messages.values():
        for place, pair in enumerate(hop_pairs([hops[row] for row in rows])):
            inner.append(rows[pair.inner])
            outer.append(rows[pair.outer])
            made.append((place, *pair.relay, pair.proven, pair.of_call))
    took = table.column("latency_us")
    columns = {name: table.column(name).take(pyarrow.array(inner, "int64")) for name in _PLACE}
    columns["inner_us"] = took.take(pyarrow.array(inner, "int64"))
    columns["outer_us"] = took.take(pyarrow.array(outer, "int64"))
    for name, values in zip(_MADE, zip(*made, strict=True) if made else [()] * 6, strict=True):
        columns[name] = pyarrow.chunked_array([pyarrow.array(values)])
    schema = arrow_schema_of(_PAIR_COLUMNS)
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


_OF_HOP = ("begin", "latency_us", "requester", "responder", "offset_msg_id", "call", "capture")
_MADE = ("place", *_FOUND, "proven", "of_call")


def _hop_of(
    begin: int,
    took: int | None,
    requester: str,
    responder: str,
    offset_id: str | None,
    call: bool,
    capture: str | None,
) -> Hop:
    end = None if took is None else (begin + took) * 1000
    return Hop(begin * 1000, end, host_of(requester), responder, offset_id, call, capture)


def _repeated(given: ReportInput) -> Relation | None:
    """Return at least the sends of messages that were seen more than once; None: there are none.

    Of a large input these are few, and hops are compared of these only.
    """
    known = suspects(given)
    if given.kept.is_empty(known.keys):
        return None
    if known.sends is not None:
        return known.sends
    every = sends.sends_and_calls_of(given.exchanges)
    return every.join(known.keys, f"{sends.KEY} = key", "left semi")


def inner_sends(given: ReportInput) -> Relation:
    """Return (topic, inner_sends, inner_sent): sends of relays and proxies, messages stored so."""
    inner = _pairs(given)
    every = _repeated(given)
    if every is None or given.kept.is_empty(inner):
        return given.kept.empty(_INNER_COLUMNS)
    return every.join(inner, _PLACE, "left semi", small=True).grouped(
        ("topic",),
        {
            "inner_sends": "count(*)",
            "inner_sent": f"sum(if(outcome_class in {_GOOD}, {sends.MESSAGES}, 0L))",
        },
    )


def without_inner(given: ReportInput) -> Relation:
    """Return the sends without those that a relay made: what is left are attempts of clients."""
    every = sends.sends_and_calls_of(given.exchanges)
    if not has_relays(given):
        return every
    inner = _pairs(given)
    return every.join(inner, _PLACE, "left anti", small=inner.rows is not None)


def with_what_brokers_said(given: ReportInput, chosen: Relation, share: str) -> Relation:
    """Return few sends with `said`: of a call what a broker answered to the proxy meanwhile.

    Where it answered several times, that one of them stored the message is what counts. `chosen`
    are kept, and so is the result, as `share`.
    """
    rows = chosen.rows
    if rows is not None and True not in rows.column("call").unique().to_pylist():
        return chosen.adding({"said": "cast(null as string)"})
    # no answer to the call: what the proxy asks later may be for the next attempt
    following = f"lead(begin) over (partition by {sends.KEY} order by begin)"
    until = f"coalesce(end_us, least(begin + {WITHIN_US}, {following}))"
    calls = chosen.where("call").select(
        *_PLACE, f"{sends.KEY} as key", "begin", f"{until} as until"
    )
    few = suspects(given).sends  # an answer repeats the call's UNIQ_KEY
    sent = sends.sends_of(given.exchanges) if few is None else few.where("not call")
    answers = sent.where("status = 'answered'").select(
        f"{sends.KEY} as key",
        "unix_micros(request_time) as sent",
        f"if(outcome_class = '{FAILED}', '{REFUSED}', '{STORED}') as said",
    )
    meanwhile = "of.key = one.key and of.sent between one.begin and one.until"
    both = answers.join(calls, meanwhile, small=True, names=("of", "one"), select=(*_PLACE, "said"))
    told = both.grouped(_PLACE, {"said": "max(said)"})
    return given.kept.frame(chosen.join(told, _PLACE, "left", small=True), share)


def relays(given: ReportInput) -> Relation:
    """Return RELAY_COLUMNS: who makes sends again, from where, to whom, and how long it takes."""
    pairs = _pairs(given)
    if given.kept.is_empty(pairs):
        return given.kept.empty(RELAY_COLUMNS)
    answered = "outer_us is not null and inner_us is not null"
    sides = {
        "outer_us": f"if({answered}, outer_us, null)",
        "inner_us": f"if({answered}, inner_us, null)",
        "own_us": f"if({answered}, greatest(outer_us - inner_us, 0L), null)",
    }
    each = pairs.select(*_FOUND, *(f"{value} as {name}" for name, value in sides.items())).select(
        *_FOUND,
        "explode(array("
        + ", ".join(f"named_struct('hop', '{hop}', 'us', {hop}_us)" for hop in _SIDES)
        + ")) as side",
    )
    times = with_bucket(each.select(*_FOUND, "side.hop as hop", "side.us as us"), "us")
    cells = times.grouped(
        [*_FOUND, "hop", "bucket"],
        {
            "values": "count(us)",
            "total_us": "sum(cast(us as double))",
            "smallest_us": "min(us)",
            "largest_us": "max(us)",
        },
    )
    of_sides = percentiles(cells, [*_FOUND, "hop"])
    return of_sides.grouped(
        _FOUND,
        {
            "sends": f"max(if(hop = '{_SIDES[0]}', `values`, null))",
            **{
                f"{hop}_p{place}_us": f"max(if(hop = '{hop}', p{place}_us, null))"
                for hop in _SIDES
                for place in (50, 99)
            },
            "own_max_us": "max(if(hop = 'own', max_us, null))",
        },
    )
