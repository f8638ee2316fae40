"""Several captures as one, so that tshark, which takes long to start, starts once for all of them.

Each capture's IPv4 addresses become addresses of its own, or tshark would put connections of
several captures together. All start in the same second: Lua has times as floating-point numbers of
seconds since the first packet, too few digits for nanoseconds after a year. Nothing of the product
reads the captures here: tshark is its oracle. What else a pcapng has stays, secrets among it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

ETHERNET = 1
IPV4 = b"\x08\x00"
TCP = 6
SYN, ACK = 2, 16
NETWORK = 10
"""first octet of all new addresses; the second is the place of the capture"""
DIGITS = {0xA1B2C3D4: 6, 0xA1B23C4D: 9}
"""magic number of a pcap → digits of its fractions of a second"""
SECTION, INTERFACE, ENHANCED, SECRETS = 0x0A0D0D0A, 1, 6, 10
RESOLUTION = 9
"""option of an interface: digits of its fractions of a second"""
AT_ONCE = 24
"""captures that are joined: more make starts fewer, and what is held larger"""
T = TypeVar("T")


class _Block(NamedTuple):
    """A block of a pcapng."""

    kind: int
    body: bytes


@dataclass
class Part:
    """One of the captures in the joined one."""

    path: Path
    first: int
    """packets before its own"""
    count: int = 0
    addresses: dict[str, str] = field(default_factory=dict)
    """new → as captured"""
    earlier: int = 0
    """seconds by which it was put earlier"""

    def number(self, number: int) -> int:
        """Return the number that a packet has in its own capture."""
        assert self.first < number <= self.first + self.count
        return number - self.first

    def end(self, name: str) -> str:
        """Return `address:port` as it was captured."""
        address, _, port = name.rpartition(":")
        return f"{self.addresses[address]}:{port}"


@dataclass
class Joined:
    """Captures that stand one behind the other in one file."""

    path: Path
    parts: list[Part] = field(default_factory=list)
    streams: int = 0
    """as many streams of TCP as there can be"""

    def part_of(self, number: int) -> Part:
        """Return the part that a packet is of."""
        return next(one for one in reversed(self.parts) if number > one.first)

    def part_at(self, address: str) -> Part:
        """Return the part whose address this is, a port behind it or not."""
        network, part, _ = address.split(".", 2)
        assert int(network) == NETWORK
        return self.parts[int(part)]


class Together(Generic[T]):
    """What is found in each of many captures, looked for in some of them at once."""

    def __init__(
        self, captures: Sequence[Path], folder: Path, look: Callable[[Joined], dict[Path, T]]
    ) -> None:
        self._captures = captures
        self._folder = folder
        self._look = look
        self._found: dict[Path, T] = {}

    def get(self, path: Path) -> T | None:
        """Return what is found in a capture, or None where it must be read alone."""
        if not can_be_joined(path):
            return None
        if path not in self._found:
            place = self._captures.index(path) // AT_ONCE * AT_ONCE
            captures = self._captures[place : place + AT_ONCE]
            joined = self._folder / "joined.pcapng"
            self._found = self._look(join([one for one in captures if can_be_joined(one)], joined))
        return self._found[path]


def can_be_joined(path: Path) -> bool:
    """Return whether each packet of a capture is IPv4 in Ethernet, and the file whole and plain."""
    if path.suffix not in (".pcap", ".pcapng"):
        return False
    blocks = list(_blocks(path))
    links = {struct.unpack_from("<H", one.body)[0] for one in blocks if one.kind == INTERFACE}
    packets = [one.body for one in blocks if one.kind == ENHANCED]
    return (
        links == {ETHERNET}
        and {one.kind for one in blocks} <= {SECTION, INTERFACE, ENHANCED, SECRETS}
        and all(one[32:34] == IPV4 and len(one) >= 54 for one in packets)
        and all(len(one) >= 20 + struct.unpack_from("<12xI", one)[0] for one in packets)
    )


def join(captures: Sequence[Path], path: Path) -> Joined:
    """Write the captures behind each other into one pcapng."""
    joined = Joined(path)
    out = [_Block(SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    units: list[int] = []  # in a second, of each interface
    ends: set[bytes] = set()
    start = number = 0
    for place, capture in enumerate(captures):
        part = Part(capture, number)
        changes: dict[bytes, bytes] = {}
        before = len(units)
        for kind, body in _blocks(capture):
            if kind == SECTION:
                continue
            if kind == INTERFACE:
                units.append(10 ** _digits(body))
            elif kind == ENHANCED:
                number += 1
                interface, high, low = struct.unpack_from("<III", body)
                interface += before
                stamp = high << 32 | low
                if number == part.first + 1:
                    start = start or stamp // units[interface]
                    part.earlier = stamp // units[interface] - start
                stamp -= part.earlier * units[interface]
                frame = _moved(body[20:], changes, place)
                joined.streams += _starts_stream(frame, ends)
                head = struct.pack("<III", interface, stamp >> 32, stamp & 0xFFFFFFFF)
                body = head + body[12:20] + frame
            out.append(_Block(kind, body))
        part.count = number - part.first
        part.addresses = {_text(new): _text(old) for old, new in changes.items()}
        joined.parts.append(part)
    path.write_bytes(b"".join(_written(one) for one in out))
    return joined


def _blocks(path: Path) -> Iterator[_Block]:
    data = path.read_bytes()
    if data[:4] == struct.pack("<I", SECTION):
        at = 0
        while at < len(data):
            kind, length = struct.unpack_from("<II", data, at)
            yield _Block(kind, data[at + 8 : at + length - 4])
            at += length
        return
    magic, link = struct.unpack("<I16xI", data[:24])
    digits = DIGITS[magic]
    yield _Block(INTERFACE, struct.pack("<HHIHHBxxxI", link, 0, 0, RESOLUTION, 1, digits, 0))
    at = 24
    while at < len(data):
        seconds, fraction, captured, length = struct.unpack_from("<IIII", data, at)
        stamp = seconds * 10**digits + fraction
        head = struct.pack("<IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, captured, length)
        frame = data[at + 16 : at + 16 + captured]
        yield _Block(ENHANCED, head + frame + bytes(-captured % 4))
        at += 16 + captured


def _digits(interface: bytes) -> int:
    """Return the digits of fractions of a second that an interface has."""
    at = 8
    while at + 4 <= len(interface):
        code, length = struct.unpack_from("<HH", interface, at)
        if code == RESOLUTION:
            assert interface[at + 4] < 128, "a power of two"
            return interface[at + 4]
        at += 4 + length + -length % 4
    return 6


def _moved(frame: bytes, changes: dict[bytes, bytes], place: int) -> bytes:
    """Put new addresses into a packet; what has none yet gets one."""
    both = frame[26:30], frame[30:34]
    for one in both:
        changes.setdefault(one, struct.pack(">BBH", NETWORK, place, len(changes) + 1))
    return frame[:26] + changes[both[0]] + changes[both[1]] + frame[34:]


def _starts_stream(frame: bytes, ends: set[bytes]) -> int:
    """Return how many streams may start with a packet, given the ends that were seen before."""
    at = 14 + (frame[14] & 15) * 4
    if frame[23] != TCP or len(frame) < at + 14:
        return 0
    a, b = frame[26:30] + frame[at : at + 2], frame[30:34] + frame[at + 2 : at + 4]
    both = min(a, b) + max(a, b)
    new = both not in ends
    ends.add(both)
    return new + (frame[at + 13] & (SYN | ACK) == SYN)


def _text(address: bytes) -> str:
    return ".".join(map(str, address))


def _written(block: _Block) -> bytes:
    length = struct.pack("<I", len(block.body) + 12)
    return struct.pack("<I", block.kind) + length + block.body + length
