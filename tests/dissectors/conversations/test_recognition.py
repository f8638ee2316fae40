"""What conversations speak: RocketMQ on any port, others named and counted, `decode_as`."""

from __future__ import annotations

import random
import struct

import pytest

from dissectors.conversations.conversation_states import DETECT_LIMIT, DETECT_LIMIT_FROM_START
from dissectors.conversations.recognition import (
    AMQP,
    GRPC,
    HAPROXY,
    HTTP,
    HTTP2,
    KAFKA,
    NO_PAYLOAD,
    REDIS,
    TLS,
    UNKNOWN,
    protocol_of,
)
from dissectors.decode.pipeline import DecodeOptions
from dissectors.findings import FindingKind, Severity
from tests.traffic.commands import frame, route_query, send, sent
from tests.traffic.decoded import Outcome, decode_segments
from tests.traffic.talk import BROKER, CLIENT, End, Talk, retimed

CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(100)) * 2
SERVER_HELLO = bytes.fromhex("160303007a0200007603 03") + bytes(range(120))
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000012040000000000")
GRPC_HEADERS = bytes.fromhex("00001e010400000001") + b"\x5f\x10application/grpc+proto"
GRPC_HUFFMAN = bytes.fromhex("00001e010400000001") + bytes.fromhex("5f8b1d75d0620d263d4c4d6564")
PROXY_1 = b"PROXY TCP4 10.0.0.5 10.0.0.1 51234 10911\r\n"
PROXY_2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c" + bytes.fromhex("0a0000050a000001c8222a9f")

KAFKA_VERSIONS = struct.pack(
    ">ihhih", 52, 18, 3, 0, 10
) + b"producer-1\0\x12apache-kafka-java\x063.7.0\0".ljust(42, b"\0")
KAFKA_METADATA = struct.pack(">ihhih", 17, 3, 0, 0, 3) + b"app" + bytes(4)

FOREIGN = {
    "TLS": ([(0, CLIENT_HELLO), (1, SERVER_HELLO)], TLS),
    "TLS data": ([(1, b"\x17\x03\x03\x01\x00" + bytes(256))], TLS),
    "TLS alert": ([(0, b"\x15\x03\x01\x00\x02\x02\x28")], TLS),
    "HTTP request": ([(0, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")], HTTP),
    "HTTP long": ([(0, b"POST /" + b"a" * 700 + b" HTTP/1.1\r\nHost: a\r\n\r\n")], HTTP),
    "HTTP response": ([(1, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")], HTTP),
    "HTTP/2": ([(0, PREFACE + bytes(100)), (1, bytes(3000))], HTTP2),
    "gRPC": ([(0, PREFACE), (1, bytes.fromhex("000000040000000000")), (0, GRPC_HEADERS)], GRPC),
    "gRPC Huffman": ([(0, PREFACE + GRPC_HUFFMAN)], GRPC),
    "HAProxy": ([(0, PROXY_1)], HAPROXY),
    "SSH": ([(1, b"SSH-2.0-OpenSSH_9.6\r\n")], "SSH"),
    "Redis": ([(0, b"*1\r\n$4\r\nPING\r\n"), (1, b"+PONG\r\n")], REDIS),
    "Redis answer": ([(1, b"-ERR unknown command\r\n")], REDIS),
    "AMQP 0-9-1": ([(0, b"AMQP\0\0\x09\x01"), (1, bytes.fromhex("0100000000000a"))], AMQP),
    "AMQP 1.0": ([(0, b"AMQP\3\1\0\0")], AMQP),
    "Kafka": ([(0, KAFKA_VERSIONS), (1, bytes(40))], KAFKA),
    "Kafka, old": ([(0, KAFKA_METADATA)], KAFKA),
    "other": ([(0, b"EHLO a.example\r\n"), (1, b"250 ok\r\n")], UNKNOWN),
}


REAL_CLIENTS = {
    "kafka-clients 3.9.1, producer": (
        "0000002e0012000400000000000a70726f64756365722d3100126170616368652d6b6166"
        "6b612d6a61766106332e392e3100",
        KAFKA,
    ),
    "kafka-clients 3.9.1, consumer": (
        "000000300012000400000001000c636f6e73756d65722d672d3100126170616368652d6b"
        "61666b612d6a61766106332e392e3100",
        KAFKA,
    ),
    "kafka-clients 3.9.1, admin": (
        "000000310012000400000000000d61646d696e636c69656e742d3100126170616368652d"
        "6b61666b612d6a61766106332e392e3100",
        KAFKA,
    ),
    "kafka-clients 3.9.1, client.id x": (
        "00000025001200040000000000017800126170616368652d6b61666b612d6a61766106332e392e3100",
        KAFKA,
    ),
    "kafka-python 3.0.12": (
        "00000037001200040000000100176b61666b612d707974686f6e2d70726f64756365722d"
        "31000d6b61666b612d707974686f6e07332e302e313200",
        KAFKA,
    ),
    "aiokafka 0.14.0": (
        "0000001d0012000000000001001361696f6b61666b612d70726f64756365722d31",
        KAFKA,
    ),
    "librdkafka 2.16.0": (
        "000000400012000300000001000772646b61666b610017636f6e666c75656e742d6b6166"
        "6b612d707974686f6e16322e31362e312d72646b61666b612d322e31362e3000",
        KAFKA,
    ),
    "pika 1.4.4": ("414d515000000901", AMQP),
    "redis-py 8.1.0": ("2a320d0a24350d0a48454c4c4f0d0a24310d0a330d0a", REDIS),
    "redis-py 8.1.0, RESP2": ("2a310d0a24340d0a50494e470d0a", REDIS),
    "redis-py 8.1.0, password": (
        "2a350d0a24350d0a48454c4c4f0d0a24310d0a330d0a24340d0a415554480d0a24370d0a"
        "64656661756c740d0a24310d0a780d0a",
        REDIS,
    ),
}
"""what each client says first to a server, as a listener on loopback received it"""


@pytest.mark.parametrize("name", sorted(REAL_CLIENTS))
@pytest.mark.parametrize("mss", [1, 5, 1448])
def test_first_words_of_real_clients(name: str, mss: int) -> None:
    first, protocol = REAL_CLIENTS[name]
    talk = Talk(mss=mss).open().say(0, bytes.fromhex(first)).close()
    assert decode_segments(talk.segments).stats.not_decoded == {protocol: 1}


@pytest.mark.parametrize("name", sorted(FOREIGN))
@pytest.mark.parametrize("mss", [1, 5, 1448])
def test_other_protocols_are_named_and_counted(name: str, mss: int) -> None:
    said, protocol = FOREIGN[name]
    talk = Talk(mss=mss).open()
    for side, data in said:
        talk.say(side, data)
    outcome = decode_segments(talk.close().segments)
    assert outcome.exchanges == []
    assert outcome.stats.not_decoded == {protocol: 1}
    assert (outcome.stats.conversations, outcome.stats.rocketmq_conversations) == (1, 0)
    (info,) = [info for info in outcome.findings if info.kind is FindingKind.NOT_ROCKETMQ]
    assert protocol in info.detail
    assert str(CLIENT) in info.detail
    assert all(info.kind.severity < Severity.WARNING for info in outcome.findings)


def test_what_says_nothing_is_counted() -> None:
    outcome = decode_segments(Talk().open().close().segments)
    assert outcome.stats.not_decoded == {NO_PAYLOAD: 1}
    assert outcome.findings == []


@pytest.mark.parametrize("port", [10911, 80, 443, 22, 1, 65535])
def test_rocketmq_on_any_port(port: int) -> None:
    talk = Talk(server=End("10.0.0.1", port)).open()
    talk.say(0, send(1).frame).say(1, sent(1).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 1}
    assert outcome.stats.rocketmq_conversations == 1


@pytest.mark.parametrize("header", [PROXY_1, PROXY_2], ids=["v1", "v2"])
@pytest.mark.parametrize("mss", [1, 10, 1448])
def test_a_proxy_header_before_rocketmq(header: bytes, mss: int) -> None:
    talk = Talk(mss=mss).open().say(0, header + send(1).frame).say(1, sent(1).frame)
    outcome = decode_segments(talk.segments)
    assert outcome.statuses == {"answered": 1}
    assert outcome.stats.not_decoded == {}
    assert outcome.kinds[FindingKind.PROXY_HEADER] == 1
    assert all(info.kind.severity < Severity.WARNING for info in outcome.findings)


@pytest.mark.parametrize("opened", [True, False])
def test_the_middle_of_a_conversation(opened: bool) -> None:
    """From within a frame: recognised by the next one, in both directions."""
    stream = send(1, bytes(3000)).frame + send(2).frame
    talk = Talk()
    if opened:
        talk.open()
        talk.next[0] += 500  # what was said between was not captured
    talk.say(0, stream[500:]).say(1, (sent(1).frame + sent(2).frame)[30:])
    outcome = decode_segments(talk.segments)
    assert outcome.stats.rocketmq_conversations == 1
    assert [one.status for one in outcome.exchanges] == ["answered"]
    assert outcome.exchanges[0].request.command.opaque == 2  # type: ignore[union-attr]
    assert outcome.kinds[FindingKind.MIDSTREAM] == (not opened)


def test_only_one_direction() -> None:
    for side in (0, 1):
        command = send(1) if side == 0 else sent(1)
        talk = Talk().say(side, command.frame).say(side, command.frame)
        outcome = decode_segments(talk.segments)
        assert outcome.stats.rocketmq_conversations == 1
        assert len(outcome.exchanges) == 2


def test_a_conversation_is_given_up_after_so_many_bytes() -> None:
    """Frames behind the limit are not found; those before it are."""
    junk = random.Random(2).randbytes(DETECT_LIMIT + 70_000)
    for opened, limit in ((False, DETECT_LIMIT), (True, DETECT_LIMIT_FROM_START)):
        for size, found in ((limit - 2000, 1), (limit + 2000, 0)):
            talk = Talk(mss=1000)
            if opened:
                talk.open()
            talk.say(0, junk[:size]).say(0, send(1).frame)
            outcome = decode_segments(retimed(talk.segments, step=1000))
            assert len(outcome.exchanges) == found
            assert outcome.stats.not_decoded == ({} if found else {UNKNOWN: 1})


@pytest.mark.parametrize("port", [BROKER.port, CLIENT.port])
def test_decode_as_forces(port: int) -> None:
    """A header that the search would not believe, on a port that the user names."""
    odd = b"{code:105,extFields:{topic:'Orders'},opaque:1}"
    options = DecodeOptions(decode_as=frozenset((port,)))
    for first in (b"SSH-2.0-OpenSSH_9.6\r\n", b"GET / HTTP/1.1\r\n\r\n"):
        talk = Talk().open().say(0, first).say(0, route_query(1).frame)
        assert decode_segments(talk.segments).stats.not_decoded != {}
        outcome = decode_segments(talk.segments, options)
        assert outcome.stats.not_decoded == {}
        assert outcome.statuses == {"unanswered": 1}
        kinds = outcome.kinds
        assert kinds[FindingKind.BAD_FRAME] + kinds[FindingKind.FRAME_TOO_LARGE] == 1
    talk = Talk().open().say(0, frame(odd)).say(1, sent(1).frame)
    assert decode_segments(talk.segments, options).statuses == {"answered": 1}
    other = Talk(End("10.0.0.9", 1), End("10.0.0.8", 443)).open().say(0, CLIENT_HELLO)
    assert decode_segments(other.segments, options).stats.not_decoded == {TLS: 1}


def test_a_first_header_that_only_java_reads() -> None:
    """Without `decode_as`, where the start was captured."""
    odd = frame(b"{code:105,extFields:{topic:'Orders',n:4},flag:0,language:'CPP',opaque:1}")
    outcome = decode_segments(Talk().open().say(0, odd).say(1, sent(1).frame).segments)
    assert outcome.statuses == {"answered": 1}
    assert outcome.exchanges[0].request.command.ext_fields == {"topic": "Orders", "n": "4"}  # type: ignore[union-attr]


def test_bytes_that_look_like_another_protocol_in_the_middle_do_not_matter() -> None:
    body = CLIENT_HELLO + b"GET / HTTP/1.1\r\n" + PREFACE
    talk = Talk(mss=100).open()
    for number in range(5):
        talk.say(0, send(number, body).frame).say(1, sent(number).frame)
    assert decode_segments(talk.segments).statuses == {"answered": 5}


def _counted(outcome: Outcome) -> int:
    stats = outcome.stats
    return stats.rocketmq_conversations + sum(stats.not_decoded.values())


def test_every_conversation_is_counted_once() -> None:
    segments = []
    for number, name in enumerate(sorted(FOREIGN)):
        talk = Talk(End("10.0.0.5", 40000 + number)).open()
        for side, data in FOREIGN[name][0]:
            talk.say(side, data)
        segments += talk.segments
    good = Talk().open().say(0, send(1).frame)
    same = Talk(CLIENT, CLIENT).say(0, send(1).frame)  # a port that is connected to itself
    outcome = decode_segments(segments + good.segments + same.segments)
    assert outcome.stats.conversations == len(FOREIGN) + 2
    assert _counted(outcome) == len(FOREIGN) + 2
    assert outcome.stats.rocketmq_conversations == 2


@pytest.mark.parametrize(
    ("head", "protocol"),
    [
        (b"", None),
        (b"\x16", None),
        (b"\x16\x03", None),
        (b"\x16\x03\x01", TLS),
        (b"\x16\x03\x05", None),
        (b"\x18\x03\x01", None),
        (b"GET /", None),
        (b"GETS / HTTP/1", None),
        (b"PROXY TCP4", HAPROXY),
        (b"PROXY UNKNOWN\r\n", HAPROXY),
        (struct.pack(">II", 100, 80) + b"{", None),
        (send(1).frame, None),
        (send(1, binary=True).frame, None),
    ],
)
def test_signatures(head: bytes, protocol: str | None) -> None:
    assert protocol_of(head) == protocol
