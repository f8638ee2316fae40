"""The network's part of latencies: for the slowest exchanges, and by client and server.

It is the round trip between the capture point and the responding end, measured by the connection's
handshake; without a handshake it is unknown.
"""

from __future__ import annotations

from .. import derived
from ..cells import CellTable
from ..report import ReportInput, column_names
from ..schema import SOURCE
from ..sends.broker_names import with_names
from ..sql.expressions import ratio_of, texts, total_of
from ..sql.relation import Relation

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


def slowest(
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


def pairs(exchanges: Relation, conversations: Relation, names: Relation) -> Relation:
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
    known = conversations.where(f"protocol in {texts(_PROTOCOLS)}")
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
