"""A stream of frames, decoded piece by piece."""

from __future__ import annotations

from dataclasses import dataclass, field

from dissectors.findings import Finding, FindingKind
from dissectors.remoting.framing.frame import Frame
from dissectors.remoting.framing.frame_decoder import KEEP_ALL, FrameDecoder
from tests.traffic.commands import Command, route_query, send, sent

COMMANDS = [
    send(1),
    sent(1, 7),
    route_query(2),
    Command(0, 2, 1, body=b'{"brokerDatas":[]}' * 9),
    send(3, b"", binary=True),
    Command(17, 3, 1, remark="No topic route info", binary=True),
    send(4, bytes(range(256)) * 20),
    Command(34, 5, body=b'{"clientID":"10.0.0.5@1"}'),
]
STREAM = b"".join(command.frame for command in COMMANDS)
STARTS = [0]
for _command in COMMANDS:
    STARTS.append(STARTS[-1] + len(_command.frame))


@dataclass
class Decoding:
    """A decoder that is fed a stream; `at` is where it is."""

    synchronized: bool = True
    keep: int = KEEP_ALL
    started: bool = False
    findings: list[Finding] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    at: int = 0
    packet: int = 100

    def __post_init__(self) -> None:
        self.decoder = FrameDecoder(9, self.findings, self.keep, self.synchronized)
        self.decoder.search.started = self.started

    def feed(self, data: bytes) -> Decoding:
        """One piece, brought by a packet of its own, in the middle of other bytes."""
        self.packet += 1
        whole = b"\x11" * 5 + data + b"\x22" * 5
        self.decoder.receive(
            whole, 5, 5 + len(data), self.at, self.packet, self.packet * 10, self.frames
        )
        self.at += len(data)
        return self

    def lose(self, size: int) -> Decoding:
        """A gap, seen at a packet of its own."""
        self.packet += 1
        self.decoder.receive_gap(size, self.packet, self.packet * 10, self.frames)
        self.at += size
        return self

    def finish(self) -> Decoding:
        self.decoder.finish(self.frames)
        return self

    @property
    def kinds(self) -> list[FindingKind]:
        return [info.kind for info in self.findings]


def assert_frames(found: list[Frame], wanted: list[Command], *, bodies: bool = True) -> None:
    assert len(found) == len(wanted)
    for one, command in zip(found, wanted, strict=True):
        assert (one.serialize_type, one.header) == (int(command.binary), command.header)
        assert (one.body_length, one.missing) == (len(command.body), 0)
        if bodies:
            assert one.body == command.body


BIG = 6
"""index of the command with the large body"""
