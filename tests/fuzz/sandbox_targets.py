"""What is fuzzed of the sandbox: requests of two clients to a NameServer and a broker.

Through connections without sockets, on a loop whose clock goes on as far as it is told. Whatever is
asked: no slip of ours, no callback that fails, and a sandbox that goes on answering.
"""

from __future__ import annotations

import asyncio
import atexit
import random
import socket
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from dissectors.decode.strict_reader import StrictReader
from dissectors.remoting.command import RESPONSE_FLAG
from dissectors.remoting.headers import header_fields, header_name
from dissectors.remoting.messages.message import StoredMessage, encode_message
from replay.sandbox import EventKind, Sandbox, SandboxEvent, SandboxOptions, TopicSpec
from replay.sandbox.broker import Broker
from replay.sandbox.injection.injector import Injector
from replay.sandbox.namesrv import NameServer
from replay.sandbox.server import Connection, Service
from replay.sandbox.state import BrokerState
from tests.dissectors.remoting.registrations import encode_registration
from tests.replay.sandbox.talk import heartbeat, pull_fields, send_fields
from tests.traffic.commands import Command

from .tokens import expanded

MAX_FIELD = 30_000
MOST_REQUESTS = 24
NOW_MS = 1_700_000_000_000
LATER_S = (0, 1, 20, 200)
"""how far the clock goes on after a request"""
PLAUSIBLE = {
    **send_fields("Orders", UNIQ_KEY="U"),
    **pull_fields("Orders", hold_ms=1000),
    "group": "g",
    "consumerGroup": "g",
    "producerGroup": "g",
    "clientId": "one",
    "key": "U",
    "offset": "0",
    "commitOffset": "1",
    "maxNum": "8",
    "maxMsgNums": "8",
    "perm": "6",
    "readQueueNums": "2",
    "writeQueueNums": "2",
    "timestamp": "1",
    "order": "false",
    "invisibleTime": "1000",
    "pollTime": "1000",
    "bornTime": str(NOW_MS),
    "initMode": "0",
    "extraInfo": "0 1700000000000 1000 0 0 broker-a 0 0",
    "delayLevel": "1",
    "originTopic": "T",
    "commitOrRollback": "8",
    "tranStateTableOffset": "0",
    "commitLogOffset": "0",
    "namespace": "n",
    "value": "v",
    "brokerName": "broker-a",
    "brokerId": "0",
    "brokerAddr": "10.0.0.1:1",
    "clusterName": "c",
    "beginTimestamp": "0",
    "mode": "PULL",
    "endTimestamp": "9999999999999",
    "defaultTopic": "TBW102",
    "defaultTopicQueueNums": "2",
    "bornTimestamp": str(NOW_MS),
    "flag": "0",
    "sysFlag": "0",
    "properties": "",
    "id": "0",
}
"""what a field has that the input does not change"""
PROPERTIES = (
    *("", "DELAY\x011\x02", "TIMER_DELAY_SEC\x013\x02", "TRAN_MSG\x01true\x02PGROUP\x01g\x02"),
    *(
        "INNER_NUM\x013\x02",
        "KEYS\x01a b\x02TAGS\x01t\x02",
        "MSG_TYPE\x01reply\x02",
        "__SHARDINGKEY\x01",
    ),
)


@cache
def codes() -> tuple[int, ...]:
    """Return the requests that a broker or a NameServer serves, and one that nobody does."""
    box = _Unheard(lambda event: None)
    _loop().run_until_complete(box.start())
    (broker,) = box.brokers.values()
    served = {*broker.handlers, *cast(NameServer, box.services[-1]).handlers}
    _loop().run_until_complete(box.close())
    return (*sorted(served), 9999)


def requests(data: bytes) -> None:
    """Requests, each a head of five bytes (who, code, how, field, length) and its text."""
    if data and codes():
        _loop().run_until_complete(_asked(data))


async def _asked(data: bytes) -> None:
    slips: list[str] = []

    def told(event: SandboxEvent) -> None:
        if event.kind is EventKind.INTERNAL:
            slips.append(event.detail)

    loop = _loop()
    loop.set_exception_handler(lambda _, context: slips.append(str(context)))
    box = _Unheard(told)
    await box.start()
    peers = [_Peer(box, who & 1, f"10.1.0.{who >> 1}:1000") for who in range(4)]
    at = count = 0
    while at + 5 <= len(data) and count < MOST_REQUESTS:
        who, number, how, field, size = data[at : at + 5]
        text = expanded(data[at + 5 : at + 5 + size])
        at += 5 + size
        count += 1
        peer = peers[who & 3]
        if not peer.is_open:
            peer = peers[who & 3] = _Peer(box, who & 1, f"10.1.0.{who >> 1 & 1}:1000")
        peer.say(_request(codes()[number % len(codes())], count, how, field, text))
        loop.later(LATER_S[who >> 4 & 3])
        for _ in range(3):
            await asyncio.sleep(0)
        if who & 8:
            peer.hang_up()
    assert not slips, slips[0]
    for service in (0, 1):  # whoever comes next is served
        last = _Peer(box, service, "10.1.0.9:1000")
        last.say(Command(105 if service else 30, 1, ext={"topic": "TBW102", "queueId": "0"}).frame)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert last.answers == 1, "a new client is not answered"
    await box.close()
    await asyncio.sleep(0)
    assert not slips, slips[0]
    assert box.hub.unfinished == box.hub.unread == 0
    assert not box.hub.connections


def _request(code: int, opaque: int, how: int, field: int, text: bytes) -> bytes:
    """Return a request: fields that are plausible but for one, a body of its kind or the text."""
    if how & 64:
        return text  # no frame, or whatever it is
    words = text.decode("utf-8", "replace")[:MAX_FIELD]
    names = [one.wire for one in header_fields(header_name(code, False) or "")]
    fields = {name: PLAUSIBLE.get(name, "0") for name in names} or dict(PLAUSIBLE)
    if names and how & 1:
        fields[names[field % len(names)]] = words
    if "i" in fields and how & 2:
        fields["i"] = PROPERTIES[field % len(PROPERTIES)] + (words if how & 4 else "")
    body = text if how & 8 else _BODIES.get(code, b"x")
    flag = 2 if how & 16 else 0
    try:
        return Command(code, opaque, flag, ext=fields, body=body, binary=bool(how & 32)).frame
    except (ValueError, OverflowError):
        return text  # what the form cannot carry


_MESSAGE = encode_message(StoredMessage("Orders", b"x", {"UNIQ_KEY": "U"}, born_timestamp=1))
_TOPICS = {"topicConfigTable": {"T": {"topicName": "T", "readQueueNums": 4, "writeQueueNums": 4}}}
_MQ = b'{"topic":"Orders","brokerName":"broker-a","queueId":0}'
_BODIES = {
    34: heartbeat("one", producers=("g",), consumers={"g": "Orders"}),
    41: b'{"clientId":"one","consumerGroup":"g","mqSet":[' + _MQ + b"]}",
    42: b'{"clientId":"one","consumerGroup":"g","mqSet":[' + _MQ + b"]}",
    25: b"brokerPermission=6\nautoCreateTopicEnable=true\n",
    103: encode_registration({"topicConfigSerializeWrapper": _TOPICS, "filterServerList": []}),
    320: bytes.fromhex("00000016") + bytes(18),
    400: b'{"topic":"Orders","consumerGroup":"g","clientId":"one","strategyName":"AVG"}',
    401: b'{"topic":"Orders","consumerGroup":"g","mode":"POP","popShareQueueNum":0}',
    200: b'{"groupName":"g","consumeEnable":true,"retryMaxTimes":3}',
    200151: b'{"consumerGroup":"g","topic":"Orders","a":[]}',
}
"""request code → a body that is one"""


class _Peer:
    """One connection of a client: what it sends and how often it was answered."""

    def __init__(self, box: _Unheard, service: int, address: str) -> None:
        self.answers = 0
        self._reader = StrictReader()
        served = box.services[-1] if service else box.services[0]
        self._connection = Connection(box.hub, served)
        self._transport = _Transport(self, address)
        self._connection.connection_made(self._transport)

    @property
    def is_open(self) -> bool:
        return self._connection.is_open

    def say(self, data: bytes) -> None:
        """Bytes in two pieces, wherever they are cut."""
        half = len(data) // 2
        for piece in (data[:half], data[half:]):
            self._connection.data_received(piece)

    def hang_up(self) -> None:
        self._connection.connection_lost(None)

    def receive(self, data: bytes) -> None:
        for one in self._reader.receive(data):
            self.answers += bool(one.command.flag & RESPONSE_FLAG)
        assert self._reader.problem is None, "no frame was answered"


class _Transport(asyncio.Transport):
    """A transport whose other end reads everything at once."""

    def __init__(self, peer: _Peer, address: str) -> None:
        super().__init__()
        self._peer = peer
        host, _, port = address.rpartition(":")
        self._names = {"peername": (host, int(port)), "sockname": ("127.0.0.1", 10911)}
        self._closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._names.get(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._peer.receive(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.close()

    def close(self) -> None:
        self._closing = True


class _Unheard(Sandbox):
    """A sandbox that listens on nothing; its clock is that of the loop."""

    def __init__(self, told: Callable[[SandboxEvent], None]) -> None:
        super().__init__(SandboxOptions(topics=[TopicSpec("Orders")], on_event=told))
        self.services: list[Service] = []
        """the broker, then the NameServer"""

    def _bind(self, port: int) -> socket.socket:
        named = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 10911), close=lambda: None)
        return cast(socket.socket, named)

    def _listen(self, service: Service, bound: socket.socket) -> None:
        self.services.append(service)

    def _broker(self, name: str, address: str, injector: Injector) -> Broker:
        began = _loop().time()
        clock = lambda: NOW_MS + int((_loop().time() - began) * 1000)  # noqa: E731
        state = BrokerState(name, address, self.options, self.hub, clock, random.Random(1))
        broker = self.brokers[name] = Broker(state, injector)
        return broker

    async def close(self) -> None:
        """End it; nothing listens, so the injector is closed here."""
        await super().close()
        self.injector.close()


class _Loop(asyncio.SelectorEventLoop):
    """A loop whose clock goes on as far as it is told."""

    def __init__(self) -> None:
        self._at = 1000.0
        super().__init__()

    def time(self) -> float:
        return self._at

    def later(self, seconds: float) -> None:
        """Go on by so much."""
        self._at += seconds


@cache
def _loop() -> _Loop:
    loop = _Loop()
    atexit.register(loop.close)
    return loop


TARGETS: dict[str, Callable[[bytes], None]] = {"requests": requests}
"""name and what takes the bytes"""
