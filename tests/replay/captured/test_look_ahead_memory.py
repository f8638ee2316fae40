"""What is remembered of answers that did not come: bounded in number and in bytes.

Memory is that of Python's objects (`tracemalloc`), so it does not depend on the machine.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest

from dissectors.budget import Budget
from dissectors.conversations.conversation import Conversation
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.tcp.source import BytesSource
from replay.captured import look_ahead, relay_hops
from replay.captured.captured_send import CapturedSend, Seen
from replay.captured.look_ahead import LookAhead
from replay.captured.source import CapturedSource
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send
from tests.traffic.talk import START, End, Talk

from ..replayed import seen

LIMIT = 1 << 20


def held_after(requests: Iterator[Seen], budget: Budget | None = None) -> int:
    """Bytes that are held when all requests were seen, and their messages taken."""
    ahead = LookAhead(budget=budget)
    tracemalloc.start()
    for request in requests:
        ahead.request(request)
        for one in ahead.take():
            if isinstance(one, CapturedSend):
                one.release()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_WAITING", "MAX_KEYS", "MOST_OPEN"):
        monkeypatch.setattr(look_ahead, name, 100)
    monkeypatch.setattr(look_ahead, "MAX_WAITING_BYTES", LIMIT)
    monkeypatch.setattr(relay_hops, "MAX_KEYS", 100)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("apart", [1, 7, 10_000])
def test_connections_with_an_unanswered_send_are_forgotten(apart: int) -> None:
    def requests(count: int) -> Iterator[Seen]:
        for n in range(count):
            yield seen(n, key=f"K{n}", opaque=n, conversation=n % apart)

    budget = Budget()
    assert held_after(requests(4000), budget) < 1.2 * held_after(requests(2000)) + 65_536
    said = "\n".join(budget.said())
    assert "no more than 100 requests without response: " in said
    assert " continued without, first in packet " in said


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("keys", [1, 400])
@pytest.mark.parametrize("where", ["properties", "remark", "language"])
def test_long_texts_are_let_go_with_the_message(where: str, keys: int) -> None:
    """Each is a message of its own, or another attempt of one message."""

    def requests() -> Iterator[Seen]:
        for n in range(400):
            text = f"{n}" + "x" * 30_000
            properties = {"a": text} if where == "properties" else {}
            request = seen(n, key=f"K{n % keys}", opaque=n, properties=properties)
            if where == "remark":
                request.command.remark = text
            elif where == "language":
                request.command.language = text
            request.header_length = 30_300
            yield request

    assert held_after(requests()) < 3 * LIMIT


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("keys", [1, 10_000])
def test_whole_requests_without_an_answer_are_let_go(keys: int) -> None:
    """Each is a message of its own, or another attempt of one message."""
    size, count = 50_000, 200

    def requests() -> Iterator[Seen]:
        for n in range(count):
            one = replace(send(n % keys, bytes(size)), opaque=n)
            capture = pcap_of(Talk(mss=60_000).open().say(0, one.frame).segments)
            pdus = [seen.pdu for batch in _commands(capture) for seen in batch]
            request = seen(n, key=f"K{n % keys}", opaque=n, body=pdus[0].body)
            request.pdu = pdus[0]
            yield request

    assert held_after(requests()) < 3 * LIMIT < count * size // 3


def _conversations() -> int:
    gc.collect()
    return sum(isinstance(one, Conversation) for one in gc.get_objects())


def _commands(capture: bytes) -> Iterator[list[CommandSeen]]:
    return Decode([BytesSource("a.pcap", capture)]).commands()


def test_sends_of_many_connections_that_wait_are_bounded_by_their_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each send that waits keeps its connection, with decoders, in memory; no other one does."""
    monkeypatch.setattr(look_ahead, "MAX_WAITING_BYTES", LIMIT)
    segments = []
    for n in range(400):
        talk = Talk(client=End(f"10.1.{n >> 8}.{n & 255}", 1024), at=START + n * 10_000_000)
        one = replace(send(n), ext={**send(n).ext, "i": f"UNIQ_KEY\x01K{n}\x02"})
        segments += talk.open().say(0, one.frame).reset(0).segments
    before = _conversations()
    source = CapturedSource([BytesSource("a.pcap", pcap_of(segments, "raw"))])
    waiting, taken = [], 0
    for batch in source.batches():
        taken += len(batch)
        waiting.append(source.commands - taken)
        for one_send in batch:
            if isinstance(one_send, CapturedSend):
                one_send.release()
    assert 0 < max(waiting) < LIMIT // look_ahead.CONNECTION_BYTES
    assert taken == 400
    assert _conversations() <= before
