"""What fuzzing starts from: small inputs of each target that reach far into it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tests.traffic.captures import Interface, pcap, pcap_of, pcapng
from tests.traffic.commands import Command, send, sent
from tests.traffic.network import LINKS, TUNNELS, ethernet, fragments, ip, packets
from tests.traffic.talk import BROKER, CLIENT, PSH, START, End, Talk, Tcp

from .targets import CODES

_REQUEST = Command(105, 1, ext={"topic": "T"})
_V4 = Tcp(CLIENT, BROKER, 1, 1, PSH | 16, b"data", START)
_V6 = Tcp(End("::5", 1), End("::1", 2), 1, 1, PSH | 16, b"data", START)


def seeds_of(target: str) -> Iterator[bytes]:
    """The seeds of a target, by its name in `targets.TARGETS`."""
    yield from {
        "capture": _captures,
        "packets": _packets,
        "segments": _segments,
        "frames": _frames,
        "stream": _streams,
        "header": _headers,
        "body": _bodies,
    }[target]()


def _captures() -> Iterator[bytes]:
    talk = Talk(mss=60).open().say(0, _REQUEST.frame).say(1, _REQUEST.answer(17).frame)
    yield pcap_of(talk.segments)
    yield pcap_of(talk.close().segments[3:], "sll2", big=True, nano=True)
    timed = [(ts, data, 0) for ts, data in packets(talk.segments)]
    yield pcapng(timed, [Interface(1, 9), Interface(113)])
    yield pcap([(one.ts, ethernet(TUNNELS["vxlan"](ip(one)))) for one in talk.segments])


def _packets() -> Iterator[bytes]:
    linktypes = (1, 113, 276, 0, 101, 108, 228, 229)
    for link in LINKS.values():
        if link.linktype in linktypes:
            one = _V6 if link.version == 6 else _V4
            data = link.wrap(ip(one))
            head = bytes((linktypes.index(link.linktype),))
            yield head + struct.pack(">H", len(data)) + data
    for tunnel in TUNNELS.values():
        data = ethernet(tunnel(ip(_V4)))
        yield b"\0" + struct.pack(">H", len(data)) + data
    for one in (_V4, _V6):
        parts = [ethernet(part) for part in fragments(one, 16, 7)]
        yield b"\0" + b"".join(struct.pack(">H", len(part)) + part for part in parts)


def _segments() -> Iterator[bytes]:
    def item(place: int, size: int, later: int = 0, kind: int = 1) -> bytes:
        return struct.pack(">HHIB", place, size, later, kind)

    syn = item(0xFFFF, 0, 0, 0)
    yield b"".join(item(at, 100) for at in range(0, 1000, 100))
    yield syn + b"".join(item(at, 100) for at in (0, 200, 100, 300, 250, 0))
    yield syn + item(200, 50) + item(300, 1) + item(250, 0, 9, 17) + item(600, 5, 99, 65)
    yield item(200, 50) + b"".join(item(400, 0, 40, 17) for _ in range(40)) + item(0, 400, 0, 33)


_SAID = _REQUEST.frame + sent(1).frame + Command(11, 2, binary=True, body=b"body").frame


def _frames() -> Iterator[bytes]:
    for first in (0, 1, 2):
        for size in (7, 100, 249):
            parts = [_SAID[at : at + size] for at in range(0, len(_SAID), size)]
            yield bytes((first,)) + b"".join(bytes((len(part),)) + part for part in parts)
    yield b"\1" + bytes((60,)) + _SAID[:60] + b"\xfb" + bytes((120,)) + _SAID[100:220]


def _streams() -> Iterator[bytes]:
    for head in (b"\xff\1", b"\x40\3", b"\x10\0"):
        yield head + _SAID
        yield head + b"\x16\3\1" + _SAID


def _headers() -> Iterator[bytes]:
    yield _REQUEST.header
    yield b"{code:105,extFields:{a:1,b:true},'opaque':7}"
    yield b'{"code":"1","opaque":2.0,"extFields":{"a":{"b":[1,null]}},"remark":"\\ud800"}'
    yield Command(200050, 1, ext={"a": "b", "": ""}, remark="r", binary=True).header
    yield send(1).header


def _bodies() -> Iterator[bytes]:
    for number in range(len(CODES)):
        yield bytes((number, 0)) + b'{"a":[1,"b",{"c":null}],"table":{0:"x"}}'
    record = bytes.fromhex("0000005bdaa320a7") + bytes(83)
    for number in (CODES.index(11), CODES.index(10), CODES.index(320)):
        yield bytes((number, 1)) + record * 2
        yield bytes((number, 0)) + bytes.fromhex("00000016") + bytes(18)
