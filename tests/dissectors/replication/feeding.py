"""Replication that is made: what is given to the finder, and the relation of loss."""

from __future__ import annotations

from dissectors.findings import Finding
from dissectors.replication.progress import (
    AUTO_SWITCH,
    CLASSIC,
    Reading,
    Replication,
    ReplicationFinder,
)
from tests.dissectors.replication_traffic import (
    SLAVE,
    Said,
    Traffic,
)

MICROSECOND = 1000


class Feed:
    """Both directions of a conversation, given to the finder and then to its reading."""

    def __init__(self, started: bool = True, swapped: bool = False) -> None:
        self.finder = ReplicationFinder(7)
        self.reading: Reading | None = None
        self.findings: list[Finding] = []
        self.offsets = [0, 0]
        self.packet = 0
        self._started = started
        self._swapped = swapped

    def data(self, side: int, data: bytes) -> None:
        self.packet += 1
        first = (side == SLAVE) != self._swapped
        where = (first, data, self.offsets[side], self.packet, self.packet * MICROSECOND)
        self.offsets[side] += len(data)
        if self.reading is None:
            self.reading = self.finder.receive(*where, self._started)
            if self.reading is not None:
                self.reading.findings = self.findings
        else:
            self.reading.receive(*where, False)

    def gap(self, side: int, length: int) -> None:
        target = self.reading or self.finder
        target.receive_gap((side == SLAVE) != self._swapped, length)
        self.offsets[side] += length

    def found(self) -> Replication | None:
        if self.reading is None:
            return None
        ends = ("m:1", "s:1") if self._swapped else ("s:1", "m:1")
        return self.reading.value(*ends)


def fed(said: list[Said], size: int = 1 << 30, *, swapped: bool = False) -> Feed:
    feed = Feed(swapped=swapped)
    for side, data in said:
        for at in range(0, len(data), size):
            feed.data(side, data[at : at + size])
    return feed


def assert_less(found: Replication, traffic: Traffic) -> None:
    """The relation of loss."""
    sizes = [size for _, size in traffic.transfers]
    assert found.kind == (AUTO_SWITCH if traffic.auto_switch else CLASSIC)
    assert found.transfers <= len(sizes)
    assert found.largest_transfer in {0, *sizes}
    assert found.heartbeats <= traffic.heartbeats
    assert found.reports <= len(traffic.reports)
    assert found.acknowledged in {None, *traffic.reports}
    assert found.bytes <= sum(sizes)
    if found.first_offset is not None:
        assert found.last_offset is not None
        assert found.first_offset in {offset for offset, _ in traffic.transfers}
        assert found.last_offset <= sum(traffic.transfers[-1])
        assert found.bytes + found.missing == found.last_offset - found.first_offset
    else:
        assert (found.bytes, found.transfers) == (0, 0)
