"""Unreachable servers: the outages of `diagnosis.outages` as a table of the latency report.

The fold is that of the diagnosis, per host, so both report the same times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from dissectors.endpoint import host_of
from dissectors.remoting.broker_addresses import SEPARATOR
from dissectors.rows import conversation_record as tcp

from .. import derived
from ..inputs.rows import connections_in, exchanges_in
from ..report import ReportInput, ReportTable, table_columns
from ..schema import arrow_rows
from ..sends.broker_names import known_brokers
from ..sends.sends import NEVER_OPENED
from ..sends.unavailable import CLIENT, CONNECT_COUNTS, PRODUCER, STRANGER
from ..sql.relation import Relation

if TYPE_CHECKING:
    import pyarrow

    from ..diagnosis.context import Context
    from ..diagnosis.outages import Outage

OUTAGES = ReportTable(
    "latency_unavailable",
    "Unreachable servers",
    (
        "One row per outage of a broker, proxy, or NameServer. Exchange latencies do not include"
        " these waits."
    ),
    (
        *table_columns("""
            broker string: broker name if known, otherwise address
            server_address string: `address:port`
            first_time time: first lost connection or failed connection attempt
            last_time time: last lost connection or failed connection attempt
            back_time time: when it was first seen again; empty: never
            lasted_us int µs: time until it was seen again; if that was over an hour later or never,
              minimum outage
            lost int: active connections closed by the server
        """),
        *CONNECT_COUNTS,
        *table_columns("""
            producers int: number of producer addresses with failed connection attempts
            clients int: number of other client addresses
            strangers int: number of addresses that tried to connect but never sent a request to
              this server
        """),
    ),
    order=("first_time", "broker", "server_address"),
    brief=("broker", "first_time", "lasted_us", "connects", "producers", "clients", "strangers"),
)
_OF_OUTAGE: Final = ("broker", "first_time", "last_time", "back_time", "lasted_us")
_COUNTED: Final = ("lost", "refused", "no_response")
_PART: Final = (
    *(one for one in OUTAGES.columns if one.name in (*_OF_OUTAGE, *_COUNTED)),
    *table_columns("""
        address string: where the server is known
        server_address string: where it was asked
        client string
    """),
)
"""Part of an outage seen by one address."""
_SIGN: Final = f"({NEVER_OPENED} or (ended_by = '{tcp.SERVER}' and commands > 0))"
"""SQL: the connection may show an unavailable server."""


def outages(report_input: ReportInput, conversations: Relation, failed: Relation) -> Relation:
    """Return the rows of `OUTAGES`; `failed` are `unavailable.failed_connects`."""
    placed = conversations.where(f"start != '{tcp.MIDSTREAM}' or commands > 0").adding(
        {"host": derived.address_of("server_address")}
    )
    signs = report_input.kept.frame(placed.where(_SIGN).select_distinct("host"))
    if report_input.kept.is_empty(signs):  # the usual case
        return report_input.kept.empty(OUTAGES.columns)
    # loading the rules takes as long as a small table
    from ..diagnosis.outages import REGISTER

    named_address = f"substring_index(get(brokers, 0), '{SEPARATOR}', -1)"
    asked = report_input.exchanges.where("status = 'unanswered' and `end` in ('reset', 'closed')")
    # a broker that registers is there again; the request names its address
    registered = report_input.exchanges.where(f"request_code = {REGISTER} and size(brokers) > 0")
    rows = asked.adding({"host": derived.address_of("server_address")}).union(
        registered.adding({"host": derived.address_of(named_address)})
    )
    parts = report_input.kept.engine.by_groups(
        rows.join(signs, ["host"], "left semi", small=True),
        placed.join(signs, ["host"], "left semi", small=True),
        "host",
        _parts_of_hosts(_context(report_input, conversations)),
        _PART,
    )
    report_input.kept.noted(parts)
    # an address without a failed connect only lost connections: it was a client
    parts_by_kind = parts.adding({"who": f"'{CLIENT}'"})
    if not report_input.kept.is_empty(failed):
        known_clients = failed.select_distinct("server_address", "client", "who as known")
        met = parts.join(known_clients, ["server_address", "client"], "left", small=True)
        parts_by_kind = met.adding({"who": f"coalesce(known, '{CLIENT}')"})
    kinds = {"producers": PRODUCER, "clients": CLIENT, "strangers": STRANGER}
    summed = parts_by_kind.grouped(
        (*_OF_OUTAGE, "address"),
        {
            **{name: f"sum({name})" for name in _COUNTED},
            "connects": "sum(refused) + sum(no_response)",
            **{
                name: f"count(distinct if(who = '{kind}', client, null))"
                for name, kind in kinds.items()
            },
        },
    )
    return summed.renamed({"address": "server_address"})


def _context(report_input: ReportInput, conversations: Relation) -> Context:
    """Return the shared facts about servers, from the few relevant rows."""
    from ..consuming.known import CONNECTIONS_KNOWN_BY, KNOWN_BY
    from ..diagnosis.context import Context

    context = Context()
    engine = report_input.kept.engine
    routes = report_input.exchanges.where("size(brokers) > 0").select(*KNOWN_BY)
    roles = report_input.exchanges.select_distinct("server_address", "request_code", "request_name")
    for relation in (routes, roles):
        for batch in engine.batches(relation):
            for row in exchanges_in(batch):
                context.learn(row)
    context.broker_names = known_brokers(report_input)
    (seen,) = report_input.kept.rows(
        report_input.exchanges.grouped(
            (), {"last": "unix_micros(max(greatest(request_time, response_time)))"}
        )
    ).to_pylist()
    context.last_row_time = None if seen["last"] is None else seen["last"] * 1000
    for batch in engine.batches(conversations.where("gaps > 0").select(*CONNECTIONS_KNOWN_BY)):
        for connection in connections_in(batch):
            context.add_connection(connection)
    return context


def _parts_of_hosts(context: Context) -> Callable[[pyarrow.Table, pyarrow.Table], pyarrow.Table]:
    from ..diagnosis.outages import HostLosses

    def parts(rows: pyarrow.Table, connections: pyarrow.Table) -> pyarrow.Table:
        hosts = connections if connections.num_rows else rows
        fold = HostLosses(hosts.column("host")[0].as_py())
        for batch in connections.to_batches():
            for connection in connections_in(batch):
                fold.add_connection(connection)
        for batch in rows.to_batches():
            for row in exchanges_in(batch):
                fold.add_exchange(row)
        part_rows = [
            {"broker": context.broker(server.key), "address": server.key, **part}
            for server in fold.servers(context)
            if server.key in context.servers or context.broker(server.key) != server.key
            for outage in server.outages(context)
            for part in _parts_of(outage)
        ]
        return arrow_rows(part_rows, _PART)

    return parts


def _parts_of(outage: Outage) -> Iterator[dict[str, object]]:
    """Yield each address's part of an outage."""
    first, last = outage.span()
    seen: dict[tuple[str, str], list[int]] = {}
    for loss in outage.losses:
        seen.setdefault((loss.server, host_of(loss.client)), [0, 0, 0])[0] += 1
    for row in outage.failed:
        counts = seen.setdefault((row.server_address, host_of(row.client_address)), [0, 0, 0])
        counts[1 if row.end == tcp.REFUSED else 2] += 1
    for (server, client), (lost, refused, no_response) in seen.items():
        yield {
            "first_time": first // 1000,
            "last_time": outage.last // 1000,
            "back_time": None if outage.end is None else outage.end // 1000,
            "lasted_us": (last - first) // 1000,
            "server_address": server,
            "client": client,
            "lost": lost,
            "refused": refused,
            "no_response": no_response,
        }
