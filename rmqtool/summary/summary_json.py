"""The summary as one JSON object: the same tables with all of their rows, in plain numbers."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from analytics.diagnosis.problem import as_json
from dissectors.decode.decoded_log import capture_entry
from dissectors.decode.totals import TOTALS, DecodeStats
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp.capture import packet_number
from dissectors.times import text_of_time

from ..ui.json_text import encoded_json
from .summary import OperationCount, Peer, Summary
from .summary_text import (
    NamedProxy,
    clients,
    conversations,
    ends_of,
    operations,
    proxied,
    responses,
    slowest,
)

if TYPE_CHECKING:
    from analytics.diagnosis.engine import Diagnosis
    from dissectors.findings import Finding
    from dissectors.replication.progress import Replication


def summary_json(summary: Summary, stats: DecodeStats, diagnosis: Diagnosis | None = None) -> bytes:
    """Return the object on one line."""
    shown = {
        "problems": [as_json(item) for item in diagnosis.problems] if diagnosis else None,
        "captures": [capture_entry(capture) for capture in stats.captures],
        **{name: getattr(stats, name) for name in TOTALS if name != "replications"},
        "exchanges": summary.exchanges,
        "statuses": summary.statuses,
        "first_time": _time(summary.first_time),
        "last_time": _time(summary.last_time),
        "operations": [
            {"request_name": name} | _operation(row) for name, row in operations(summary.operations)
        ],
        "responses": [
            {
                "response_code": row.code,
                "response_name": row.name,
                "failure": row.response.failed > 0,
                "count": row.response.count,
                "failed": row.response.failed,
                "requests": row.response.requests,
                "example": _example(row.response.example),
            }
            for row in responses(summary)
        ],
        "servers": [
            {"server_address": name} | _operation(row) for name, row in operations(summary.servers)
        ],
        "proxies": [_proxy(row) for row in proxied(summary)],
        "clients": [
            key._asdict() | {"connections": len(row.conversations)} | _peer(row)
            for key, row in clients(summary)
        ],
        "conversation_rows": [
            {
                "conversation": number,
                "client_address": ends_of(row)[0],
                "server_address": ends_of(row)[1],
            }
            | _peer(row)
            for number, row in conversations(summary)
        ],
        "replications": [_replication(item) for item in stats.replications],
        "slowest": [
            {"latency_us": record.latency_us} | (_example(record) or {})
            for record in slowest(summary)
        ],
        "findings": [
            {
                "kind": kind.name,
                "severity": kind.severity.name.lower(),
                "count": number,
                "meaning": kind.meaning,
                "first": _finding(summary.findings.get(kind)),
            }
            for kind, number in stats.finding_counts.items()
        ],
    }
    return encoded_json(shown) + b"\n"


def _time(ns: int | None) -> str | None:
    return None if ns is None else text_of_time(ns)


def _operation(row: OperationCount) -> dict[str, object]:
    return {
        "count": row.count,
        "failed": row.failed,
        "unanswered": row.unanswered,
        "oneway": row.oneway,
        "p50_us": row.latency.percentile(50),
        "p99_us": row.latency.percentile(99),
        "max_us": row.latency.maximum,
        "bytes": row.bytes,
    }


def _proxy(row: NamedProxy) -> dict[str, object]:
    parts = {"client": row.sends.outer, "broker": row.sends.inner, "proxy": row.sends.own}
    return {"proxy": row.proxy, "broker": row.broker, "sends": row.sends.outer.count} | {
        f"{part}_p{percent}_us": value.percentile(percent)
        for part, value in parts.items()
        for percent in (50, 99)
    }


def _peer(row: Peer) -> dict[str, object]:
    return {
        "exchanges": row.count,
        "failed": row.failed,
        "unanswered": row.unanswered,
        "bytes": row.bytes,
    }


_EXAMPLE = (
    *("capture", "request_packet", "response_packet", "request_name", "response_name", "topic"),
    *("client_address", "server_address", "remark"),
)
"""columns of an example"""
_POINTS = ("transferred", "reported")
"""fields of a replication that only message traces need"""


def _replication(replication: Replication) -> dict[str, object]:
    times = {
        "first_time": text_of_time(replication.first_time),
        "last_time": text_of_time(replication.last_time),
    }
    shown = asdict(replication) | times
    return {name: value for name, value in shown.items() if name not in _POINTS}


def _example(record: ExchangeRecord | None) -> dict[str, object] | None:
    return None if record is None else {name: getattr(record, name) for name in _EXAMPLE}


def _finding(info: Finding | None) -> dict[str, object] | None:
    if info is None:
        return None
    return {
        "packet": packet_number(info.packet) or None,
        "conversation": info.conversation if info.conversation >= 0 else None,
        "detail": info.detail,
    }
