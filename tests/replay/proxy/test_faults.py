"""Faults of the sandbox's language on traffic between a client and a real server."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.rows.record import ExchangeRecord
from replay.proxy.faults import INJECTED, check_injections
from replay.proxy.recording import Recording, Tap
from replay.sandbox import (
    SandboxError,
    SandboxEvent,
    SandboxOptions,
    TopicSpec,
    injection_of_text,
    sandbox_thread,
)
from replay.sandbox.events import EventKind
from tests.replay.sandbox.talk import Reply, Talk, heartbeat, send_fields
from tests.rmqtool.command import rmqtool

from .proxied import ProxyThread, proxied

pytestmark = pytest.mark.slow
BOX = SandboxOptions(port=0, namesrv_port=0, topics=[TopicSpec("T", 2), TopicSpec("U", 2)])


class Run:
    """What a talk through a proxy with faults left behind."""

    def __init__(self) -> None:
        self.replies: list[Reply | None] = []
        self.seconds: list[float] = []
        self.rows: list[ExchangeRecord] = []
        self.events: list[SandboxEvent] = []
        self.stored = 0

    @property
    def codes(self) -> list[int | None]:
        return [None if reply is None else reply.code for reply in self.replies]

    @property
    def faults(self) -> list[str]:
        return [fact for row in self.rows for fact in row.facts if fact.startswith("fault=")]


def run(path: Path, *faults: str, topics: str = "T", timeout: float = 30.0, **options: Any) -> Run:
    """Send to each topic over one connection after another where one ends."""
    done = Run()
    recording = Recording([Tap("p", os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))])
    injections = [injection_of_text(fault) for fault in faults]
    with (
        sandbox_thread(BOX) as box,
        proxied(
            box.namesrv,
            wire=recording,
            injections=injections,
            on_event=done.events.append,
            **options,
        ) as proxy,
    ):
        with Talk(proxy.namesrv) as talk:
            assert talk.ask(105, {"topic": "T"}).code == 0
        for topic in topics:
            _send(proxy, topic, timeout, done)
        done.stored = sum(broker.state.messages_in for broker in box.sandbox.brokers.values())
    recording.finish()
    done.rows = [row for batch in Decode([str(path)]).records() for row in batch]
    return done


def _send(proxy: ProxyThread, topic: str, timeout: float, done: Run) -> None:
    begin = time.monotonic()
    with Talk(proxy.front_of("broker-a"), timeout) as talk:
        try:
            fields = send_fields(topic) | {"i": "KEYS\x01order-1\x02"}
            done.replies.append(talk.ask(310, fields, b"x"))
        except (OSError, EOFError):
            done.replies.append(None)
    done.seconds.append(time.monotonic() - begin)


def test_latency_is_added_and_marked(tmp_path: Path) -> None:
    done = run(tmp_path / "p", "latency=300ms topic=T", topics="TU")
    assert done.codes == [0, 0]
    assert done.seconds[0] >= 0.3
    assert done.seconds[1] < 0.3
    (marked,) = done.faults
    assert marked.startswith("fault=")
    assert "later" in marked
    slow = next(row for row in done.rows if row.facts and row.request_code == 310)
    assert (slow.latency_us or 0) >= 300_000
    assert [event.kind for event in done.events].count(EventKind.INJECTED) == 1


def test_commands_mark_what_was_injected(tmp_path: Path) -> None:
    path = tmp_path / "p.pcapng"
    run(path, "latency=300ms topic=T times=1", "error=14 topic=U", topics="TU")
    listed = rmqtool("decode", path).out
    assert listed.count("[FAULT_INJECTED]") == 2
    tree = rmqtool("decode", path, "-V").out
    assert "[FAULT_INJECTED, note] 300.0ms later: SEND_MESSAGE_V2 to T" in tree
    assert "; injected fault: 300.0ms later" in rmqtool("trace", path, "order-1").out
    summary = rmqtool("decode", path, "--summary").out
    assert re.search(r"note +FAULT_INJECTED +2 ", summary)
    found = [json.loads(line) for line in rmqtool("diagnose", path, "-T", "jsonl").out.splitlines()]
    causes = {row["rule"]: row["consequence_of"] for row in found if "rule" in row}
    assert set(causes) == {"fault-injected", "refused-otherwise"}
    assert causes["fault-injected"] is None
    assert set(causes.values()) == {None, "fault-injected"}


def test_errors_instead_of_the_work_and_after_it(tmp_path: Path) -> None:
    done = run(tmp_path / "p", "error=14 topic=T times=1", "error=10 stored=true topic=U")
    assert done.codes == [14]
    assert done.stored == 0
    reply = done.replies[0]
    assert reply is not None
    assert reply.remark == INJECTED
    after = run(tmp_path / "q", "error=10 stored=true topic=U", topics="UT")
    assert after.codes == [10, 0]
    assert after.stored == 2
    reply = after.replies[0]
    assert reply is not None
    assert reply.fields["queueOffset"] == "0"  # of the real server


@pytest.mark.parametrize(("fault", "stored"), [("drop", 0), ("drop stored=true", 1), ("half", 1)])
def test_connections_that_are_cut(tmp_path: Path, fault: str, stored: int) -> None:
    done = run(tmp_path / "p", f"{fault} times=1", topics="TT")
    assert done.codes == [None, 0]
    assert done.stored == stored + 1
    assert len(done.faults) == 1


@pytest.mark.parametrize(("fault", "stored"), [("silent", 0), ("silent stored=true", 1)])
def test_loss_in_one_direction(tmp_path: Path, fault: str, stored: int) -> None:
    done = run(tmp_path / "p", f"{fault} times=1", topics="TT", timeout=0.5)
    assert done.codes == [None, 0]
    assert done.stored == stored + 1
    (lost,) = [row for row in done.rows if row.facts and row.status == "unanswered"]
    assert any(fact.startswith("fault=silent") for fact in lost.facts)


def test_down_resets_new_connections(tmp_path: Path) -> None:
    done = run(tmp_path / "p", "down broker=broker-a until=1h")
    assert done.codes == [None]
    assert done.stored == 0


def test_freeze_ends_with_its_window(tmp_path: Path) -> None:
    done = run(tmp_path / "p", "freeze until=1s")
    assert done.codes == [0]
    assert done.stored == 1


def test_by_group_and_client(tmp_path: Path) -> None:
    assert run(tmp_path / "a", "error=14 group=PID_*").codes == [0]
    assert run(tmp_path / "b", f"error=14 group={send_fields('T')['a'][:3]}*").codes == [14]
    assert run(tmp_path / "c", "error=14 client=127.0.0.1").codes == [14]
    assert run(tmp_path / "d", "error=14 client=10.*").codes == [0]


def test_by_client_id(tmp_path: Path) -> None:
    """The heartbeat says it, and requests of the same connection after that."""
    injections = [injection_of_text("error=14 client=me@*")]
    with (
        sandbox_thread(BOX) as box,
        proxied(box.namesrv, injections=injections) as proxy,
    ):
        with Talk(proxy.namesrv) as talk:
            talk.ask(105, {"topic": "T"})
        with Talk(proxy.front_of("broker-a")) as talk:
            assert talk.ask(310, send_fields("T"), b"x").code == 0
            assert talk.ask(34, {}, heartbeat("me@1")).code == 0
            assert talk.ask(310, send_fields("T"), b"x").code == 14


def test_the_same_seed_gives_the_same_fate(tmp_path: Path) -> None:
    fates = [
        run(tmp_path / str(n), "error=14 p=0.5", topics="T" * 24, seed=seed).codes
        for n, seed in enumerate((5, 5, 6))
    ]
    assert fates[0] == fates[1]
    assert 0 in fates[0]
    assert 14 in fates[0]
    assert fates[0] != fates[2]


def test_a_proxy_cannot_remove_a_broker_from_routes() -> None:
    with pytest.raises(SandboxError, match="only the sandbox"):
        check_injections([injection_of_text("leave-route")])
