"""What a slave and its master write, made from the layout tables, with what must be found in it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

SLAVE, MASTER = 0, 1
Said = tuple[int, bytes]
"""who writes, and what with one call"""


def stored(offset: int, body: bytes = b"x" * 20, topic: bytes = b"T") -> bytes:
    """A stored message V1 at a physical offset."""
    total = 91 + len(body) + len(topic)
    return (
        struct.pack(">iIiiiqqi", total, 0xDAA320A7, 0, 3, 0, 7, offset, 0)
        + struct.pack(">q4siq4si", 1_795_168_800_000, b"\n\0\0\5", 5, 1, b"\n\0\0\1", 10911)
        + struct.pack(">iqi", 0, 0, len(body))
        + body
        + struct.pack(">B", len(topic))
        + topic
        + struct.pack(">h", 0)
    )


def commit_log(start: int, count: int, size: int = 20) -> bytes:
    """Stored messages one behind the other, from a physical offset on."""
    log = b""
    for number in range(count):
        log += stored(start + len(log), bytes([97 + number % 26]) * (size + number % 7))
    return log


@dataclass
class Traffic:
    """One connection while it is being written, and what is true about it."""

    auto_switch: bool = False
    said: list[Said] = field(default_factory=list)
    transfers: list[tuple[int, int]] = field(default_factory=list)
    """offset and size"""
    reports: list[int] = field(default_factory=list)
    heartbeats: int = 0
    epoch: int = 3
    epoch_start: int = 0

    def handshake(self, entries: list[tuple[int, int]], largest: int, broker: int = 2) -> None:
        """5.1.1 and later."""
        self.said.append((SLAVE, struct.pack(">ihhq", 1, 1, 0, broker)))
        body = b"".join(struct.pack(">iq", *entry) for entry in entries)
        head = struct.pack(">iiqi", 1, len(body), largest, entries[-1][0])
        self.said.append((MASTER, head + body))

    def old_handshake(self, entries: list[tuple[int, int]], largest: int, slave: bytes) -> None:
        """5.0.0."""
        self.said.append((SLAVE, struct.pack(">ihhi50s", 1, 1, 0, len(slave), slave)))
        body = b"".join(struct.pack(">iq", *entry) for entry in entries)
        head = struct.pack(">iiqiqq", 1, len(body), largest, entries[-1][0], 0, 0)
        self.said.append((MASTER, head + body))

    def report(self, offset: int) -> None:
        head = struct.pack(">iq", 2, offset) if self.auto_switch else struct.pack(">q", offset)
        self.said.append((SLAVE, head))
        self.reports.append(offset)

    def transfer(self, offset: int, data: bytes, confirm: int = 0) -> None:
        """Header and data are two writes, as in RocketMQ."""
        if self.auto_switch:
            head = struct.pack(
                ">iiqiqq", 2, len(data), offset, self.epoch, self.epoch_start, confirm
            )
        else:
            head = struct.pack(">qi", offset, len(data))
        self.said.append((MASTER, head))
        if data:
            self.said.append((MASTER, data))
            self.transfers.append((offset, len(data)))
        else:
            self.heartbeats += 1


def replicated(
    auto_switch: bool, start: int, messages: int, batch: int, beats: tuple[int, ...] = ()
) -> Traffic:
    """A commit log from `start` on in transfers of at most `batch` bytes, each reported."""
    traffic = Traffic(auto_switch, epoch_start=min(start, 1))
    if auto_switch:
        traffic.handshake([(1, 0), (3, traffic.epoch_start)], start)
    log = commit_log(start, messages)
    traffic.report(start)
    for number, at in enumerate(range(0, len(log), batch)):
        part = log[at : at + batch]
        traffic.transfer(start + at, part, start + at)
        traffic.report(start + at + len(part))
        if number in beats:
            traffic.transfer(start + at + len(part), b"", start + at)
            traffic.report(start + at + len(part))
    return traffic
