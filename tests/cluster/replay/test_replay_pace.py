"""A replay keeps its times: never early, and exactly where the machine has nothing else to do.

`make bench` sets RMQTOOL_EXACT_PACE, runs these tests alone, and holds them to the floors. Beside
other tests lateness would measure those: there no send may come before its time.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

import pytest

from bench.captures.generate import write_capture
from bench.replay import MEDIAN_US, Lateness, lateness_of, sandbox
from tests.cluster.servers.cluster import Cluster
from tests.rmqtool.command import process

pytestmark = pytest.mark.cluster
EXACT = os.environ.get("RMQTOOL_EXACT_PACE") == "1"
SECONDS = 6
"""how long sends are paced"""


def _replayed(folder: Path, rate: int, *options: str | Path) -> Lateness:
    capture, journal = folder / "many.pcap", folder / "run"
    write_capture(capture, 30 * rate, 5, "json")
    paced = ("--rate", f"{rate}/s", "--duration", f"{SECONDS}s", "-o", journal, "-q")
    begun = monotonic()
    ended = process("replay", capture, *paced, *options)
    took = monotonic() - begun
    assert ended.status == 0, ended
    late = lateness_of(journal)
    assert (late.sends - 1) / rate <= min(SECONDS, took), "sends came before their times"
    if EXACT:
        assert late.sends > 4 * rate
    return late


@pytest.mark.parametrize("rate", [100, 1000] if EXACT else [100, 300])
def test_the_pace_is_kept(tmp_path: Path, rate: int) -> None:
    """To a sandbox in a process of its own, which answers as soon as it is asked."""
    with sandbox() as namesrv:
        late = _replayed(tmp_path, rate, "-n", namesrv)
    assert late.kept or not EXACT, late


def test_the_pace_is_kept_at_the_median_by_a_real_broker(rocketmq: Cluster, tmp_path: Path) -> None:
    """At p99 it is the broker that is measured: what must follow a slow answer waits for it."""
    topic, rule = "Pace", tmp_path / "rule.toml"
    rocketmq.make_topic(topic, queues=8)
    rule.write_text(f'[[rule]]\ntopic = "{topic}"\n')
    target = ("-n", rocketmq.namesrv_text)
    # a broker that has just started takes half a second for its first messages
    assert (
        process("send", "-t", topic, *target, "--count", "1000", "--body", "warm", "-q").status == 0
    )
    late = _replayed(tmp_path, 1000 if EXACT else 200, *target, "--rewrite", rule)
    assert late.p50 <= MEDIAN_US or not EXACT, late
