"""Failed connects: evidence of an outage even without a related send.

A producer whose only broker is down sends nothing: the capture has its refused connects and no
request. Only servers that speak RocketMQ or that a route names count.

RocketMQ: NettyRemotingClient.createChannel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dissectors.quantities import counted
from dissectors.remoting.broker_addresses import SEPARATOR
from dissectors.remoting.code_sets import SENDS

from .. import derived
from ..report import ReportInput, Row, TableColumn, sum_of, table_columns
from ..schema import SOURCE, arrow_rows
from ..sql.expressions import numbers, place_of
from ..sql.relation import Relation
from . import sends
from .attempt_table import failures_in
from .attempts import ConnectFailure
from .broker_names import broker_names

if TYPE_CHECKING:
    import pyarrow

    from ..kept import Kept

UNAVAILABLE = "failed connects"
"""The share of `ReportInput.kept` that these are."""
PRODUCER, CLIENT, STRANGER = "producer", "client", "stranger"
"""Kinds of clients: an address that sent messages to the server, one that sent other requests or
got the server in a route, one that never sent a request.
"""
MOST_NOTES = 5
"""Most notes about failed connects; the table lists all of them."""
GAP_US = 10_000_000
"""Minimum time between failed connects of two separate outages."""
BURST_US = 200_000
"""Maximum time between connects of a client that retries for one message."""
CONNECT_COUNTS = table_columns("""
    connects int: failed connection attempts
    refused int: connection attempts refused with RST
    no_response int: connection attempts without any response to the SYN
""")
CONNECT_COLUMNS: tuple[TableColumn, ...] = (
    *table_columns("""
        broker string: broker name if known, otherwise address
        server_address string: `address:port`
        client string: client address without port
        who string: `producer`: sent messages to the server; `client`: sent other requests or
          learned the server from a route; `stranger`: sent nothing (port probe, health check, or
          incomplete capture)
    """),
    *CONNECT_COUNTS,
    *table_columns("""
        silent int: connections without any request; if present, some failed attempts may come from
          a probe
        first_time time: first failed connection attempt
        last_time time: last failed connection attempt
        capture string: capture of the first occurrence
        conversation int: TCP connection number
    """),
)
"""One row per server and client address with failed connects."""


def failed_connects(report_input: ReportInput) -> Relation | None:
    """Return one row per failed connect, with the kind of client; None without connection data.

    The result has fewer columns if no connect failed.
    """
    if report_input.conversations is None:
        return None
    return report_input.kept.once(UNAVAILABLE, None, lambda: _failed_connects(report_input))


def _failed_connects(report_input: ReportInput) -> Relation:
    conversations = report_input.conversations
    assert conversations is not None
    failed = report_input.kept.frame(
        conversations.where(sends.NEVER_OPENED).select(
            "server_address",
            f"{derived.address_of('client_address')} as client",
            "`end` = 'refused' as was_refused",
            "start_time as begin",
            SOURCE,
            "capture",
            "conversation",
        ),
        UNAVAILABLE,
    )
    if report_input.kept.is_empty(failed):
        return failed  # the usual case: it saves all the queries below
    names = broker_names(report_input)
    requests = _asked(report_input, failed)
    spoken = requests.where("requests > 0").select("server_address").distinct()
    named = names.select("server_address", "broker")
    # A server counts if it got a request or if a route or request names it; others are none of
    # ours.
    known = spoken.join(named, ["server_address"], "full")
    # A connect looks the same from a client and from a probe: other requests of its host decide.
    # Connections without a request suggest that a probe runs there, too; the row has their number.
    silent = _silent(conversations, failed).adding(dict.fromkeys(_ASKED, "0L"))
    facts = requests.adding({"silent": "0L"}).union(silent)
    summed = facts.grouped(
        ("server_address", "client"), {name: f"sum({name})" for name in (*_ASKED, "silent")}
    )
    placed = failed.join(known, ["server_address"], small=True)
    with_counts = placed.join(summed, ["server_address", "client"], "left", small=True)
    result = with_counts.adding(
        {
            "broker": "coalesce(broker, server_address)",
            "who": f"case when sends > 0 then '{PRODUCER}'"
            f" when requests > 0 or told > 0 then '{CLIENT}' else '{STRANGER}' end",
        }
    )
    return report_input.kept.frame(result, UNAVAILABLE)


_ASKED = ("requests", "sends", "told")
"""Counted columns of an address's requests."""


def _asked(report_input: ReportInput, failed: Relation) -> Relation:
    """Return the requests of each address to the servers, and the routes it got that name them."""
    servers = failed.select("server_address").distinct()
    exchanges = report_input.exchanges.where(
        "client_address is not null and server_address is not null"
    )
    seen = exchanges.select(
        "server_address",
        f"{derived.address_of('client_address')} as client",
        "1L as requests",
        f"if(request_code in {numbers(SENDS)} or {sends.CALL}, 1L, 0L) as sends",
        "0L as told",
    )
    routes = exchanges.where("size(brokers) > 0 and request_name = 'GET_ROUTEINFO_BY_TOPIC'")
    named = routes.select(
        "explode(brokers) as named", f"{derived.address_of('client_address')} as client"
    ).select(
        f"substring_index(named, '{SEPARATOR}', -1) as server_address",
        "client",
        "0L as requests",
        "0L as sends",
        "1L as told",
    )
    chosen = seen.union(named).join(servers, ["server_address"], "left semi", small=True)
    return chosen.grouped(("server_address", "client"), {name: f"sum({name})" for name in _ASKED})


def _silent(conversations: Relation, failed: Relation) -> Relation:
    """Return the number of connections without requests between each client and server."""
    servers = failed.select("server_address").distinct()
    mute = conversations.where(f"start = 'handshake' and not {sends.NEVER_OPENED} and commands = 0")
    placed = mute.select("server_address", f"{derived.address_of('client_address')} as client")
    chosen = placed.join(servers, ["server_address"], "left semi", small=True)
    return chosen.grouped(("server_address", "client"), {"silent": "count(*)"})


_COUNTED = {
    "connects": "count(*)",
    "refused": "count_if(was_refused)",
    "no_response": "count_if(not was_refused)",
    "first_time": "min(begin)",
    "last_time": "max(begin)",
}


def connects(report_input: ReportInput, failed: Relation) -> Relation:
    """Return the rows of CONNECT_COLUMNS."""
    if report_input.kept.is_empty(failed):
        return report_input.kept.empty(CONNECT_COLUMNS)
    place = f"min({place_of('begin', 'capture', 'conversation')})"
    grouped = failed.grouped(
        ("broker", "server_address", "client", "who"),
        {**_COUNTED, "silent": "max(coalesce(silent, 0L))", "place": place},
    )
    return grouped.adding({"capture": "place.capture", "conversation": "place.conversation"})


def about_connects(rows: Sequence[Row]) -> list[str]:
    """Return the notes about failed connects."""
    notes = []
    for row in rows:
        # if all of them are attempts of known messages, those messages have notes
        if row["who"] == STRANGER or row["connects"] == row.get("attempts", 0):
            continue
        silent, connects = sum_of([row], "silent"), sum_of([row], "connects")
        probes = (
            f"; {counted(silent, 'connection')} from this client carried no request, so some"
            " attempts may come from a probe"
            if silent
            else ""
        )
        role = (
            "sends messages to the broker"
            if row["who"] == PRODUCER
            else "is one of the broker's clients"
        )
        notes.append(
            f"{row['broker']} could not be reached: {counted(connects, 'connection attempt')} of"
            f" {row['client']}, which {role}, failed{probes}. Messages for {row['broker']} that"
            " were never sent are not counted."
        )
    strangers = [row["connects"] for row in rows if row["who"] == STRANGER]
    if count := sum(number for number in strangers if isinstance(number, int)):
        notes = notes[: MOST_NOTES - 1]
        notes.append(
            f"{counted(count, 'failed connection attempt')} of addresses without a request: port"
            " probes, health checks, or clients without other captured traffic."
        )
    return notes[:MOST_NOTES]


class Gone(NamedTuple):
    """A period in which connects of one address to one broker failed; µs since the epoch."""

    broker: str
    begin: int
    end: int
    connects: int
    unseen_from: int | None
    """time of a failed message that shows only in these connects; None: no such message"""
    unseen_to: int | None


def gone_by_bucket(
    failures: Iterable[ConnectFailure], tied: Collection[tuple[str | None, int | None]]
) -> dict[int, list[Gone]]:
    """Return the outages relevant for attempts that begin in each time bucket (`BUCKET`).

    `failures` are of one client; `tied` are capture and conversation of those that are attempts.
    """
    spans: list[list[ConnectFailure]] = []
    for failure in sorted(failures, key=_by_server_and_time):
        before = spans[-1][-1] if spans else None
        if (
            before is None
            or before.server != failure.server
            or failure.begin - before.begin > GAP_US
        ):
            spans.append([])
        spans[-1].append(failure)
    outages: dict[int, list[Gone]] = {}
    for span in spans:
        # Only a send is retried at once; heartbeats and probes connect once.
        unseen = [  # the client tried again at once, so a message failed without a send
            pair
            for pair in pairwise(span)
            if pair[1].begin - pair[0].begin <= BURST_US
            and all((failure.capture, failure.conversation) not in tied for failure in pair)
        ]
        first, last = span[0].begin, span[-1].begin
        gone = Gone(
            span[0].broker,
            first,
            last,
            connects=len(span),
            unseen_from=unseen[0][0].begin if unseen else None,
            unseen_to=unseen[-1][1].begin if unseen else None,
        )
        # one bucket more on both sides: an attempt may begin in the one next to its outage
        for bucket in range(first // GAP_US - 1, last // GAP_US + 2):
            outages.setdefault(bucket, []).append(gone)
    return {bucket: sorted(group, key=_by_time)[:MOST_GONE] for bucket, group in outages.items()}


def _by_server_and_time(failure: ConnectFailure) -> tuple[str, int, str, int]:
    return failure.server, failure.begin, failure.capture or "", failure.conversation or 0


def _by_time(outage: Gone) -> tuple[int, str, int]:
    return outage.begin, outage.broker, outage.end


def gone_near(outages: Iterable[Iterable[Gone]], brokers: Collection[str]) -> list[Gone]:
    """Return the distinct outages of some brokers, by time."""
    matches = {outage for group in outages for outage in group if outage.broker in brokers}
    return sorted(matches, key=_by_time)


def unseen_in(gone: Iterable[Gone]) -> tuple[tuple[int, int], ...]:
    """Return the periods in which messages failed unseen."""
    spans = ((outage.unseen_from, outage.unseen_to) for outage in gone)
    return tuple((begin, end) for begin, end in spans if begin is not None and end is not None)


def gone_by_time(kept: Kept, failures: Relation, attempts: Relation) -> Relation:
    """Return (client, bucket, gone): `gone_by_bucket` of each client as JSON.

    `failures` are `sends.connect_failures`.
    """
    tied = attempts.where("inferred").select("client as host", "capture", "conversation")
    return kept.noted(kept.engine.by_groups(failures, tied, "host", _gone_of_host, _GONE_COLUMNS))


def _gone_of_host(failed: pyarrow.Table, tied: pyarrow.Table) -> pyarrow.Table:
    failures = failures_in(failed)
    places = {(row["capture"], row["conversation"]) for row in tied.to_pylist()}
    rows = [
        {"client": failures[0].host, "bucket": bucket, "gone": msgspec.json.encode(gone).decode()}
        for bucket, gone in gone_by_bucket(failures, places).items()
    ]
    return arrow_rows(rows, _GONE_COLUMNS)


_GONE_COLUMNS = table_columns("""
    client string
    bucket int
    gone string
""")
BUCKET = f"begin div {GAP_US}"
"""SQL: the bucket of `begin` in µs."""
MOST_GONE = 64
"""Most outages kept per bucket."""
