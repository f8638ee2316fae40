"""Connects that failed: evidence of an outage even where no send can be tied to them.

A producer that has only one broker, and that one gone, sends nothing: the capture has its refused
connects and no request. Rules: only servers count that RocketMQ was spoken with, or that a route
names; a connect is told from a probe's by what else its host asked there, for one packet looks like
the other. Where a host's own program also makes connections without a word, nobody can tell its
failed connects from the client's, and the row says so.
RocketMQ: NettyRemotingClient.createChannel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dissectors.foreign import integer_of
from dissectors.remoting.broker_addresses import SEPARATOR
from dissectors.remoting.code_sets import SENDS

from .. import derived
from ..report import ReportInput, Row, TableColumn
from ..schema import SOURCE
from ..sql.expressions import numbers, place_of
from ..sql.relation import Relation
from . import sends
from .broker_names import broker_names

UNAVAILABLE = "failed connects"
"""The share of `ReportInput.kept` that these are."""
PRODUCER, CLIENT, STRANGER = "producer", "client", "stranger"
"""Who connected: an address that sent messages there, one that asked for something else or was told
of the server by a route, one that never asked for anything."""
MOST_SAID = 5
"""Sentences about failed connects; the table has them all."""
GAP_US = 10_000_000
"""Failed connects so far apart are taken for two outages."""
BURST_US = 200_000
"""A client that cannot connect for a message tries again within such a time."""
_COUNTS = (
    TableColumn("connects", "int", "", "connects that failed"),
    TableColumn("refused", "int", "", "connects refused with RST"),
    TableColumn("no_answer", "int", "", "connects without any response to the SYN"),
)
_TIMES = (
    TableColumn("first_time", "time", "", "first failed connect"),
    TableColumn("last_time", "time", "", "the last"),
)
CONNECT_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("broker", "string", "", "broker name if known, otherwise address"),
    TableColumn("server", "string", "", "`address:port`"),
    TableColumn("client", "string", "", "client address without port"),
    TableColumn(
        "who",
        "string",
        "",
        (
            "`producer`: sent messages to the server; `client`: sent other requests or learned "
            "the server from a route; `stranger`: sent nothing (port probe, health check, or "
            "incomplete capture)"
        ),
    ),
    *_COUNTS,
    TableColumn(
        "silent",
        "int",
        "",
        "connections without any request; if present, some failed connects may come from a probe",
    ),
    *_TIMES,
    TableColumn("capture", "string", "", "capture of the first occurrence"),
    TableColumn("conversation", "int", "", "TCP connection number"),
)
"""One row per server and client address with connects that failed."""
OUTAGE_COLUMNS: tuple[TableColumn, ...] = (
    TableColumn("broker", "string", "", "broker name if known, otherwise address"),
    TableColumn("server", "string", "", "`address:port`"),
    *_TIMES,
    TableColumn(
        "lasted_us", "int", "µs", ("time from the first to the last failed connect: minimum outage")
    ),
    *_COUNTS,
    TableColumn("producers", "int", "", "number of producer addresses with failed connects"),
    TableColumn("clients", "int", "", "number of other client addresses"),
    TableColumn(
        "strangers", "int", "", ("number of addresses that never sent a request to this server")
    ),
)
"""One row per period in which connects to a server failed."""


def failed_connects(given: ReportInput) -> Relation | None:
    """Return one row per failed connect, with who it was of; None: the input has no connections."""
    if given.conversations is None:
        return None
    return given.kept.once(UNAVAILABLE, None, lambda: _failed_connects(given))


def _failed_connects(given: ReportInput) -> Relation:
    conversations = given.conversations
    assert conversations is not None
    failed = given.kept.frame(
        conversations.where(sends.NEVER_OPENED).select(
            "server",
            f"{derived.address_of('client')} as client",
            "`end` = 'refused' as was_refused",
            "start_time as begin",
            SOURCE,
            "capture",
            "conversation",
        ),
        UNAVAILABLE,
    )
    if given.kept.is_empty(failed):
        return given.kept.empty(_FAILED_COLUMNS, UNAVAILABLE)
    names = broker_names(given)
    asked = _asked(given, failed)
    spoken = asked.where("requests > 0").select("server").distinct()
    named = names.select("responder as server", "broker")
    known = spoken.join(named, ["server"], "full")
    silent = _silent(conversations, failed).adding(dict.fromkeys(_ASKED, "0L"))
    facts = asked.adding({"silent": "0L"}).union(silent)
    summed = facts.grouped(
        ("server", "client"), {name: f"sum({name})" for name in (*_ASKED, "silent")}
    )
    placed = failed.join(known, ["server"], small=True)
    told = placed.join(summed, ["server", "client"], "left", small=True)
    found = told.adding(
        {
            "broker": "coalesce(broker, server)",
            "who": f"case when sends > 0 then '{PRODUCER}'"
            f" when requests > 0 or told > 0 then '{CLIENT}' else '{STRANGER}' end",
        }
    )
    return given.kept.frame(found, UNAVAILABLE)


_ASKED = ("requests", "sends", "told")
"""What is counted of what an address asked."""
_FAILED_COLUMNS = (
    TableColumn("server", "string", "", ""),
    TableColumn("client", "string", "", ""),
    TableColumn("was_refused", "bool", "", ""),
    TableColumn("begin", "time", "", ""),
    TableColumn(SOURCE, "string", "", ""),
    TableColumn("capture", "string", "", ""),
    TableColumn("conversation", "int", "", ""),
    TableColumn("requests", "int", "", ""),
    TableColumn("sends", "int", "", ""),
    TableColumn("told", "int", "", ""),
    TableColumn("silent", "int", "", ""),
    TableColumn("broker", "string", "", ""),
    TableColumn("who", "string", "", ""),
)
"""What is known of a failed connect."""


def _asked(given: ReportInput, failed: Relation) -> Relation:
    """Return what each address asked the servers in question, and was told of them by routes."""
    servers = failed.select("server").distinct()
    exchanges = given.exchanges.where("requester is not null and responder is not null")
    seen = exchanges.select(
        "responder as server",
        f"{derived.address_of('requester')} as client",
        "1L as requests",
        f"if(request_code in {numbers(SENDS)} or {sends.CALL}, 1L, 0L) as sends",
        "0L as told",
    )
    routes = exchanges.where("size(brokers) > 0 and request_name = 'GET_ROUTEINFO_BY_TOPIC'")
    told = routes.select(
        "explode(brokers) as named", f"{derived.address_of('requester')} as client"
    ).select(
        f"substring_index(named, '{SEPARATOR}', -1) as server",
        "client",
        "0L as requests",
        "0L as sends",
        "1L as told",
    )
    chosen = seen.union(told).join(servers, ["server"], "left semi", small=True)
    return chosen.grouped(("server", "client"), {name: f"sum({name})" for name in _ASKED})


def _silent(conversations: Relation, failed: Relation) -> Relation:
    """Return how many connections without a word came about between the same two."""
    servers = failed.select("server").distinct()
    mute = conversations.where(f"start = 'handshake' and not {sends.NEVER_OPENED} and commands = 0")
    placed = mute.select("server", f"{derived.address_of('client')} as client")
    chosen = placed.join(servers, ["server"], "left semi", small=True)
    return chosen.grouped(("server", "client"), {"silent": "count(*)"})


_COUNTED = {
    "connects": "count(*)",
    "refused": "count_if(was_refused)",
    "no_answer": "count_if(not was_refused)",
    "first_time": "min(begin)",
    "last_time": "max(begin)",
}


def connects(given: ReportInput, failed: Relation) -> Relation:
    """Return CONNECT_COLUMNS."""
    if given.kept.is_empty(failed):
        return given.kept.empty(CONNECT_COLUMNS)
    place = f"min({place_of('begin', 'capture', 'conversation')})"
    found = failed.grouped(
        ("broker", "server", "client", "who"),
        {**_COUNTED, "silent": "max(coalesce(silent, 0L))", "place": place},
    )
    return found.adding({"capture": "place.capture", "conversation": "place.conversation"})


def outages(given: ReportInput, failed: Relation) -> Relation:
    """Return OUTAGE_COLUMNS: the failed connects to a server, those near in time together."""
    if given.kept.is_empty(failed):
        return given.kept.empty(OUTAGE_COLUMNS)
    by_time = "over (partition by server order by begin, capture, conversation)"
    gap = f"unix_micros(begin) - unix_micros(lag(begin) {by_time})"
    parted = failed.adding({"parted": f"coalesce({gap} > {GAP_US}, true)"})
    numbered = parted.adding({"number": f"count_if(parted) {by_time}"})
    kinds = {"producers": PRODUCER, "clients": CLIENT, "strangers": STRANGER}
    found = numbered.grouped(
        ("broker", "server", "number"),
        {
            **_COUNTED,
            **{
                name: f"count(distinct if(who = '{who}', client, null))"
                for name, who in kinds.items()
            },
        },
    )
    lasted = "unix_micros(last_time) - unix_micros(first_time)"
    return found.adding({"lasted_us": lasted})


def about_connects(rows: Sequence[Row]) -> list[str]:
    """Return what CONNECT_COLUMNS say that must not be overlooked."""
    said = []
    for row in rows:
        if row["who"] == STRANGER or row["connects"] == row.get("attempts", 0):
            continue
        perhaps = (
            f"; {row['silent']} other connects of it said nothing, so some may be a probe's"
            if row["silent"]
            else ""
        )
        what = "sends messages to it" if row["who"] == PRODUCER else "is one of its clients"
        said.append(
            f"{row['broker']} could not be reached: {row['connects']} connects of {row['client']},"
            f" which {what}, failed{perhaps}. What was meant for it then was never on the wire and"
            " is in no count."
        )
    strangers = [row["connects"] for row in rows if row["who"] == STRANGER]
    if count := sum(number for number in strangers if isinstance(number, int)):
        said = said[: MOST_SAID - 1]
        said.append(
            f"{count} connects failed of addresses that never asked for anything there: port"
            " probes, health checks, or clients of which no more was captured."
        )
    return said[:MOST_SAID]


class Gone(NamedTuple):
    """A time in which connects of one address to one broker failed; µs since the epoch."""

    broker: str
    begin: int
    end: int
    connects: int
    unseen_from: int | None
    """when a message failed of which only these connects were seen; None: there was none"""
    unseen_to: int | None


def gone_by_time(failed: Relation, attempts: Relation) -> Relation:
    """Return (client, bucket, gone): what an attempt that began in a bucket is told of outages.

    `gone` are `Gone` as text (`gone_in` reads it), `BUCKET` is the bucket of a time. A client tries
    again at once, so several connects to a broker in a row that no send is tied to are a message
    that failed unseen; heartbeats and probes try once.
    """
    number = (SOURCE, "conversation")
    tied = attempts.where("inferred").select(*number, "true as is_tied")
    theirs = failed.where(f"who != '{STRANGER}'").join(tied, number, "left", small=True)
    by_time = "over (partition by client, server order by begin, capture, conversation)"
    since = f"unix_micros(begin) - unix_micros(lag(begin) {by_time})"
    told = theirs.adding({"began": "unix_micros(begin)", "since": since, "free": "is_tied is null"})
    burst = f"free and lag(free) {by_time} and since <= {BURST_US}"
    marked = told.adding({"burst": burst, "parted": f"coalesce(since > {GAP_US}, true)"})
    numbered = marked.adding({"number": f"count_if(parted) {by_time}"})
    spans = numbered.grouped(
        ("client", "broker", "server", "number"),
        {
            "first": "min(began)",
            "last": "max(began)",
            "connects": "count(*)",
            "unseen_from": "min(if(burst, began - since, null))",
            "unseen_to": "max(if(burst, began, null))",
        },
    )
    unseen = ", ".join(
        f"coalesce(cast({name} as string), '')" for name in ("unseen_from", "unseen_to")
    )
    fields = f"broker, first, last, connects, {unseen}"
    placed = spans.select(
        "client",
        f"concat_ws('{_FIELD}', {fields}) as one",
        f"explode(sequence(first div {GAP_US} - 1, last div {GAP_US} + 1)) as bucket",
    )
    every = f"concat_ws('{_ROW}', slice(array_sort(collect_set(one)), 1, {MOST_GONE}))"
    return placed.grouped(("client", "bucket"), {"gone": every})


BUCKET = f"begin div {GAP_US}"
"""SQL: the bucket of `begin` in µs."""
MOST_GONE = 64
"""Brokers that an address cannot reach at once, as far as they are told."""
_FIELD, _ROW = "\x1f", "\x1e"


def gone_in(texts: Iterable[str | None]) -> list[Gone]:
    """Return what these texts of `gone_by_time` say, each once, by time."""
    found = set()
    for text in texts:
        for row in text.split("\x1e") if text else ():
            broker, *numbers = row.rsplit("\x1f", 5)
            begin, end, connects, first, last = map(integer_of, numbers)
            found.add(Gone(broker, begin or 0, end or 0, connects or 0, first, last))
    return sorted(found, key=lambda one: (one.begin, one.broker, one.end))
