"""The network's part of the latencies: of the slowest exchanges, and by client and server.

Rules: the network's part is the round trip between the place of the capture and the end that
answered, as the connection's handshake showed it; without a handshake it is unknown.
"""

from __future__ import annotations

from .. import derived
from ..report import ReportInput
from ..schema import SOURCE
from ..sends.broker_names import with_names
from ..sql.expressions import ratio_of, texts, total_of
from ..sql.relation import Relation

_PROTOCOLS = ("ROCKETMQ", "unknown", "no payload", "")
_NEAR = "if(requester = client, syn_rtt_us, ack_rtt_us)"
"""SQL: round trip between the place of the capture and the end that answered."""
_FAR = "if(requester = client, ack_rtt_us, syn_rtt_us)"
"""SQL: round trip between the end that asked and the place of the capture."""
_REPEATED = "array_contains(expert, 'RETRANSMISSION')"


def slowest(
    given: ReportInput, names: Relation, count: int, least_us: int | None = None
) -> Relation:
    """Return the exchanges that took longest, with the network's part; long polls left out.

    None of them took less than `least_us`, if that is known.
    """
    slow = "latency_us is not null" if least_us is None else f"latency_us >= {least_us}"
    calls = given.exchanges.where(f"{slow} and status = 'answered' and not {derived.WAITS}")
    order = ["request_time", "capture", "request_packet", "response_packet", "unique_key"]
    chosen = calls.ordered(("latency_us desc", *order), count)
    if given.conversations is None:
        known = chosen.adding({"network_us": "cast(null as bigint)"})
    else:
        ends = given.conversations.select(
            SOURCE, "conversation", "client", "syn_rtt_us", "ack_rtt_us"
        )
        joined = chosen.join(ends, [SOURCE, "conversation"], "left")
        known = joined.adding({"network_us": _NEAR})
    return with_names(known, names).adding(
        {
            "time": "request_time",
            "operation": derived.OPERATION,
            "answer": "response_name",
            "broker_us": "if(network_us is null, null, greatest(latency_us - network_us, 0L))",
            "retransmitted": _REPEATED,
        },
    )


def pairs(exchanges: Relation, conversations: Relation, names: Relation) -> Relation:
    """Return one row per client and server; connections without exchanges count as well."""
    answered = exchanges.where(f"latency_us is not null and not {derived.WAITS}")
    carried = answered.grouped(
        [SOURCE, "conversation", "requester"],
        {
            "carried": "count(*)",
            "total_us": total_of("latency_us"),
            "repeated": f"count_if({_REPEATED})",
            "repeated_us": total_of(f"if({_REPEATED}, latency_us, 0L)"),
        },
    )
    known = conversations.where(f"protocol in {texts(_PROTOCOLS)}")
    sides = known.join(carried, [SOURCE, "conversation"], "left").adding(
        {
            "near": _NEAR,
            "far": _FAR,
            # a connection on which both ends ask comes twice; its own facts count once
            "once": f"row_number() over (partition by {SOURCE}, conversation order by requester)"
            " = 1",
            "_client": derived.address_of("client"),
        },
    )
    return _per_pair(sides.adding({"client": "_client"}), names)


def _per_pair(sides: Relation, names: Relation) -> Relation:
    """Return one row per pair of client address and server."""
    found = sides.grouped(
        ["client", "server"],
        {
            "connections": "count_if(once)",
            "refused": "count_if(once and `end` = 'refused')",
            "unreachable": "count_if(once and `end` = 'no_answer')",
            "reset": "count_if(once and `end` = 'reset')",
            "exchanges": "coalesce(sum(carried), 0L)",
            "mean_us": ratio_of("sum(total_us)", "sum(carried)"),
            "_known": "sum(if(near is null, 0L, carried))",
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
    return with_names(found.adding({"responder": "server"}), names).adding(
        {
            "network_us": ratio_of("_part", "_known"),
            "network_share": ratio_of("_part", "_known_us"),
            "known_share": "try_divide(coalesce(_known, 0L), exchanges)",
        },
    )
