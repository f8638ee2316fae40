"""Replay to real brokers when things go wrong: a broker and the tool itself are killed."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import pytest

from bench.captures.generate import write_capture
from replay.run.journal import read_steps
from replay.run.journal_rows import Begin, OutcomeEntry, Result
from tests.cluster.producer.producing import Read, read_by_java, stored_in
from tests.cluster.servers import faults
from tests.cluster.servers.cluster import Cluster
from tests.replay.captured_sends import captured_sends
from tests.rmqtool.command import PROGRAM, ROOT, rmqtool

pytestmark = pytest.mark.cluster


def _outcomes(journal: Path) -> list[OutcomeEntry]:
    return [row for row in read_steps(journal) if isinstance(row, OutcomeEntry)]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture with some thousand messages."""
    path = tmp_path_factory.mktemp("many") / "many.pcap"
    write_capture(path, 3000, 5, "json")
    return path


def test_a_broker_killed_and_the_tool_killed_and_resumed(
    rocketmq: Cluster, many: Path, tmp_path: Path
) -> None:
    topic = "Killed"
    rocketmq.make_topic(topic, queues=8)
    rule = tmp_path / "rule.toml"
    rule.write_text(f'[[rule]]\ntopic = "{topic}"\n')
    journal, broker = tmp_path / "run", rocketmq.brokers[1]
    command = [*PROGRAM, "replay", str(many), "-n", rocketmq.namesrv_text, "-o", str(journal)]
    command += ["--rewrite", str(rule), "--rate", "400/s", "--mode", "sync", "--timeout", "15s"]
    running = subprocess.Popen([*command, "-q"], cwd=ROOT, stdout=subprocess.DEVNULL)
    _wait_until(lambda: journal.exists() and len(_outcomes(journal)) > 150)
    faults.kill(broker)
    _wait_until(lambda: len(_outcomes(journal)) > 350)
    running.send_signal(signal.SIGKILL)
    running.wait()
    faults.restart(rocketmq, broker)
    before = list(read_steps(journal))
    begun = {row.step for row in before if isinstance(row, Begin)}
    known = {row.step for row in before if isinstance(row, OutcomeEntry)}

    arguments = ("--resume", journal, "-n", rocketmq.namesrv_text, "--top-speed", "-q")
    ended = rmqtool("replay", *arguments, "--timeout", "15s")
    assert ended.status == 0, ended
    outcomes = {row.step: row for row in _outcomes(journal)}
    assert {row.result for row in outcomes.values()} == {Result.stored}
    keys = {key for row in outcomes.values() for key in row.unique_keys}
    assert keys == captured_sends(many).keys()
    again = begun - known
    assert {step for step in again if not outcomes[step].maybe_twice} == set()

    copies = Counter(one.msg_id for one in _read_all(rocketmq, topic, len(keys)))
    assert copies.keys() == keys, "messages are lost"
    named = {key for row in outcomes.values() if row.maybe_twice for key in row.unique_keys}
    assert {key for key, number in copies.items() if number > 1} <= named


def _read_all(cluster: Cluster, topic: str, least: int) -> list[Read]:
    """All messages of a topic, as many as there are."""
    total = stored_in(cluster, topic, 8)
    assert total >= least
    return read_by_java(cluster, topic, total, wait_ms=60_000)


def _wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    end = monotonic() + seconds
    while not holds():
        assert monotonic() < end
        sleep(0.1)
