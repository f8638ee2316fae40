"""Relays: an address that takes a send and makes it again to a broker, as a proxy of 5.x does.

Rules: the broker's message id is proof. Two answers with one id are one stored message, so the
exchange that took longer is the outer hop, the other the inner one. So is topology: a send of a
message from the address that was asked to send it, and not from the one that asked. What proves a
relay once (its address, from which address it asks, whom) tells the hops of other sends from
attempts, also of refused, unanswered and one-way ones, by their time within the outer exchange.
A proxy that speaks gRPC is proven by one message that was sent by a call and by remoting: no client
does both. What it sends for a message of a call is no attempt of a client, and its answers say what
became of the message where those to the call do not.
RocketMQ: RemotingProtocolServer, SendMessageActivity of the proxy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from .. import derived
from ..report import ReportInput, TableColumn
from ..schema import SOURCE
from ..spark.expressions import adding, grouped
from . import sends
from .attempts import REFUSED, STORED, WITHIN_US
from .suspects import suspects

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RELAYS = "relays"
"""The share of `ReportInput.kept` that these are."""
OWN = "sends of relays themselves"
"""The share of those."""

RELAY_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("relay", "string", "", "`address:port` that took the sends and made them again"),
    TableColumn("server", "string", "", "`address:port` that it made them to"),
    TableColumn("from_host", "string", "", "address from which it did"),
    TableColumn("sends", "int", "", "sends that were seen on both sides and answered"),
    TableColumn("outer_p50_us", "int", "µs", "median latency of the outer hop: what clients wait"),
    TableColumn("inner_p50_us", "int", "µs", "median latency of the inner hop: the broker"),
    TableColumn("own_p50_us", "int", "µs", "median of the difference: the relay itself"),
    TableColumn("outer_p99_us", "int", "µs", "99th percentile of the outer hop"),
    TableColumn("inner_p99_us", "int", "µs", "of the inner hop"),
    TableColumn("own_p99_us", "int", "µs", "of the difference"),
    TableColumn("own_max_us", "int", "µs", "the largest difference"),
)
"""One row per relay and server behind it."""

_HOP = "struct(latency_us, responder, requester, id)"
_SEND = "struct(request_time, responder, requester)"
_FOUND = ("relay", "from_host", "server")
_PLACE = (SOURCE, "conversation", "opaque", "unique_key")
"""What a call is told by."""


def relays(given: ReportInput) -> DataFrame:
    """Return (relay, from_host, server), each once: who makes sends again, from where, to whom.

    Proxies that take calls of gRPC are not among them.
    """
    hops = _hops(given)
    return hops if given.kept.is_empty(hops) else hops.where("not of_calls").drop("of_calls")


def has_relays(given: ReportInput) -> bool:
    """Return whether any send of the input was made by a relay or a proxy."""
    return not given.kept.is_empty(_hops(given))


def _hops(given: ReportInput) -> DataFrame:
    """Return what `relays` does, and that of proxies by gRPC, with `of_calls`."""
    return given.kept.once(RELAYS, None, lambda: _found(given))


def _found(given: ReportInput) -> DataFrame:
    every = _repeated(given)
    if every is None:
        return given.kept.empty(given.exchanges.sparkSession, _HOP_COLUMNS, RELAYS)
    seen = every.where("unique_key is not null and not " + sends.LOGGED)
    numbered = adding(seen, {"key": sends.KEY, "id": "xxhash64(offset_msg_id)"})
    stored = f"if(offset_msg_id is not null and latency_us is not null, {_HOP}, null)"
    each = grouped(
        numbered,
        ("key",),
        {
            "seen": "count_if(not call)",
            "outer": f"max({stored})",
            "inner": f"min({stored})",
            "first": f"min(if(call, null, {_SEND}))",
            "last": f"max(if(call, null, {_SEND}))",
            "asked": "min(if(call, responder, null))",
        },
    ).where("seen > 1 or (seen = 1 and asked is not null)")
    by_id = each.where("outer.id = inner.id and outer.responder != inner.responder")
    first, relay = derived.address_of("first.requester"), derived.address_of("first.responder")
    last = derived.address_of("last.requester")
    by_place = each.where(
        f"{relay} = {last} and {first} != {last} and first.responder != last.responder"
    )
    found = by_id.select("outer.responder", "inner.requester", F.col("inner.responder").alias("to"))
    placed = by_place.select(
        "first.responder", "last.requester", F.col("last.responder").alias("to")
    )
    found = found.unionByName(placed).selectExpr(
        "responder as relay", f"{derived.address_of('requester')} as from_host", "to as server"
    )
    of_calls = each.where("asked is not null").selectExpr(
        "asked as relay", "inline(array(first, last)) as (_, server, requester)"
    )
    behind = of_calls.selectExpr(
        "relay", f"{derived.address_of('requester')} as from_host", "server"
    )
    both = adding(found, {"of_calls": "false"}).unionByName(adding(behind, {"of_calls": "true"}))
    return given.kept.frame(both.distinct(), RELAYS)


def _repeated(given: ReportInput) -> DataFrame | None:
    """Return at least the sends of messages that were seen more than once; None: there are none.

    Of a large input these are few, and hops are compared of these only.
    """
    every = sends.sends_and_calls_of(given.exchanges)
    if given.small:
        return every
    known = suspects(given)
    if given.kept.is_empty(known.keys):
        return None
    if known.sends is not None:
        return known.sends
    return every.join(known.keys, F.expr(f"{sends.KEY} = key"), "left_semi")


_HOP_COLUMNS = (
    TableColumn("relay", "string", "", ""),
    TableColumn("from_host", "string", "", ""),
    TableColumn("server", "string", "", ""),
    TableColumn("of_calls", "bool", "", ""),
)


def without_inner(given: ReportInput) -> DataFrame:
    """Return the sends without those that a relay made: what is left are attempts of clients."""
    every = sends.sends_and_calls_of(given.exchanges)
    if not has_relays(given):
        return every
    known = relays(given)
    produced = adding(every, {"from_host": derived.address_of("requester")})
    behind = F.broadcast(_hops(given).selectExpr("from_host", "server as responder").distinct())
    others = produced.join(behind, ["from_host", "responder"], "left_anti")

    def own() -> DataFrame:  # few: what the host of a relay sent by itself
        perhaps = produced.join(behind, ["from_host", "responder"], "left_semi")
        keyed = adding(perhaps, {"key": sends.KEY}).alias("one")
        outer = _outer(produced.drop("from_host"), known).alias("of")
        called = produced.where("call").selectExpr(f"{sends.KEY} as key").alias("of")
        left = keyed.join(outer, F.expr(_IS_INNER), "left_anti")
        left = left.join(called, F.expr(_IS_OF_A_CALL), "left_anti")
        return given.kept.frame(left.drop("key"), OWN)

    return others.unionByName(given.kept.once(OWN, None, own)).drop("from_host")


def _outer(produced: DataFrame, known: DataFrame) -> DataFrame:
    taken = produced.join(
        F.broadcast(known.withColumnRenamed("relay", "responder")), "responder"
    ).where("unique_key is not null and request_packet is not null")
    return taken.selectExpr(
        f"{sends.KEY} as key",
        "responder as relay",
        "from_host",
        "server",
        "request_time as begin",
        f"coalesce(response_time, request_time + make_dt_interval(0, 0, 0, {WITHIN_US / 1e6}))"
        " as end",
        "offset_msg_id as id",
        "latency_us",
    )


_IS_INNER = (
    "one.key = of.key and one.from_host = of.from_host and one.responder = of.server"
    " and (coalesce(one.offset_msg_id = of.id, false)"
    " or one.request_time between of.begin and of.end)"
)
"""SQL: a send is the inner hop of another."""
_IS_OF_A_CALL = "one.key = of.key and not one.call"
"""SQL: a send by remoting is of a message that a client sent by gRPC, so a proxy made it."""


def with_what_brokers_said(given: ReportInput, chosen: DataFrame, share: str) -> DataFrame:
    """Return few sends with `said`: of a call what a broker answered to the proxy meanwhile.

    Where it answered several times, that one of them stored the message is what counts. `chosen`
    are kept, and so is the result, as `share`.
    """
    rows = given.kept.rows_here(chosen)
    if rows is not None and True not in rows.column("call").unique().to_pylist():
        return adding(chosen, {"said": "cast(null as string)"})
    # no answer to the call: what the proxy asks later may be for the next attempt
    following = f"lead(begin) over (partition by {sends.KEY} order by begin)"
    until = f"coalesce(end_us, least(begin + {WITHIN_US}, {following}))"
    calls = chosen.where("call").selectExpr(
        *_PLACE, f"{sends.KEY} as key", "begin", f"{until} as until"
    )
    few = None if given.small else suspects(given).sends  # an answer repeats the call's UNIQ_KEY
    sent = sends.sends_of(given.exchanges) if few is None else few.where("not call")
    answers = sent.where("status = 'answered'").selectExpr(
        f"{sends.KEY} as key",
        "unix_micros(request_time) as sent",
        f"if({sends.WAS_STORED}, '{STORED}', '{REFUSED}') as said",
    )
    meanwhile = "of.key = one.key and of.sent between one.begin and one.until"
    both = answers.alias("of").join(F.broadcast(calls.alias("one")), F.expr(meanwhile))
    told = grouped(both.select(*_PLACE, "said"), _PLACE, {"said": "max(said)"})
    return given.kept.frame(chosen.join(F.broadcast(told), [*_PLACE], "left"), share)


def relay_latencies(given: ReportInput) -> DataFrame:
    """Return RELAY_COLUMNS."""
    known = relays(given)
    if given.kept.is_empty(known):
        return given.kept.empty(given.exchanges.sparkSession, RELAY_COLUMNS)
    produced = sends.sends_of(given.exchanges)
    behind = F.broadcast(known.selectExpr("from_host", "server as responder").distinct())
    placed = adding(produced, {"from_host": derived.address_of("requester"), "key": sends.KEY})
    inner = placed.join(behind, ["from_host", "responder"], "left_semi")
    both = inner.alias("one").join(_outer(produced, known).alias("of"), F.expr(_IS_INNER))
    told = both.where("one.latency_us is not null and of.latency_us is not null")
    return grouped(
        told.selectExpr("of.server as server", *_BOTH).unionByName(_behind_calls(placed, given)),
        _FOUND,
        {
            "sends": "count(*)",
            **{
                f"{hop}_p{place}_us": f"percentile_approx({hop}_us, 0.{place}, 1000)"
                for hop in ("outer", "inner", "own")
                for place in (50, 99)
            },
            "own_max_us": "max(own_us)",
        },
    )


def _behind_calls(placed: DataFrame, given: ReportInput) -> DataFrame:
    """Return sends (with `key` and `from_host`) that a proxy made while a call of it waited."""
    calls = given.exchanges.where(_ANSWERED_CALL).selectExpr(
        f"{sends.KEY} as key", "responder as relay", "request_time", "response_time", "latency_us"
    )
    answered = placed.where("key is not null and latency_us is not null")
    both = answered.alias("one").join(calls.alias("of"), F.expr(_IS_BEHIND))
    return both.selectExpr("one.responder as server", *_BOTH)


_ANSWERED_CALL = f"{sends.CALL} and unique_key is not null and latency_us is not null"
"""SQL: a send by gRPC that was answered."""
_IS_BEHIND = (
    "one.key = of.key and one.responder != of.relay"
    " and one.request_time between of.request_time and of.response_time"
    " and one.latency_us <= of.latency_us"
)
"""SQL: a proxy made a send for a call."""
_BOTH = (
    "of.relay as relay",
    "one.from_host as from_host",
    "of.latency_us as outer_us",
    "one.latency_us as inner_us",
    "greatest(of.latency_us - one.latency_us, 0L) as own_us",
)
"""SQL: what is told of a send on both sides of a relay."""
