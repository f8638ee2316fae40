"""A capture that several tests decode in different forms."""

from __future__ import annotations

from pathlib import Path

from tests.traffic.captures import pcap_of
from tests.traffic.commands import send, sent
from tests.traffic.decoded import decode, decode_bytes, multiset
from tests.traffic.talk import MILLISECOND, Talk

COUNT = 40


def sends_of(count: int = COUNT, size: int = 20) -> Talk:
    talk = Talk(mss=300, step=MILLISECOND).open()
    for number in range(count):
        talk.say(0, send(number, bytes(number * size)).frame, acked=True)
        talk.say(1, sent(number, number).frame, acked=True)
    return talk


SEGMENTS = sends_of().segments
MANY = pcap_of(sends_of(600, 0).segments)
WHOLE = decode_bytes(pcap_of(SEGMENTS))


def assert_same(sources: list[Path]) -> None:
    outcome = decode(sources)
    assert multiset(outcome.exchanges) == multiset(WHOLE.exchanges)
    assert outcome.findings == []


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
