"""Attacks by files: each made in a size that is asked for, and the commands that must stand it.

`measure` runs them at a size and at twice that, in processes with little memory. What cannot be a
file (peers, sockets, disks) has tests of its own beside what it attacks.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from io import BytesIO
from typing import NamedTuple

import zstandard

from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.tcp.pcapng_writer import PcapngWriter
from tests.traffic.captures import pcap, pcap_of
from tests.traffic.commands import GET_ROUTEINFO, HEART_BEAT, PULL_MESSAGE, Command, send, sent
from tests.traffic.http2 import Http2Writer, http2_frame
from tests.traffic.network import ethernet, fragments, packets
from tests.traffic.talk import BROKER, START, End, Talk, Tcp
from tests.traffic.tls_records import (
    APPLICATION,
    FINISHED,
    HANDSHAKE,
    KEY_LOG,
    RANDOM,
    client_hello,
    message,
    record,
    sealed,
    server_hello,
)

MIB = 1 << 20
TABLE = ("decode", "pcap", "{}")
LINES = ("decode", "pcap", "{}", "-T", "jsonl")
COMMANDS = ("decode", "pcap", "{}", "--commands", "-T", "jsonl")
TREE = ("decode", "pcap", "{}", "-V")
MESSAGES = ("decode", "pcap", "{}", "--list-messages", "-T", "jsonl")
SUMMARY = ("decode", "pcap", "{}", "--summary")
DIAGNOSE = ("diagnose", "{}")
TRACE = ("trace", "{}", "K0", "-T", "jsonl")
PATTERN = ("decode", "pcap", "{}", "-Y", "topic ~ '(a+)+$'")
PLAN = ("replay", "{}", "--dry-run")


class Attack(NamedTuple):
    """Something that once cost more than it should, or that could."""

    make: Callable[[int], bytes]
    """size → content of the file"""
    size: int
    """where it begins"""
    commands: tuple[tuple[str, ...], ...]
    """what is run on it; `{}` is the file"""
    name: str = "attack.pcap"
    """of the file"""


def one_way(commands: Iterable[Command], mss: int = 60_000) -> bytes:
    """A capture of a connection on which one side speaks."""
    talk = Talk(mss=mss).open()
    for one in commands:
        talk.say(0, one.frame)
    return pcap_of(talk.close().segments, "raw")


def bombs(count: int) -> bytes:
    """Sends of a kilobyte that are a megabyte each."""
    body = zlib.compress(bytes(MIB), 9)
    sends = (send(number, body) for number in range(count))
    return one_way(replace(one, ext={**one.ext, "f": str(0x301)}) for one in sends)


def syns(count: int) -> bytes:
    """Connections that are asked for and nothing more."""
    ends = (End(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}", 1000) for n in range(count))
    return pcap_of((Tcp(end, BROKER, 1, 0, 2, b"", START) for end in ends), "raw")


def unanswered(count: int) -> bytes:
    """A send on each of many connections; no answer."""
    segments: list[Tcp] = []
    for number in range(count):
        talk = Talk(client=End("10.1.0.1", 1024 + number)).open()
        segments += talk.say(0, keyed(number).frame).segments
    return pcap_of(segments, "raw")


def connections(count: int) -> bytes:
    """A send, its response and the end, on each of many connections."""
    segments: list[Tcp] = []
    for number in range(count):
        client = End(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}", 1024)
        one = keyed(number)
        talk = Talk(client=client, at=START + number * 1_000_000).open().say(0, one.frame)
        segments += talk.say(1, sent(number).frame).close().segments
    return pcap_of(segments, "raw")


def keyed(number: int) -> Command:
    """A send with a UNIQ_KEY."""
    one = send(number)
    return replace(one, ext={**one.ext, "i": f"UNIQ_KEY\x01K{number}\x02"})


def retried(count: int) -> bytes:
    """One message, tried again and again."""
    return one_way(replace(keyed(0), opaque=number) for number in range(count))


def holes(count: int) -> bytes:
    """Segments of two bytes, each behind a hole."""
    talk = Talk(mss=2).open().say(0, bytes(4 * count))
    kept = [one for number, one in enumerate(talk.segments) if number < 3 or number % 2]
    return pcap_of(kept, "raw")


def false_frames(count: int) -> bytes:
    """A stream that claims a frame of 64 KiB every 59 bytes."""
    claim = b"\x00\x01\x00\x00\x01\x00\xff\x00" + bytes(51)
    return pcap_of(Talk(mss=1000).say(0, claim * count).segments, "raw")


def nested(depth: int) -> bytes:
    """A heartbeat, an ext field and a route of brackets."""
    text = b"[" * depth
    return one_way(
        (
            Command(HEART_BEAT, 1, body=text),
            Command(HEART_BEAT, 2, body=b'{"a":' * depth),
            Command(25, 3, ext={"extra": text.decode()}),
        )
    )


def doubling(levels: int) -> bytes:
    """References each of which names the one before twice."""
    twice = (",".join([f'{{"$ref":"$.x{n - 1}"}}'] * 2) for n in range(1, levels))
    rows = ",".join(f"x{n}:[{refs}]" for n, refs in enumerate(twice, 1))
    return one_way([Command(HEART_BEAT, 1, body=f"{{x0:[1,2],{rows}}}".encode())])


def _h2c(data: bytes, answer: bytes = b"") -> bytes:
    talk = Talk(mss=60_000).open().say(0, data)
    if answer:
        talk.say(1, answer)
    return pcap_of(talk.close().segments, "raw")


def header_bombs(count: int) -> bytes:
    """Header blocks that refer to one long header as often as they may."""
    client = Http2Writer()
    client.call(1, "Heartbeat", b"")
    entry = b"\x40\x01a\x7f\xa1\x1e" + b"v" * 4000
    client.data += http2_frame(1, 4, 3, entry)
    for stream in range(5, 5 + 2 * count, 2):
        client.data += http2_frame(1, 4, stream, b"\xbe" * 15)
    return _h2c(bytes(client.data))


_SEND = "/apache.rocketmq.v2.MessagingService/SendMessage"


def calls(count: int) -> bytes:
    """Calls that are begun and never ended."""
    client = Http2Writer()
    for stream in range(1, 2 * count, 2):
        client.headers(stream, [(":method", "POST"), (":path", _SEND)])
        client.data += http2_frame(0, 0, stream, b"\0\0\xff\0\0" + bytes(100))
    return _h2c(bytes(client.data))


def _on_connections(streams: Iterable[bytes]) -> bytes:
    """A capture of connections on which one client each says something over HTTP/2."""
    segments: list[Tcp] = []
    for number, said in enumerate(streams):
        talk = Talk(mss=60_000, client=End("10.1.0.1", 1024 + number)).open()
        segments += talk.say(0, said).segments
    return pcap_of(segments, "raw")


def open_streams(count: int) -> bytes:
    """Calls that stay open on four connections: each of two thousand headers of a byte each."""

    def said() -> bytes:
        client = Http2Writer()
        client.call(1, "SendMessage", b"")
        client.data += http2_frame(1, 4, 3, b"\x40\x01a\x01b")
        for stream in range(5, 5 + 2 * count, 2):
            client.headers(stream, [(":method", "POST"), (":path", _SEND)])
            client.data += http2_frame(1, 4, stream, b"\xbe" * 2000)
        return bytes(client.data)

    return _on_connections(said() for _ in range(4))


def long_headers(count: int) -> bytes:
    """Calls that stay open on four connections: each with headers of two kilobytes in the clear."""

    def said(connection: int) -> bytes:
        client = Http2Writer()
        for stream in range(1, 2 * count, 2):
            extra = [(f"x-{connection}-{stream}-{n}", "\u00e9" * 60) for n in range(16)]
            client.headers(stream, [(":method", "POST"), (":path", _SEND), *extra])
        return bytes(client.data)

    return _on_connections(map(said, range(4)))


def telemetry(count: int) -> bytes:
    """Messages without bytes on a telemetry stream."""
    client = Http2Writer()
    path = "/apache.rocketmq.v2.MessagingService/Telemetry"
    client.headers(1, [(":method", "POST"), (":path", path)])
    for _ in range(count):
        client.data += http2_frame(0, 0, 1, bytes(5) * 100)
    return _h2c(bytes(client.data))


def continuations(count: int) -> bytes:
    """A header block that goes on and on, in frames without bytes."""
    client = Http2Writer()
    client.call(1, "Heartbeat", b"")
    client.data += http2_frame(1, 0, 3) + http2_frame(9, 0, 3) * count
    return _h2c(bytes(client.data))


def call_bombs(count: int) -> bytes:
    """Compressed messages of a kilobyte that are a megabyte each."""
    packed = gzip.compress(bytes(MIB), 9)
    client = Http2Writer()
    for stream in range(1, 2 * count, 2):
        headers = [(":method", "POST"), (":path", _SEND), ("grpc-encoding", "gzip")]
        client.headers(stream, headers)
        client.message(stream, packed, ends=True, packed=True)
    return _h2c(bytes(client.data))


def pieces(count: int) -> bytes:
    """One call whose answer is a stream of messages without bytes."""
    client, server = Http2Writer(), Http2Writer(is_client=False)
    client.call(1, "ReceiveMessage", b"")
    server.headers(1, [(":status", "200")])
    server.data += http2_frame(0, 0, 1, bytes(5) * 1000) * count
    server.headers(1, [("grpc-status", "0")], ends=True)
    return _h2c(bytes(client.data), bytes(server.data))


def topics(count: int) -> bytes:
    """As many topics, groups and producers as commands."""
    return one_way(
        replace(one, ext={**one.ext, "a": f"group-{n}", "b": f"topic-{n}"})
        for n, one in ((n, keyed(n)) for n in range(count))
    )


def long_topic(length: int) -> bytes:
    """A long topic among the first rows of a table."""
    one = send(2)
    long = replace(one, ext={**one.ext, "b": "T" * length})
    return one_way([send(1), long, *(send(n) for n in range(3, 60))])


def pattern(length: int) -> bytes:
    """A topic that a pattern almost fits."""
    one = send(1)
    return one_way([replace(one, ext={**one.ext, "b": "a" * length + "!"})])


def routes(rows: int) -> bytes:
    """A route whose rows claim as many queues as there may be."""
    row = {"brokerName": "b", "perm": 6, "readQueueNums": 65_536, "writeQueueNums": 65_536}
    body = json.dumps({"brokerDatas": [], "queueDatas": [row] * rows}).encode()
    ask = Command(GET_ROUTEINFO, 1, ext={"topic": "T"})
    talk = Talk(mss=60_000).open().say(0, ask.frame).say(1, ask.answer(body=body).frame)
    return pcap_of(talk.close().segments, "raw")


def pulled(count: int) -> bytes:
    """A pull that gives as many messages as fit."""
    record = encode_message(StoredMessage("T", b"x", {"UNIQ_KEY": "K0"}, born_timestamp=1))
    ask = Command(PULL_MESSAGE, 1, ext={"topic": "T", "consumerGroup": "g"})
    talk = Talk(mss=60_000).open().say(0, ask.frame)
    return pcap_of(talk.say(1, ask.answer(body=record * count).frame).close().segments, "raw")


def properties(count: int) -> bytes:
    """A message of as many properties as its bytes can be."""
    one = send(1)
    text = "".join(f"p{number}\x01\x02" for number in range(count))
    return one_way([replace(one, ext={**one.ext, "i": text})])


def groups(count: int) -> bytes:
    """A heartbeat of many groups."""
    rows = [{"groupName": f"g{n}", "subscriptionDataSet": [{"topic": "T"}]} for n in range(count)]
    return one_way([Command(HEART_BEAT, 1, body=json.dumps({"consumerDataSet": rows}).encode())])


def orphans(count: int) -> bytes:
    """Answers that nobody asked for."""
    talk = Talk(mss=60_000).open()
    for number in range(count):
        talk.say(1, sent(number).frame)
    return pcap_of(talk.close().segments, "raw")


def cut_datagrams(count: int) -> bytes:
    """First fragments of datagrams whose rest never comes."""
    whole = Talk().open().say(0, bytes(1000)).segments[3]
    parts = [fragments(whole, 512, ident)[0] for ident in range(count)]
    return pcap([(START, ethernet(part)) for part in parts])


def empty_archives(count: int) -> bytes:
    """A capture in gzip behind many empty ones."""
    return gzip.compress(b"") * count + gzip.compress(one_way([send(1)]))


def empty_zstd(count: int) -> bytes:
    """A capture in zstd behind many empty frames."""
    return zstandard.compress(b"") * count + zstandard.compress(one_way([send(1)]))


def zstd_runs(count: int) -> bytes:
    """A capture in zstd, then blocks of four bytes that are 128 KiB each: runs of a byte."""
    window = (17 - 10) << 3
    most, run, last = 128 << 10, 1 << 1, 1
    block = (most << 3 | run).to_bytes(3, "little") + b"\0"
    end = (most << 3 | run | last).to_bytes(3, "little") + b"\0"
    frame = b"\x28\xb5\x2f\xfd\0" + bytes([window]) + block * (count - 1) + end
    return zstandard.compress(one_way([send(1)])) + frame


def in_tls(client: bytes, server: bytes, key_log: bytes = KEY_LOG) -> bytes:
    """A connection over TLS 1.3 as pcapng, with its secrets."""
    talk = Talk(mss=60_000).open().say(0, client_hello(random=RANDOM))
    talk.say(1, server_hello(b"\x03\x04") + server).say(0, client)
    file = BytesIO()
    writer = PcapngWriter(file, 101)
    writer.write_secrets(key_log)
    for ts, data in packets(talk.close().segments, "raw"):
        writer.write(ts, data)
    return file.getvalue()


def tiny_records(count: int) -> bytes:
    """Encrypted records of one byte each."""
    said = (send(1).frame * count)[:count]
    records = (sealed(said[at : at + 1] + APPLICATION, at) for at in range(count))
    return in_tls(sealed(FINISHED, 0) + b"".join(records), sealed(FINISHED, 0))


def huge_handshakes(count: int) -> bytes:
    """Messages of a handshake that are as long as their length can say, of certificates and
    others, and chains of very many certificates that are none.
    """
    chain = b"".join(b"\0\0\x02\x30\0\0\0" for _ in range(30_000))
    chain = b"\0" + len(chain).to_bytes(3, "big") + chain
    inside = message(11, chain) + b"\x04\xff\xff\xff"
    parts = [inside[at : at + 16_000] for at in range(0, len(inside), 16_000)]
    parts += [bytes(16_000)] * count
    return in_tls(b"", b"".join(sealed(one + HANDSHAKE, at) for at, one in enumerate(parts)))


def hellos(count: int) -> bytes:
    """Hellos of a client and alerts, again and again in the clear."""
    alert = record(0x15, b"\x01\x5a")
    return in_tls((client_hello(random=RANDOM) + alert) * count, b"")


def key_logs(count: int) -> bytes:
    """Secrets of very many sessions that nobody sees."""
    line = "CLIENT_RANDOM %064x " + "00" * 48 + "\n"
    lines = "".join(line % number for number in range(count * 50))
    return in_tls(b"", b"", KEY_LOG + lines.encode())


def zeros(mib: int) -> bytes:
    """Zeros behind the head of a capture, packed to a thousandth."""
    return gzip.compress(one_way([send(1)]) + bytes(mib * MIB))


def log_line(length: int) -> bytes:
    """A log of commands with a long line."""
    return (json.dumps({"capture": "a", "x": "y" * length}) + "\n").encode()


def log_depth(depth: int) -> bytes:
    """A decoded log whose rows nest."""
    return b'{"capture":"a","facts":' + b"[" * depth + b"\n"


ATTACKS: dict[str, Attack] = {
    "bombs": Attack(bombs, 40, (COMMANDS, MESSAGES, PLAN)),
    "syns": Attack(syns, 400, (TABLE, DIAGNOSE)),
    "unanswered": Attack(unanswered, 60, (TABLE, DIAGNOSE, PLAN)),
    "connections": Attack(connections, 150, (PLAN,)),
    "retried": Attack(retried, 150, (MESSAGES, DIAGNOSE, TRACE, PLAN)),
    "holes": Attack(holes, 800, (TABLE,)),
    "false frames": Attack(false_frames, 400, (TABLE,)),
    "nested": Attack(nested, 5000, (COMMANDS, TREE, DIAGNOSE)),
    "doubling": Attack(doubling, 40, (COMMANDS,)),
    "topics": Attack(topics, 150, (SUMMARY, MESSAGES, DIAGNOSE, PLAN)),
    "long topic": Attack(long_topic, 100_000, (TABLE, DIAGNOSE)),
    "pattern": Attack(pattern, 5000, (PATTERN,)),
    "routes": Attack(routes, 300, (COMMANDS, DIAGNOSE)),
    "pulled": Attack(pulled, 300, (COMMANDS, MESSAGES, TRACE)),
    "properties": Attack(properties, 700, (TABLE, MESSAGES, PLAN)),
    "groups": Attack(groups, 600, (COMMANDS, DIAGNOSE)),
    "orphans": Attack(orphans, 150, (TABLE, DIAGNOSE)),
    "cut datagrams": Attack(cut_datagrams, 500, (TABLE,)),
    "tiny TLS records": Attack(tiny_records, 20_000, (TABLE,)),
    "huge handshakes": Attack(huge_handshakes, 200, (TABLE,)),
    "hellos": Attack(hellos, 4000, (DIAGNOSE,)),
    "key logs": Attack(key_logs, 400, (TABLE,)),
    "empty archives": Attack(empty_archives, 2000, (TABLE,), "attack.pcap.gz"),
    "empty zstd frames": Attack(empty_zstd, 2000, (TABLE,), "attack.pcap.zst"),
    "zstd runs": Attack(zstd_runs, 150, (TABLE,), "attack.pcap.zst"),
    "zeros": Attack(zeros, 20, (TABLE,), "attack.pcap.gz"),
    "header bombs": Attack(header_bombs, 400, (TABLE, DIAGNOSE)),
    "calls": Attack(calls, 600, (TABLE, MESSAGES)),
    "open streams": Attack(open_streams, 200, (TABLE, DIAGNOSE)),
    "long headers": Attack(long_headers, 200, (TABLE, DIAGNOSE)),
    "telemetry": Attack(telemetry, 40, (LINES, COMMANDS, DIAGNOSE)),
    "continuations": Attack(continuations, 4000, (TABLE,)),
    "call bombs": Attack(call_bombs, 20, (COMMANDS, TREE, MESSAGES)),
    "pieces": Attack(pieces, 5, (TABLE, COMMANDS, MESSAGES)),
    "log line": Attack(log_line, 2 * MIB, (PLAN,), "attack.jsonl"),
    "log depth": Attack(log_depth, 5000, (DIAGNOSE, PLAN), "attack.jsonl"),
}
"""name → attack"""
