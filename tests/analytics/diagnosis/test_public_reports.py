"""Incidents of public bug reports, recorded with real software: what the diagnosis must say."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.diagnosis.engine import Engine
from analytics.diagnosis.registry import rules
from dissectors.decode.pipeline import Decode, DecodeOptions

CASES = Path(__file__).resolve().parents[3].parent / "shared" / "cases" / "reports"
EXPECTED = {
    "01-last-offset-ignored": (
        "history-consumed",
        "new group brand_new_group consumes the history of RepTopic, 60 messages in 4 queues,"
        " although it asks for CONSUME_FROM_LAST_OFFSET",
    ),
    "04-trace-no-topic": (
        "trace-lost",
        "message traces to RMQ_SYS_TRACE_TOPIC are lost: the topic has no route (31 route requests"
        " refused); messages are not affected",
    ),
    "05-grpc-nodeport": (
        "wrong-proxy-address",
        "the proxy's route names 127.99.7.99:8081, but clients reach the proxy at"
        " 127.99.7.99:17881: 1 connection attempt to it failed, none succeeded",
    ),
    "07-pop-clock": ("pop-clock-skew", "124 of 124 pops from "),
    "09-broadcast-missed": (
        "broadcast-gap",
        "broadcasting group bc_cg skipped 24 messages of RepTopic: member 127.0.0.1@one stopped at"
        " 14:06:03 UTC, and 127.0.0.1@two started at 14:06:13 behind them",
    ),
    "11-two-strategies": ("queue-shared", "2 queues of "),
    "13-suspended": ("consumer-not-pulling", "consumer "),
    "17-timer-ignored": (
        "delay-ignored",
        "6 messages of RepTopic on broker-a asked for a delay of 10 s and were delivered after 2"
        " ms to 24 ms: the broker of 4.9.7 ignored the delay",
    ),
    "18-timer-late": (
        "delivered-late",
        "2 messages of RepTopic on broker-a asked for a delay of 5 s and were delivered after"
        " 32.3 s to 32.5 s",
    ),
    "19-offsets-lost": (
        "offsets-lost",
        "broker-a lost offsets of group cg_offsets in 4 queues of RepTopic: offset 20 became 0; up"
        " to 80 messages redelivered",
    ),
    "21-check-at-other": (
        "check-at-other-producer",
        "4 half messages of rep_tx to TxTopic were sent by 127.0.0.1@tx4179408392266 and rolled"
        " back by 127.0.0.1@tx4180062816251, which the broker asked instead",
    ),
    "25-answer-too-long": (
        "response-unreadable",
        "127.0.0.1@c2158845757180 of group big_cg closes its connection to broker-a when the"
        " response to its pull of queue 0 of RepTopic arrives (20,393 bytes), and pulls offset 0"
        " again",
    ),
    "28-hostname": (
        "wrong-broker-address",
        "the route names broker-a by a host name, rocketmq-001:10911, and no client that"
        " received this route connected to a broker",
    ),
    "29-broker-moved": (
        "broker-gone",
        "broker-a (127.99.7.11:10911) was gone from 14:01:12 to 14:01:29 UTC (16.9 s), then came"
        " back at 127.99.7.31:10911",
    ),
    "33-python-push-silent": (
        "grpc-consumer-stuck",
        "push consumer vm@4465@0@dn56k5dkzxhs of group py_push_cg registered its settings at"
        " 13:34:59 UTC and sent no Heartbeat, QueryAssignment, or ReceiveMessage since (43.7 s)",
    ),
    "48-mtu-black-hole": (
        "packets-unacknowledged",
        "full segments (1,460 bytes) from clients do not reach broker-a (10.1.0.11:10911), shorter"
        " ones do: the path MTU is smaller",
    ),
    "50-checks-in-turn": ("check-back-loop", "the broker checked back 8 times for half message"),
}
"""case -> rule and beginning of its title"""


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_said_of_a_public_report(name: str) -> None:
    capture = CASES / f"{name}.pcap"
    if not capture.exists():
        pytest.skip("the recorded incidents of public reports are not here (../shared)")
    engine = Engine(rules())
    decode = Decode([str(capture)], DecodeOptions(conversations=True))
    for batch in decode.records():
        engine.add_exchanges(batch)
        engine.add_connections(decode.take_conversations())
        engine.add_findings(decode.take_findings())
    engine.add_connections(decode.take_conversations())
    engine.add_findings(decode.take_findings())
    rule, title = EXPECTED[name]
    titles = [one.title for one in engine.diagnosis().problems if one.rule == rule]
    assert any(one.startswith(title) for one in titles), titles
