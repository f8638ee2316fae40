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

from .. import derived
from ..report import ReportInput, TableColumn
from ..schema import SOURCE
from ..sql.expressions import place_of
from ..sql.percentiles import percentiles, with_bucket
from ..sql.relation import Relation
from . import sends
from .attempts import REFUSED, STORED, WITHIN_US
from .suspects import suspects

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

_HOP = place_of("latency_us", "responder", "requester", "id")
_SEND = place_of("request_time", "responder", "requester")
_FOUND = ("relay", "from_host", "server")
_SIDES = ("outer", "inner", "own")
"""What the latency of a send on both sides of a relay is split into."""
_HOPS = ("one", "of")
"""What conditions call the inner and the outer hop."""
_PLACE = (SOURCE, "conversation", "opaque", "unique_key")
"""What a call is told by."""


def relays(given: ReportInput) -> Relation:
    """Return (relay, from_host, server), each once: who makes sends again, from where, to whom.

    Proxies that take calls of gRPC are not among them.
    """
    hops = _hops(given)
    return hops if given.kept.is_empty(hops) else hops.where("not of_calls").without("of_calls")


def has_relays(given: ReportInput) -> bool:
    """Return whether any send of the input was made by a relay or a proxy."""
    return not given.kept.is_empty(_hops(given))


def _hops(given: ReportInput) -> Relation:
    """Return what `relays` does, and that of proxies by gRPC, with `of_calls`."""
    return given.kept.once(RELAYS, None, lambda: _found(given))


def _found(given: ReportInput) -> Relation:
    every = _repeated(given)
    if every is None:
        return given.kept.empty(_HOP_COLUMNS, RELAYS)
    seen = every.where("unique_key is not null and not " + sends.LOGGED)
    numbered = seen.adding({"key": sends.KEY, "id": "xxhash64(offset_msg_id)"})
    stored = f"if(offset_msg_id is not null and latency_us is not null, {_HOP}, null)"
    each = numbered.grouped(
        ("key",),
        {
            "seen": "count_if(not call)",
            "outer_hop": f"max({stored})",
            "inner_hop": f"min({stored})",
            "first_send": f"min(if(call, null, {_SEND}))",
            "last_send": f"max(if(call, null, {_SEND}))",
            "asked": "min(if(call, responder, null))",
        },
    ).where("seen > 1 or (seen = 1 and asked is not null)")
    by_id = each.where("outer_hop.id = inner_hop.id and outer_hop.responder != inner_hop.responder")
    first = derived.address_of("first_send.requester")
    relay = derived.address_of("first_send.responder")
    last = derived.address_of("last_send.requester")
    by_place = each.where(
        f"{relay} = {last} and {first} != {last} and first_send.responder != last_send.responder"
    )
    found = by_id.select(
        "outer_hop.responder as relay",
        "inner_hop.requester as requester",
        "inner_hop.responder as server",
        "false as of_calls",
    )
    placed = by_place.select(
        "first_send.responder as relay",
        "last_send.requester as requester",
        "last_send.responder as server",
        "false as of_calls",
    )
    called = each.where("asked is not null").select(
        "asked as relay", "explode(array(first_send, last_send)) as hop"
    )
    behind = called.select(
        "relay", "hop.requester as requester", "hop.responder as server", "true as of_calls"
    )
    both = (
        found.union(placed)
        .union(behind)
        .select("relay", f"{derived.address_of('requester')} as from_host", "server", "of_calls")
    )
    return given.kept.frame(both.distinct(), RELAYS)


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


_HOP_COLUMNS = (
    TableColumn("relay", "string", "", ""),
    TableColumn("from_host", "string", "", ""),
    TableColumn("server", "string", "", ""),
    TableColumn("of_calls", "bool", "", ""),
)


def without_inner(given: ReportInput) -> Relation:
    """Return the sends without those that a relay made: what is left are attempts of clients."""
    every = sends.sends_and_calls_of(given.exchanges)
    if not has_relays(given):
        return every
    known = relays(given)
    produced = every.adding({"from_host": derived.address_of("requester")})
    behind = _hops(given).select("from_host", "server as responder").distinct()
    others = produced.join(behind, ["from_host", "responder"], "left anti", small=True)

    def own() -> Relation:  # few: what the host of a relay sent by itself
        perhaps = produced.join(behind, ["from_host", "responder"], "left semi", small=True)
        keyed = perhaps.adding({"key": sends.KEY})
        outer = _outer(produced.without("from_host"), known)
        called = produced.where("call").select(f"{sends.KEY} as key")
        left = keyed.join(outer, _IS_INNER, "left anti", names=_HOPS)
        left = left.join(called, _IS_OF_A_CALL, "left anti", names=_HOPS)
        return given.kept.frame(left.without("key"), OWN)

    return others.union(given.kept.once(OWN, None, own)).without("from_host")


def _outer(produced: Relation, known: Relation) -> Relation:
    behind = known.renamed({"relay": "responder"})
    taken = produced.join(behind, ["responder"], small=True).where(
        "unique_key is not null and request_packet is not null"
    )
    return taken.select(
        f"{sends.KEY} as key",
        "responder as relay",
        "from_host",
        "server",
        "unix_micros(request_time) as begin",
        f"coalesce(unix_micros(response_time), unix_micros(request_time) + {WITHIN_US}) as `end`",
        "offset_msg_id as id",
        "latency_us",
    )


_IS_INNER = (
    "one.key = of.key and one.from_host = of.from_host and one.responder = of.server"
    " and (coalesce(one.offset_msg_id = of.id, false)"
    " or unix_micros(one.request_time) between of.begin and of.`end`)"
)
"""SQL: a send is the inner hop of another."""
_IS_OF_A_CALL = "one.key = of.key and not one.call"
"""SQL: a send by remoting is of a message that a client sent by gRPC, so a proxy made it."""


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
        f"if({sends.WAS_STORED}, '{STORED}', '{REFUSED}') as said",
    )
    meanwhile = "of.key = one.key and of.sent between one.begin and one.until"
    both = answers.join(calls, meanwhile, small=True, names=("of", "one"), select=(*_PLACE, "said"))
    told = both.grouped(_PLACE, {"said": "max(said)"})
    return given.kept.frame(chosen.join(told, _PLACE, "left", small=True), share)


def relay_latencies(given: ReportInput) -> Relation:
    """Return RELAY_COLUMNS."""
    known = relays(given)
    if given.kept.is_empty(known):
        return given.kept.empty(RELAY_COLUMNS)
    produced = sends.sends_of(given.exchanges)
    behind = known.select("from_host", "server as responder").distinct()
    placed = produced.adding({"from_host": derived.address_of("requester"), "key": sends.KEY})
    inner = placed.join(behind, ["from_host", "responder"], "left semi", small=True)
    answered = "one.latency_us is not null and of.latency_us is not null"
    both = inner.join(
        _outer(produced, known),
        f"{_IS_INNER} and {answered}",
        names=_HOPS,
        select=("of.server as server", *_BOTH),
    )
    return _percentiles_of_hops(both.union(_behind_calls(placed, given)))


def _percentiles_of_hops(both: Relation) -> Relation:
    """Return RELAY_COLUMNS of sends that were seen on both sides."""
    each = both.select(
        *_FOUND,
        "explode(array("
        + ", ".join(f"named_struct('hop', '{hop}', 'us', {hop}_us)" for hop in _SIDES)
        + ")) as side",
    )
    times = with_bucket(each.select(*_FOUND, "side.hop as hop", "side.us as us"), "us")
    cells = times.grouped(
        [*_FOUND, "hop", "bucket"],
        {
            "values": "count(*)",
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


def _behind_calls(placed: Relation, given: ReportInput) -> Relation:
    """Return sends (with `key` and `from_host`) that a proxy made while a call of it waited."""
    calls = given.exchanges.where(_ANSWERED_CALL).select(
        f"{sends.KEY} as key", "responder as relay", "request_time", "response_time", "latency_us"
    )
    answered = placed.where("key is not null and latency_us is not null")
    return answered.join(calls, _IS_BEHIND, names=_HOPS, select=("one.responder as server", *_BOTH))


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
