"""The limits of what is held for all conversations: each is reached and said."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from dissectors.conversations.conversation_table import (
    MAX_CONVERSATIONS,
    MAX_HELD,
    SWEEP_BYTES,
    ConversationTable,
    ReleasedPdus,
)
from dissectors.decode.stages import MAX_FINDINGS, ExchangeStages
from dissectors.findings import Finding, FindingKind
from dissectors.remoting.framing.frame_decoder import KEEP_ALL, KEEP_MESSAGES
from dissectors.replication.progress import ReplicationFinder
from dissectors.tcp.capture import Packet
from dissectors.tcp.segment import Segment
from tests.traffic.commands import Command, frame, send, sent
from tests.traffic.network import packets
from tests.traffic.talk import BROKER, MICROSECOND, PSH, SECOND, START, SYN, End, Talk, Tcp, merged


def _client(number: int) -> End:
    return End(f"10.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}", 40000)


class Run:
    """Stages that are fed segments; counts what they give."""

    def __init__(self, keep: int = KEEP_ALL, chunk: int = 500) -> None:
        self.chunk = chunk
        self.stages = ExchangeStages(frozenset(), keep)
        self.number = 0
        self.findings: list[Finding] = []
        self.statuses: dict[str, int] = {}
        self.most_held = 0

    def feed(self, segments: list[Tcp]) -> Run:
        timed = packets(segments)
        for at in range(0, len(timed), self.chunk):
            part = timed[at : at + self.chunk]
            chunk = b"".join(data for _, data in part)
            found = []
            start = 0
            for ts, data in part:
                self.number += 1
                end = start + len(data)
                found.append(Packet(self.number, ts, 1, chunk, start, end, len(data)))
                start = end
            self.stages.receive(found)
            self._take()
        return self

    def finish(self) -> Run:
        self.stages.finish()
        self._take()
        return self

    def _take(self) -> None:
        for one in self.stages.take_exchanges():
            self.statuses[one.status] = self.statuses.get(one.status, 0) + 1
        self.findings += self.stages.take_findings()

    def count(self, kind: FindingKind) -> int:
        return sum(info.kind is kind for info in self.findings)


def _key(number: int) -> bytes:
    return (
        bytes((10, number >> 16, number >> 8 & 255, number & 255, 10, 0, 0, 1))
        + b"\x9c\x40\x2a\x9f"
    )


@pytest.mark.slow
def test_the_limit_of_conversations() -> None:
    """The stalest eighth is ended: those that go on speaking are kept."""
    findings: list[Finding] = []
    table = ConversationTable(frozenset(), KEEP_ALL, findings, 0, 1)
    given: list[ReleasedPdus] = []

    def packet(number: int, ts: int) -> None:
        segment = Segment(ts, ts, _key(number), ts << 32, 16, 0, b"data", 0, 4, 0)
        assert table.direction_of(segment, given) is not None

    packet(0, 1)
    for number in range(1, MAX_CONVERSATIONS):
        packet(number, number + 1)
        if number % 1000 == 0:
            packet(0, number + 1)
    assert given == []
    packet(MAX_CONVERSATIONS, MAX_CONVERSATIONS + 1)
    assert [one.conversation.number for one in given] == list(range(1, MAX_CONVERSATIONS // 8 + 1))
    assert all(one.ended for one in given)
    assert [info.kind for info in findings if info.kind is not FindingKind.NOT_ROCKETMQ].count(
        FindingKind.CONVERSATION_LIMIT
    ) == 1
    assert table.conversations == MAX_CONVERSATIONS + 1
    table.finish(given)
    assert len(given) == MAX_CONVERSATIONS + 1
    assert sum(table.not_decoded.values()) == MAX_CONVERSATIONS + 1


@pytest.mark.slow
def test_conversations_over_the_limit_give_out_what_they_have() -> None:
    run = Run(KEEP_MESSAGES)
    count = MAX_CONVERSATIONS + 10
    request, answer = send(1).frame, sent(1).frame
    for first in range(0, count, 1000):
        segments = []
        for number in range(first, min(first + 1000, count)):
            at = START + number * MICROSECOND * 10
            segments.append(Tcp(_client(number), BROKER, 1, 1, PSH | 16, request, at))
        run.feed(segments)
    assert run.count(FindingKind.CONVERSATION_LIMIT) == 1
    assert run.statuses == {"unanswered": MAX_CONVERSATIONS // 8}
    late = START + SECOND
    back = [Tcp(BROKER, _client(n), 1, 1, PSH | 16, answer, late) for n in (0, count - 1)]
    run.feed(back).finish()
    assert run.statuses == {"unanswered": count - 1, "answered": 1, "orphan": 1}


def _bodies(count: int, size: int, part: int) -> list[Tcp]:
    """So many conversations, each in the middle of a body of `size` bytes, in turns."""
    talks = [Talk(_client(n), step=MICROSECOND * count, mss=part) for n in range(count)]
    for number, talk in enumerate(talks):
        talk.now += number * MICROSECOND
        talk.open().say(0, send(1, bytes(size)).frame[:-1])
    return merged(*talks)


@pytest.mark.slow
def test_the_limit_of_held_bodies() -> None:
    """Bodies that are kept while they come: given up over the limit, the exchange is not."""
    segments = _bodies(12, 3 * 1024 * 1024, 60_000)
    run = Run(chunk=10).feed(segments).finish()
    assert run.statuses == {"unanswered": 12}
    assert run.count(FindingKind.REASSEMBLY_LIMIT) > 0
    none = Run(KEEP_MESSAGES, 10).feed(segments).finish()
    assert none.statuses == {"unanswered": 12}
    assert none.count(FindingKind.REASSEMBLY_LIMIT) == 0


@pytest.mark.slow
def test_the_limit_of_held_heads_and_searches() -> None:
    """Headers of megabytes, and what may become a frame, count as well."""
    head = frame(Command(1, 1, ext={"a": "x" * 3_000_000}).header)
    doubtful = bytes.fromhex("0000ffff0000fff07b") + bytes(65_000)
    for data, count in ((head, 12), (doubtful, 700)):
        talks = [Talk(_client(n), step=MICROSECOND * count, mss=60_000) for n in range(count)]
        for number, talk in enumerate(talks):
            talk.now += number * MICROSECOND
            talk.open().say(0, send(1).frame + data[:-1])
        run = Run(chunk=10).feed(merged(*talks)).finish()
        assert run.count(FindingKind.REASSEMBLY_LIMIT) > 0
        assert run.statuses == {"unanswered": count}


def test_the_limit_of_bytes_behind_holes() -> None:
    count = 20
    talks = [Talk(_client(n), step=MICROSECOND * count, mss=50_000) for n in range(count)]
    for number, talk in enumerate(talks):
        talk.now += number * MICROSECOND
        talk.open().say(0, send(1).frame).say(0, send(2, bytes(1_500_000)).frame)
    segments = [one for one in merged(*talks) if one.payload != send(1).frame]
    run = Run(KEEP_MESSAGES, 10).feed(segments).finish()
    assert run.count(FindingKind.REASSEMBLY_LIMIT) > 0
    assert run.count(FindingKind.GAP) == count
    assert run.statuses == {"unanswered": count}


@pytest.mark.slow
@pytest.mark.parametrize("keep", [KEEP_ALL, KEEP_MESSAGES])
def test_memory_is_flat(keep: int) -> None:
    """Whatever is held, memory stays within a small multiple of the limit."""
    segments = _bodies(40, 2 * 1024 * 1024, 30_000)
    assert sum(len(one.payload) for one in segments) > 2 * (MAX_HELD + SWEEP_BYTES)
    run = Run(keep, 3)
    tracemalloc.start()
    peak = 0
    for at in range(0, len(segments), 100):
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        run.feed(segments[at : at + 100])
        held, _ = tracemalloc.get_traced_memory()
        peak = max(peak, held, before)
    tracemalloc.stop()
    run.finish()
    assert peak < 1.5 * (MAX_HELD + SWEEP_BYTES)
    assert keep == KEEP_ALL or peak < MAX_HELD // 4


def test_the_limit_of_findings() -> None:
    stages = ExchangeStages(frozenset(), KEEP_ALL)
    for number in range(3):
        stages.findings += [
            Finding(FindingKind.GAP, "", number, number, 0, 0) for _ in range(MAX_FINDINGS // 2)
        ]
    taken = stages.take_findings()
    assert len(taken) == MAX_FINDINGS + 1
    assert (taken[-1].kind, taken[-1].detail) == (
        FindingKind.EXPERT_LIMIT,
        f"{MAX_FINDINGS // 2} more",
    )
    assert stages.take_findings() == []


@pytest.mark.slow
def test_a_scan_of_ports_is_held_in_bounds() -> None:
    """SYNs from everywhere: each is a conversation of nothing, the stalest go first."""
    run = Run(KEEP_MESSAGES)
    count = MAX_CONVERSATIONS + MAX_CONVERSATIONS // 4
    segments = [
        Tcp(_client(n), BROKER, n, 0, SYN, b"", START + n * MICROSECOND) for n in range(count)
    ]
    run.feed(segments).finish()
    assert run.stages.table.conversations == count
    assert run.stages.table.not_decoded == {"no payload": count}
    assert run.count(FindingKind.CONVERSATION_LIMIT) == 2


def test_a_connection_that_says_nothing_has_no_finder_of_replication() -> None:
    """It was three fifths of the cost of each SYN of a scan."""
    run = Run().feed([Tcp(_client(at), BROKER, 7, 0, SYN, b"", START) for at in range(300)])
    finders = [one for one in gc.get_objects() if isinstance(one, ReplicationFinder)]
    assert not finders
    run.feed([Tcp(_client(1), BROKER, 8, 1, PSH, b"\0\0\0\0\0\0\0\1", START)])
    assert any(isinstance(one, ReplicationFinder) for one in gc.get_objects())
