"""Capture quality: whose missing parts count."""

from __future__ import annotations

from dissectors.decode.pipeline import Decode
from tests.analytics.reported import tables_of
from tests.expected import SAMPLES


def test_connections_of_grpc_clients_are_of_rocketmq() -> None:
    capture = str(SAMPLES / "grpc-calls-lost-5x.pcap")
    decode = Decode([capture])
    for _ in decode.records():
        pass
    (found,) = tables_of("quality", [capture], "quality_connections")["quality_connections"]
    assert (found["connections"], found["others"]) == (decode.stats.rocketmq_conversations, 0)
    assert found["retransmissions"] == 6
