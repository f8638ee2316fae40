"""Sends that relays made from sends of clients, by the shared rule in `dissectors.rows`.

A query selects the sends of messages seen more than once; the rule pairs their hops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dissectors.endpoint import host_of
from dissectors.rows.outcome import FAILED, NOT_DURABLE, OK
from dissectors.rows.relays import Hop, Relay, hop_pairs

from ..report import ReportInput, TableColumn, column_names, table_columns
from ..schema import SOURCE, arrow_schema_of
from ..sql.engine import with_texts
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

RELAY_COLUMNS = table_columns("""
    relay string: relay `address:port`
    server_address string: upstream `address:port`
    from_host string: source address of the relay's upstream connections
    sends int: answered sends seen on both hops
    outer_p50_us int µs: median latency of the outer hop (client view)
    inner_p50_us int µs: median latency of the inner hop (broker)
    own_p50_us int µs: median time spent in the relay
    outer_p99_us int µs: 99th percentile of the outer hop
    inner_p99_us int µs: 99th percentile of the inner hop
    own_p99_us int µs: 99th percentile of time spent in the relay
    own_max_us int µs: maximum time spent in the relay
""")
"""One row per relay and server behind it."""

_PAIR_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn(SOURCE, "string", "", ""),
    *table_columns("""
        conversation int
        opaque int
        unique_key string
        place int: place of the outer hop among those that may be it
        relay string
        from_host string
        server_address string
        proven bool
        of_call bool
        outer_us int µs
        inner_us int µs
    """),
)
"""One row per inner hop and possible outer hop: `relays.HopPair`."""
_INNER_COLUMNS = table_columns("""
    topic string
    inner_sends int
    inner_sent int
""")
_GOOD = texts((OK, NOT_DURABLE))
_FOUND = ("relay", "from_host", "server_address")
_SIDES = ("outer", "inner", "own")
"""Parts of the latency of a send seen on both sides of a relay."""
_PLACE = (SOURCE, "conversation", "opaque", "unique_key")
"""Columns that identify a send."""
_PARTS = 64
"""Number of parts in which the messages of a large input are paired."""


def has_relays(report_input: ReportInput) -> bool:
    """Return whether a relay or proxy made any send of the input."""
    return not report_input.kept.is_empty(_pairs(report_input))


def _pairs(report_input: ReportInput) -> Relation:
    """Return each inner hop with its outer hop, as `_PAIR_COLUMNS`."""
    return report_input.kept.once(RELAYS, None, lambda: _paired(report_input))


def _paired(report_input: ReportInput) -> Relation:
    repeated = _repeated(report_input)
    if repeated is None:
        return report_input.kept.empty(_PAIR_COLUMNS, RELAYS)
    # all sends of a message have the same key, and so are in the same part
    parts = 1 if report_input.exchanges.is_here else _PARTS
    hops = repeated.where("unique_key is not null and not " + sends.LOGGED).select(
        *_PLACE,
        *column_names("capture client_address server_address offset_msg_id topic latency_us"),
        "`call`",
        "unix_micros(request_time) as begin",
        f"pmod({sends.KEY}, {parts}) as part",
    )
    kept = report_input.kept
    paired = kept.noted(kept.engine.by_group(hops, "part", _pairs_of, _PAIR_COLUMNS), RELAYS)
    if report_input.kept.is_empty(paired):
        return paired
    # a relay is proven by any of its messages; its other pairs count then, too
    proven = paired.where("proven and not of_call").select_distinct(*_FOUND)
    proven_pairs = paired.join(proven, _FOUND, "left semi", small=True)
    made = paired.where("of_call").union(proven_pairs)
    # an inner hop may fit several outer ones: the first counts
    first = f"row_number() over (partition by {', '.join(_PLACE)} order by place) as row"
    return report_input.kept.frame(made.select("*", first).where("row = 1").without("row"), RELAYS)


def _pairs_of(table: pyarrow.Table) -> pyarrow.Table:
    """Return the hop pairs of sends, as `_PAIR_COLUMNS`; `table` has all sends of its messages."""
    import pyarrow

    table = with_texts(table)
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
    # what the sends have stays in Arrow; only what the rule finds is made here
    took = table.column("latency_us")
    columns = {name: table.column(name).take(pyarrow.array(inner, "int64")) for name in _PLACE}
    columns["inner_us"] = took.take(pyarrow.array(inner, "int64"))
    columns["outer_us"] = took.take(pyarrow.array(outer, "int64"))
    for name, values in zip(
        _PAIR_FACTS, zip(*made, strict=True) if made else [()] * 6, strict=True
    ):
        columns[name] = pyarrow.chunked_array([pyarrow.array(values)])
    schema = arrow_schema_of(_PAIR_COLUMNS)
    arrays = [columns[field.name].cast(field.type) for field in schema]
    return pyarrow.Table.from_arrays(arrays, schema=schema)


_OF_HOP = column_names("begin latency_us client_address server_address offset_msg_id call capture")
_PAIR_FACTS = ("place", *_FOUND, "proven", "of_call")


def _hop_of(
    begin: int,
    took: int | None,
    client_address: str,
    server_address: str,
    offset_id: str | None,
    call: bool,
    capture: str | None,
) -> Hop:
    end = None if took is None else (begin + took) * 1000
    return Hop(begin * 1000, end, host_of(client_address), server_address, offset_id, call, capture)


def _repeated(report_input: ReportInput) -> Relation | None:
    """Return a superset of the sends of messages seen more than once, or None if there are none.

    In a large input these are few, and only their hops are compared.
    """
    known = suspects(report_input)
    if report_input.kept.is_empty(known.keys):
        return None
    if known.sends is not None:
        return known.sends
    all_sends = sends.sends_and_calls_of(report_input.exchanges)
    return all_sends.join(known.keys, f"{sends.KEY} = key", "left semi")


def inner_sends(report_input: ReportInput) -> Relation:
    """Return `inner_sends` and `inner_sent` (stored messages) of relays and proxies by topic."""
    inner = _pairs(report_input)
    repeated = _repeated(report_input)
    if repeated is None or report_input.kept.is_empty(inner):
        return report_input.kept.empty(_INNER_COLUMNS)
    return repeated.join(inner, _PLACE, "left semi", small=True).grouped(
        ("topic",),
        {
            "inner_sends": "count(*)",
            "inner_sent": f"sum(if(outcome_class in {_GOOD}, {sends.MESSAGES}, 0L))",
        },
    )


def proven_relays(report_input: ReportInput) -> set[Relay]:
    """Return the remoting relays proven by sends on both sides."""
    pairs = _pairs(report_input).where("not of_call").select_distinct(*_FOUND)
    return {
        Relay(row["relay"], row["from_host"], row["server_address"])
        for row in report_input.kept.rows(pairs).to_pylist()
    }


def without_inner(
    report_input: ReportInput, chosen: Relation | None = None, *, of_calls: bool = True
) -> Relation:
    """Return all sends, or the `chosen` ones, without those made by relays.

    Only attempts of clients remain, and, unless `of_calls`, sends that proxies made for calls.
    """
    all_sends = sends.sends_and_calls_of(report_input.exchanges) if chosen is None else chosen
    if not has_relays(report_input):
        return all_sends
    inner = _pairs(report_input) if of_calls else _pairs(report_input).where("not of_call")
    return all_sends.join(inner, _PLACE, "left anti", small=inner.rows is not None)


def with_broker_outcomes(report_input: ReportInput, chosen: Relation, share: str) -> Relation:
    """Return `chosen` with `said`: for gRPC calls, the outcome at the broker behind the proxy.

    STORED wins if there were several responses. `chosen` must be few sends and already kept; the
    result is kept as `share`.
    """
    # Requests of a proxy are no attempts of a client, but show the outcome of a call without a
    # response.
    rows = chosen.rows
    if rows is not None and True not in rows.column("call").unique().to_pylist():
        return chosen.adding({"said": "cast(null as string)"})
    # without a response to the call, later requests of the proxy may belong to the next attempt
    following = f"lead(begin) over (partition by {sends.KEY} order by begin)"
    until = f"coalesce(end_us, least(begin + {WITHIN_US}, {following}))"
    calls = chosen.where("call").select(
        *_PLACE, f"{sends.KEY} as key", "begin", f"{until} as until"
    )
    suspected = suspects(report_input).sends  # a response repeats the call's UNIQ_KEY
    sent = (
        sends.sends_of(report_input.exchanges) if suspected is None else suspected.where("not call")
    )
    responses = sent.where("status = 'answered'").select(
        f"{sends.KEY} as key",
        "unix_micros(request_time) as sent",
        f"if(outcome_class = '{FAILED}', '{REFUSED}', '{STORED}') as said",
    )
    meanwhile = "of.key = one.key and of.sent between one.begin and one.until"
    matches = responses.join(
        calls, meanwhile, small=True, names=("of", "one"), select=(*_PLACE, "said")
    )
    outcomes = matches.grouped(_PLACE, {"said": "max(said)"})
    return report_input.kept.frame(chosen.join(outcomes, _PLACE, "left", small=True), share)


def relays(report_input: ReportInput) -> Relation:
    """Return RELAY_COLUMNS: relays, their clients and servers, and latencies."""
    pairs = _pairs(report_input)
    if report_input.kept.is_empty(pairs):
        return report_input.kept.empty(RELAY_COLUMNS)
    answered = "outer_us is not null and inner_us is not null"
    sides = {
        "outer_us": f"if({answered}, outer_us, null)",
        "inner_us": f"if({answered}, inner_us, null)",
        # Negative if the hops are of two captures with different clocks.
        "own_us": f"if({answered}, greatest(outer_us - inner_us, 0L), null)",
    }
    latencies = pairs.select(
        *_FOUND, *(f"{value} as {name}" for name, value in sides.items())
    ).select(
        *_FOUND,
        "explode(array("
        + ", ".join(f"named_struct('hop', '{hop}', 'us', {hop}_us)" for hop in _SIDES)
        + ")) as side",
    )
    times = with_bucket(latencies.select(*_FOUND, "side.hop as hop", "side.us as us"), "us")
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
