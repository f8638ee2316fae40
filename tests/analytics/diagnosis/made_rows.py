"""Rows for the tests of rules: those of a sample, decoded once, and made ones with plain values."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.problem import Problem
from analytics.diagnosis.rule import DiagnosisRule
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.findings import Finding
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ANSWERED, ONEWAY, UNANSWERED, ExchangeRecord

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
START = 1_795_000_000_000_000_000
"""ns since the epoch: the time 0 of made rows"""
BROKER = "10.0.0.1:10911"
NAMESRV = "10.0.0.2:9876"
CLIENT = "10.0.0.9:40000"


class SampleRows(NamedTuple):
    """What a capture has."""

    exchanges: Sequence[ExchangeRecord]
    connections: Sequence[ConversationRecord]
    findings: Sequence[Finding]


@cache
def sample(name: str) -> SampleRows:
    """Return the rows of a sample."""
    decode = Decode([str(SAMPLES / name)], DecodeOptions(conversations=True))
    rows: list[ExchangeRecord] = []
    connections: list[ConversationRecord] = []
    findings: list[Finding] = []
    for batch in decode.records():
        rows.extend(batch)
        connections.extend(decode.take_conversations())
        findings.extend(decode.take_findings())
    connections.extend(decode.take_conversations())
    findings.extend(decode.take_findings())
    return SampleRows(rows, connections, findings)


def problems(
    rule: DiagnosisRule,
    rows: Sequence[ExchangeRecord],
    connections: Iterable[ConversationRecord] = (),
    findings: Iterable[Finding] = (),
) -> list[Problem]:
    """Return what one rule says of rows."""
    engine = Engine([rule])
    engine.add_exchanges(rows)
    engine.add_connections(connections)
    engine.add_findings(findings)
    return engine.diagnosis().problems


def problems_of_sample(rule: DiagnosisRule, name: str) -> list[Problem]:
    """Return what one rule says of a sample."""
    return problems(rule, *sample(name))


def same_in_any_order(
    rule: DiagnosisRule,
    rows: Sequence[ExchangeRecord],
    connections: Sequence[ConversationRecord] = (),
) -> bool:
    """Return whether a rule says the same, at least something, of rows in other orders."""
    expected = problems(rule, rows, connections)
    other, others = list(rows), list(connections)
    for seed in range(3):
        random.Random(seed).shuffle(other)
        random.Random(seed).shuffle(others)
        if problems(rule, other, others) != expected:
            return False
    return bool(expected)


def exchange(
    at_ms: float, code: int, answer: int | None = 0, latency_ms: float = 1, **values: Any
) -> ExchangeRecord:
    """Return an exchange at a time after START; `answer` None: there is none."""
    begin = START + int(at_ms * 1_000_000)
    end = None if answer is None else begin + int(latency_ms * 1_000_000)
    packet = int(at_ms * 10) + 1
    made: dict[str, Any] = {
        "capture": "made.pcap",
        "conversation": 0,
        "client_address": CLIENT,
        "server_address": BROKER,
        "status": UNANSWERED if answer is None else ANSWERED,
        "request_packet": packet,
        "response_packet": None if answer is None else packet + 1,
        "request_time": begin,
        "response_time": end,
        "latency_us": None if end is None else (end - begin) // 1000,
        "opaque": packet,
        "request_code": code,
        "request_name": _name(RequestCode, code),
        "response_code": answer,
        "response_name": None if answer is None else _name(ResponseCode, answer),
        "remark": None,
        "language": "JAVA",
        "version": 515,
        "version_name": "V5_3_2",
        "serialize_type": "JSON",
        "topic": None,
        "group": None,
        "queue_id": None,
        "broker_name": None,
        "unique_key": None,
        "keys": None,
        "tags": None,
        "body_bytes": 0,
        "request_bytes": 300,
        "response_bytes": None if answer is None else 200,
        "missing_bytes": 0,
        "message_count": None,
        "queue_offset": None,
        "offset_msg_id": None,
        "rtt_us": None,
        "end": "open" if answer is None else None,
        "findings": [],
    }
    return ExchangeRecord(**{**made, **values})


def connection(
    at_ms: float, lasted_ms: float = 0, number: int = 0, **values: Any
) -> ConversationRecord:
    """Return a connection that was opened at a time after START, and closed by its client."""
    begin = START + int(at_ms * 1_000_000)
    made: dict[str, Any] = {
        "capture": "made.pcap",
        "conversation": number,
        "client_address": CLIENT,
        "server_address": BROKER,
        "protocol": "ROCKETMQ",
        "start_time": begin,
        "end_time": begin + int(lasted_ms * 1_000_000),
        "start": "handshake",
        "end": "fin",
        "ended_by": "client",
        "rtt_us": 100,
        "syn_rtt_us": 50,
        "ack_rtt_us": 50,
        "syns": 1,
        "directions": "both",
        "client_packets": 10,
        "server_packets": 10,
        "client_bytes": 1000,
        "server_bytes": 1000,
        "client_retransmissions": 0,
        "server_retransmissions": 0,
        "client_zero_windows": 0,
        "server_zero_windows": 0,
        "gaps": 0,
        "gap_bytes": 0,
        "commands": 10,
    }
    return ConversationRecord(**{**made, **values})


def refused_connect(at_ms: float, number: int = 0, **values: Any) -> ConversationRecord:
    """Return a connect that was refused."""
    nothing = {"server_bytes": 0, "client_bytes": 0, "commands": 0, "rtt_us": None}
    how = {"protocol": "no payload", "start": "syn", "end": "refused", "ended_by": "server"}
    return connection(at_ms, 0.01, number, **{**nothing, **how, **values})


def oneway(at_ms: float, code: int, **values: Any) -> ExchangeRecord:
    """Return a one-way request."""
    return exchange(at_ms, code, None, **{"status": ONEWAY, "end": None, **values})


def _name(codes: Any, code: int) -> str:
    try:
        return str(codes(code).name)
    except ValueError:
        return str(code)
