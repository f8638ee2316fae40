"""Replay to a real broker keeps its times."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench.generate import write_capture
from tests.bench.replay import lateness_of
from tests.cluster.artifacts import NEWEST_5
from tests.cluster.cluster import Cluster
from tests.cluster.producing import cluster_of
from tests.rmqtool.command import process

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with cluster_of(NEWEST_5, "127.77.14") as started:
        yield started


@pytest.mark.parametrize("rate", [100, 1000])
def test_the_pace_is_kept(cluster: Cluster, tmp_path: Path, rate: int) -> None:
    capture, journal, rule = tmp_path / "many.pcap", tmp_path / "run", tmp_path / "rule.toml"
    write_capture(capture, 30 * rate, 5, "json")
    topic = f"Pace{rate}"
    cluster.make_topic(topic, queues=8)
    rule.write_text(f'[[rule]]\ntopic = "{topic}"\n')
    target = ("-n", cluster.namesrv_text)
    # a broker that has just started takes half a second for its first messages
    assert process("send", "-t", topic, *target, "--count", "200", "-p", "warm", "-q").status == 0
    options = ("-o", journal, "-r", rule, "--rate", f"{rate}/s", "--duration", "6s", "-q")
    ended = process("replay", capture, *target, *options)
    assert ended.status == 0, ended
    late = lateness_of(journal)
    assert late.sends > 4 * rate
    assert late.kept, late
