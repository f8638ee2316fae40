"""What fuzzing starts from: small inputs of each target that reach far into it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from dissectors.grpc.definition import METHODS
from dissectors.remoting.fastjson.codec import encode_json
from dissectors.remoting.messages.message import encode_message
from tests.dissectors.broker_store import made_store
from tests.dissectors.remoting.registrations import encode_registration
from tests.dissectors.replication_traffic import replicated
from tests.replay.script import route_body
from tests.traffic.captures import Interface, pcap, pcap_of, pcapng
from tests.traffic.commands import Command, send, sent
from tests.traffic.http2 import Http2Writer
from tests.traffic.network import LINKS, TUNNELS, ethernet, fragments, ip, packets
from tests.traffic.talk import BROKER, CLIENT, PSH, START, End, Talk, Tcp
from tests.traffic.tls_records import KEY_LOG, client_hello, extension, message, server_hello

from .rewriting_targets import OFFSETS, STORE_FILES
from .sandbox_targets import codes
from .targets import CODES, PROPERTIES

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
        "calls": _calls,
        "header": _headers,
        "body": _bodies,
        "commands": _commands,
        "messages": _messages,
        "replicas": _replicas,
        "packed": _packed,
        "readers": _readers,
        "archives": _archives,
        "routes": _routes,
        "answers": _answers,
        "pushes": _pushes,
        "lines": _lines,
        "anonymized": _anonymized,
        "stores": _stores,
        "relayed": _relayed,
        "rows": _rows,
        "requests": _requests,
        "tls": _tls,
        "tls_sealed": _tls_sealed,
        "key_log": _key_logs,
    }[target]()


def _captures() -> Iterator[bytes]:
    talk = Talk(mss=60).open().say(0, _REQUEST.frame).say(1, _REQUEST.answer(17).frame)
    yield pcap_of(talk.segments)
    yield pcap_of(talk.close().segments[3:], "sll2", big=True, nano=True)
    timed = [(ts, data, 0) for ts, data in packets(talk.segments)]
    yield pcapng(timed, [Interface(1, 9), Interface(113)])
    yield pcap([(one.ts, ethernet(TUNNELS["vxlan"](ip(one)))) for one in talk.segments])
    pull = Command(11, 2, ext={"topic": "T", "consumerGroup": "g", "queueId": "0"})
    # ids of a client that no other test has, since decoded ones are remembered
    stored = [made_store.message("T", f"0AFEED05{number:024X}", KEYS="k") for number in (1, 2)]
    talk = Talk().open().say(0, send(1).frame + pull.frame).say(1, sent(1).frame)
    pulled = pull.answer(
        0, body=b"".join(map(encode_message, stored)), ext={"nextBeginOffset": "2"}
    )
    yield pcap_of(talk.say(1, pulled.frame).segments)


def _anonymized() -> Iterator[bytes]:
    for number, seeds in enumerate((_captures(), _calls(), _streams())):
        for seed in islice(seeds, 40):
            yield bytes((number,)) + seed


def _stores() -> Iterator[bytes]:
    messages = [
        made_store.message("T", "A", KEYS="k"),
        made_store.half("T", "B"),
        made_store.commit("T", "B", 1),
        made_store.op(1),
    ]
    with TemporaryDirectory() as folder:
        offsets = {"T@g": {0: 1}}
        root = made_store.store_in(
            Path(folder), *messages, queues=True, index=True, offsets=offsets
        )
        parts = [root.joinpath(name.format(0)).read_bytes() for name in STORE_FILES]
        groups = root.joinpath(OFFSETS).read_bytes()
    for cut in (0, 1, 100):
        files = [part[: len(part) - cut] for part in (parts[0].rstrip(b"\0"), *parts[1:])]
        yield struct.pack(">HHH", *map(len, files)) + b"".join(files) + groups[: len(groups) - cut]
    yield struct.pack(">HHH", 0, 0, 0) + b'{"offsetTable":{"T@g":{0:"x",1:-1},"":null}}'


def _relayed() -> Iterator[bytes]:
    answer = _REQUEST.answer(0, body=route_body({"b": "10.0.1.1:10911"}, 1, 6)).frame
    client, server = Http2Writer(), Http2Writer(is_client=False)
    client.call(1, "QueryRoute", b"\x0a\x03\x12\x01T")
    server.answer(1, b"\x12\x0e\x2a\x0c\x12\x0a\x08\x01\x12\x06\x0a\x01h\x10\x01", "0")
    for kind, sides in enumerate(((_REQUEST.frame, answer), (client.data, server.data))):
        for size in (7, 400):
            said = [
                struct.pack(">BH", side, len(piece)) + piece
                for side, data in enumerate(map(bytes, sides))
                for piece in (data[at : at + size] for at in range(0, len(data), size))
            ]
            yield bytes((kind,)) + b"".join(said)


def _rows() -> Iterator[bytes]:
    yield b'{"capture":"a.pcap","topic":"Orders","facts":["offset=1"],"brokers":["b=10.0.0.1:1"]}\n'
    yield b'{"event":"stored","unique_key":"AC10","body":"text","body_crc":1,"keys":"k"}\n{}\n[1]\n'
    yield b'{"kind":"GAP","detail":"10 bytes","conversation":1}\n{"client_address":"10.0.0.1:1'


def _calls() -> Iterator[bytes]:
    resource = b"\x0a\x06\x12\x04team"
    status = b"\x0a\x09\x08\xa0\x9c\x01\x12\x03yes"
    system = b"\x1a\x0e\x0a\x01t\x12\x01k\x1a\x02id\x30\x01\x28\x02"
    message = resource + system + b"\x22\x04body"
    sent = b"\x0a" + bytes((len(message),)) + message
    for number in range(len(METHODS)):
        for how in (1, 9, 0x1B, 0x81, 0x0D):
            request = sent if METHODS[number].name == "SendMessage" else resource
            yield bytes((number, how, len(request), 9)) + request + status
    for lost in range(0x80, 0x98):
        yield bytes((2, 0x09 + (lost & 3) * 4, len(sent), lost)) + sent + status
    long = resource + system + b"\x22\x96\x01" + b"b" * 150
    asked = b"\x0a" + bytes((len(long) & 0x7F | 0x80, len(long) >> 7)) + long
    for lost in range(0x80, 0x90):
        yield bytes((2, 9, len(asked), lost)) + asked + status
    route = b"\x12\x04\x2a\x02\x01\x02"  # of a queue the kinds of messages that it takes
    yield bytes((0, 9, len(resource), 0)) + resource + status + route
    parts = bytes.fromhex("00000101000000000388 00000109040000000386")
    yield bytes((2, 8, len(sent), 0)) + sent + parts
    yield bytes((2, 8, len(sent), 0)) + sent + bytes.fromhex("00000101050000000188")
    yield bytes((2, 9, len(sent), 0x40)) + sent + status
    for how in (0x41, 0x45):
        yield bytes((128 + 2 - 128 % len(METHODS), how, len(sent), 0)) + sent + status
    settings = b"\x12\x08\x08\x02\x32\x04\x0a\x02\x12\x00"
    yield bytes((12, 9, len(settings), 0)) + settings + settings
    frames = bytes.fromhex("000004030000000001") + b"\0\0\0\x08"
    frames += bytes.fromhex("000008070000000000") + bytes(8)
    yield bytes((2, 8, len(sent), 0)) + sent + frames
    yield bytes((2, 8, len(sent), 0)) + sent + bytes.fromhex("000003010500000001886162")


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
    digits = '{"code":"\u0661\u0662","opaque":[2],"flag":{"val":1},"version":'
    for version in ("401}", "511}"):
        yield (digits + version).encode()


def _commands() -> Iterator[bytes]:
    nested = b"\x00\xff" + b"\x04\xff" + b"\x02\xff"  # brackets a thousand levels deep
    for number in range(len(CODES)):
        yield bytes((number, 27)) + b'{"a":' + nested
        yield bytes((number, 7)) + b"\x1b\x01"
    heart = CODES.index(34)
    yield bytes((heart, 8)) + b'{"consumerDataSet":[{"groupName":"g"}],"a":' + nested
    yield bytes((heart, 8)) + b"{consumerDataSet:[{'groupName':'g'},1],producerDataSet:{}}"
    yield bytes((heart, 8)) + b'{"consumerDataSet":[' + b'{"groupName":"g"},' * 40 + b"]}"
    for start in (b'{"code":34,"opaque":7,"extFields":{"a":', b'{"code":34,"opaque":7,"x":'):
        yield bytes((heart, 40)) + start + nested
    for number, texts in _FIELDS.items():
        for text in texts:
            for how in (1, 2):
                yield bytes((CODES.index(number), how)) + text


_FIELDS = {
    310: (b"UNIQ_KEY\x0b\x01x\x0c\x01TAGS\x0b\x01y\x0c\x01",),
    200050: (b"0 1 2", b"0 1 2,3;1 2 3", b"qo0%2 1 5", b"\x0e\xff", b"1 2 3 4 5 6 7 8"),
    200051: (b"1 2 3 4 5 0 b 1", b"1 2 3 4 5 6 b 7 8", b"1 \x1b\x01 3 4 5 0 b 1"),
    33: (b"7F0000010000000000000000000000000001", b"7F00000100002A9F0000000000000001"),
    370: (b"djEgVG9waWMgYnJva2VyIDE3IGlk", b"djEgVA=="),
    15: (b"17", b"\x0e\x14"),
}
"""request code → texts for all its fields"""


def _messages() -> Iterator[bytes]:
    trace = b"\x0b\x01".join(
        (b"Pub", b"1", b"r", b"g", b"t", b"m", b"", b"", b"h", b"5", b"1", b"0")
    )
    texts = (
        b'{"so":1,"n":"b","d":[1]}',
        b'{"a":\x00\xff',
        trace + b"\x0b\x01true\x0c\x01",
        trace + b"\x0b\x01id\x0b\x01true\x0b\x01c\x0c\x01x",
        b"SubAfter\x0b\x01r\x0b\x01m\x0b\x015\x0b\x01true\x0b\x01k\x0b\x010\x0b\x01\x0c\x01",
        b"1,2,3",
        b"\x1b\x01,2",
        b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        b"1-dA==-cw==-3-c3Zj-aW5z-ZW5k-YWRy",
        b"7F0000010000000000000000000000000001",
        b"7F00000100002A9F0000000000000001",
        b"1 2 3 4 0 b 1 9",
        b"T+7F0000010000000000000000000000000001",
        b"ack@T@1@2@g@3@b",
    )
    for text in texts:
        for topic in range(6):
            for tag in (0, 1, 2, 0x20, 0x60, 0xE1):
                yield bytes((topic, tag, tag + topic)) + text
        for name in range(len(PROPERTIES)):
            yield bytes((0, 3, name)) + text


def _replicas() -> Iterator[bytes]:
    for auto_switch in (False, True):
        said = replicated(auto_switch, 0, 4, 150, beats=(0,)).said
        yield b"".join(struct.pack(">BH", side, len(data)) + data for side, data in said)
        late = said[3:]
        yield b"".join(struct.pack(">BH", side, len(data)) + data for side, data in late)
        bad = [*said, (1, b"\xff" * 40), (0, b"\xff" * 12)]
        yield b"".join(struct.pack(">BH", side, len(data)) + data for side, data in bad)


def _bodies() -> Iterator[bytes]:
    numbers = {"readQueueNums": 4, "writeQueueNums": 4, "perm": 6}
    topics = {"T": {"topicName": "T", **numbers, "topicFilterType": "SINGLE_TAG"}}
    wrapper = {"dataVersion": {"counter": 1}, "topicConfigTable": topics}
    body = {"topicConfigSerializeWrapper": wrapper, "filterServerList": []}
    yield bytes((CODES.index(103), 0)) + encode_registration(body, compressed=True)
    yield bytes((CODES.index(21), 1)) + encode_json(wrapper)
    yield bytes((CODES.index(21), 1)) + b'{"topicConfigTable":{{"$ref":"$"}:{"$ref":"$.a"}}}'
    for number in range(len(CODES)):
        yield bytes((number, 0)) + b'{"a":[1,"b",{"c":null}],"table":{0:"x"}}'
    yield bytes((CODES.index(41), 0)) + b'{"clientId":"c","consumerGroup":"g","mqSet":[{}]}'
    yield bytes((CODES.index(25), 0)) + b"a=1\nb=2\\\nc=3"
    yield bytes((CODES.index(34), 0)) + (
        b'{"clientID":"c","producerDataSet":[{"groupName":"p"}],"consumerDataSet":[{"groupName":"g"'
        b',"subscriptionDataSet":[{"topic":"T","subString":"*"}]}]}'
    )
    yield bytes((CODES.index(105), 1)) + (
        b'{"queueDatas":[{"brokerName":"b","perm":6,"readQueueNums":8,"writeQueueNums":8}],'
        b'"brokerDatas":[{"brokerName":"b","brokerAddrs":{0:"1.2.3.4:1","1":"1.2.3.5:1"}}]}'
    )
    yield bytes((CODES.index(105), 1)) + route_body({"broker-a": "10.0.1.1:10911"})
    yield bytes((CODES.index(25), 0)) + b"accessKey=abcdefgh\nsecretKey: 'x y'\n"
    yield bytes((CODES.index(25), 0)) + b'users={"password":{"a":["b"]}}\nurl=http://a:b@c:1\n'
    for name in (b"lockOKMQSet", b"consumerIdList"):
        yield bytes((CODES.index(38), 1)) + b'{"%b":["c"]}' % name
    record = bytes.fromhex("0000005bdaa320a7") + bytes(83)
    for number in (CODES.index(11), CODES.index(10), CODES.index(320)):
        yield bytes((number, 1)) + record * 2
        yield bytes((number, 0)) + bytes.fromhex("00000016") + bytes(18)


def _packed() -> Iterator[bytes]:
    text = b"hello" * 9 + b"\x1b\xff"
    for how in range(64):
        yield bytes((how, 0, 0, 0, 0, 0, 0)) + text
    for place in (0, 4, 8, 84, 88, 92, 96, 100):
        for value in (1, 0x7F, 0xFF):
            yield bytes((12, place, value, 0, 0, 0, 0)) + text


def _routes() -> Iterator[bytes]:
    for order in (b"", b"broker-a:4;broker-b:2", b"b:\x0e\x14;:;b:-1", b"\x1b\x01:9"):
        for row in ((4, 6), (0, 2), (255, 7)):
            yield bytes((1, *row)) + order
    yield b"\x02\0\0" + b'{"a":\x04\xff\x02\xff'
    yield b"\x02\0\0" + route_body({"broker-a": "10.0.1.1:10911"})
    yield b"\x02\0\0" + b"{brokerDatas:[{brokerAddrs:{0:'10.0.1.1:1'},brokerName:'a'}]}"
    for number in (b"1", b"\x1b\x01", b"\x0e\x14", b"-1", b"1.5", b"null"):
        yield b"\x04\x04\x06" + number


def _answers() -> Iterator[bytes]:
    for code in (0, 2, 10, 11, 12, 14, 17, 205, 255):
        for text in (b"0", b"\x1b\x01", b"\x0e\x14", b"-1", b"", b"+7"):
            yield bytes((code, 7)) + text
    yield b"\0\x08" + b"\xff\xff\xff\xff"
    yield b"\0\x08" + sent(1).frame
    yield b"\0\x10" + b"\x04\xff"


def _pushes() -> Iterator[bytes]:
    for code in range(8):
        for how in range(8):
            for text in (b"x", b"\x04\xff", b"769", b"\x1b\x01"):
                yield bytes((code, how)) + text


def _lines() -> Iterator[bytes]:
    row = b'{"capture":"a","conversation":0,"kind":"request","packet":1,"time":"%b","code":%b,'
    row += b'"client_address":"1.2.3.4:5","server_address":"1.2.3.5:6","opaque":1,"flag":0,'
    row += b'"ext_fields":%b}'
    for time in (b"2026-11-21T02:26:18.782560Z", b"", b"9999-99-99T99:99:99Z"):
        for code in (b"310", b"\x0e\xff", b"-1", b"null"):
            for fields in (b"{}", b'{"a":\x00\xff}', b'{"a":"\x1b\x01"}'):
                yield b"\0" + row % (time, code, fields)
    yield b"\1" + b'{"kind":"begin","step":1}'
    yield b"\1" + b'{"kind":"begin","x":\x00\xff'
    yield b"\2" + b"[[rule]]\ntopic = 'a'\n[[fault]]\nerror = 1\n"
    yield b"\2" + b"a = \x00\xff"
    yield b"\2" + b"a = \x0e\xff"


def _readers() -> Iterator[bytes]:
    for number in range(len(CODES)):
        yield bytes((number, 27)) + b"x"
    for name in (10, 310, 320, 37, 36, 200050, 200051, 370, 11, 325, 326, 39):
        for how in (27, 31, 8, 16, 80):
            for text in (
                b"7",
                b"\x1b\x01",
                b"\x0e\xff",
                b'{"a":\x00\xff',
                b"UNIQ_KEY\x0b\x01x\x0c\x01",
            ):
                yield bytes((CODES.index(name), how)) + text


def _archives() -> Iterator[bytes]:
    for how in (0, 1, 2, 3, 4, 64, 65, 66, 67):
        yield bytes((how, 0, 0, 0)) + b"hello" + b"\x1b\xff"
        yield bytes((how, 0, 20, 1)) + b"hello" + b"\x1b\xff"


def _requests() -> Iterator[bytes]:
    """Each request as it should be, then with one odd field; a few lives of a message."""
    served = codes()

    def one(code: int, who: int = 0, how: int = 0, field: int = 0, text: bytes = b"") -> bytes:
        return bytes((who, served.index(code), how, field, len(text))) + text

    odd = (b"\x1b\x01", b"\x0e\x14", b"-1", b"", b"x", b"\x04\xff", b"9" * 19, b"\x06\x01")
    for code in served:
        who = 1 if code in (100, 101, 102, 103, 104, 106, 205, 206, 219, 224, 322, 327) else 0
        yield one(code, who) + one(310) + one(code, who, 32)
        yield b"".join(one(code, who, 1, field, odd[field % 8]) for field in range(12))
        yield b"".join(one(code, who, 8, 0, text) for text in odd)
    join = one(34)
    sent = b"".join(one(310, 0, 2, kind) for kind in range(8))
    yield join + sent + one(11) + one(11, 0x10) + one(11, 0x30)
    yield join + sent + one(200050) + one(200051) + one(200053) + one(200050, 0x30)
    yield join + sent + one(37, 0x20) + one(36) + one(36, 0x30) + one(33) + one(12)
    yield one(310, 0, 2, 3) + one(37) + one(39 if 39 in served else 37) + one(310, 0x30)
    yield one(105, 1) + one(103, 1) + one(105, 1) + one(103, 9) + one(105, 1) + one(106, 1)
    yield one(25, 0, 8, 0, b"brokerPermission=\x1b\x01") + one(310) + one(105, 1)


def _part(kind: int, part: bytes) -> bytes:
    return bytes((kind, len(part))) + part


def _tls() -> Iterator[bytes]:
    hello = client_hello()
    yield (
        _part(0, hello) + _part(1, server_hello(b"\x03\x04")) + _part(1, b"\x17\x03\x03\0\x05abcde")
    )
    yield _part(0, hello[:60]) + _part(0x88, b"")
    chain = message(11, b"\0\0\x06\0\0\x03abc")
    yield _part(0, hello) + _part(1, server_hello(None, b"\xc0\x2f")) + _part(0x23, chain)
    old = _part(0, hello) + _part(1, server_hello(None, b"\x00\x2f"))
    yield old + _part(0x23, message(4, b"\0\0\0\0\0\x03abc"))
    full = old + _part(0x23, message(14, b"")) + _part(0x22, message(16, b"\0\x10" + bytes(16)))
    yield full + _part(2, b"\1") + _part(0x22, bytes(64)) + _part(3, b"\1") + _part(0x33, bytes(80))
    yield _part(0, hello) + _part(0x13, b"\x02\x28") + _part(1, b"no record")


def _tls_sealed() -> Iterator[bytes]:
    alpn = message(8, b"\0\x09" + extension(16, b"\0\x03\x02h2"))
    chain = message(11, b"\0\0\0\x08\0\0\x03abc\0\0")
    inside = alpn + chain + message(20, bytes(32)) + b"\x16"
    client = message(20, bytes(32)) + b"\x16"
    data = _part(5, b"hello\x17") + _part(4, message(24, b"\0") + b"\x16") + _part(5, b"\x01\0\x15")
    yield _part(5, inside) + _part(4, client) + data
    yield _part(5, b"hello\x17") + _part(4, b"\0\0\0") + _part(0x12, b"\x01")


def _key_logs() -> Iterator[bytes]:
    yield KEY_LOG
    yield b"CLIENT_RANDOM 00 11\n# x\nRSA Session-ID:00 Master-Key:" + b"00" * 48 + b"\n"
