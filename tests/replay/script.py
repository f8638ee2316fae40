"""A network without sockets: a clock that a test moves, and peers that answer as it says.

A `Peer` gets whole requests and decides: answer, keep silent, send garbage, end the connection.
`run` moves the clock from event to event until an operation has ended.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from random import Random

from dissectors.remoting.bodies.registry import encode_body
from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand
from dissectors.remoting.framing.frame import Frame
from dissectors.remoting.framing.frame_decoder import KEEP_ALL, FrameDecoder
from dissectors.remoting.header_codec import decode_header
from replay.cluster.client import ClusterClient
from replay.config import ProducerConfig
from replay.sending.send import Sender
from replay.wire.network import LinkUser
from replay.wire.operation import RunningOperation
from replay.wire.request import encode_command
from replay.wire.steps import Steps

MS = 1_000_000
EPOCH = 1_700_000_000_000 * MS
NAMESRV = "10.0.0.1:9876"
ROUTE, HEARTBEAT, SEND_V2 = 105, 34, 310

Behaviour = Callable[["ScriptLink", RemotingCommand, bytes], None]


class ScriptTimer:
    """A timer of the scripted clock."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class ScriptLink:
    """A connection to a scripted peer."""

    def __init__(self, network: ScriptNetwork, address: str, user: LinkUser, number: int) -> None:
        self.local = f"10.9.9.9:{40000 + number}"
        self.peer = address
        self.writable = True
        self.open = True
        self.written = b""
        self._network = network
        self._user = user
        self._decoder = FrameDecoder(0, [], KEEP_ALL, True)

    def write(self, data: bytes) -> None:
        assert self.open, "written to a connection that was ended"
        self.written += data
        frames: list[Frame] = []
        self._decoder.receive(data, 0, len(data), 0, 0, 0, frames)
        for frame in frames:
            command = decode_header(frame.serialize_type, frame.header)
            assert command is not None
            self._network.requests.append((self._network.now(), self.peer, command, frame.body))
            self._network.later(0, lambda c=command, b=frame.body: self._serve(c, b))

    def close(self) -> None:
        self.open = False

    abort = close

    def _serve(self, command: RemotingCommand, body: bytes) -> None:
        if self.open:
            self._network.peers[self.peer](self, command, body)

    # what a peer does

    def answer(
        self,
        command: RemotingCommand,
        code: int = 0,
        fields: dict[str, str] | None = None,
        body: bytes = b"",
        remark: str | None = None,
        delay_ms: int = 0,
    ) -> None:
        """Answer a request."""
        if command.is_oneway:
            return
        answer = RemotingCommand(
            code, command.opaque, RESPONSE_FLAG, "JAVA", 479, remark, fields or {}
        )
        self.send(encode_command(answer, body), delay_ms)

    def send(self, data: bytes, delay_ms: int = 0) -> None:
        """Send bytes."""
        self._network.later(delay_ms, lambda: self.open and self._user.received(data))

    def end(self, reason: str = "closed by the other side", delay_ms: int = 0) -> None:
        """End the connection."""

        def now() -> None:
            if self.open:
                self.open = False
                self._user.ended(reason)

        self._network.later(delay_ms, now)


class ScriptNetwork:
    """Addresses, what answers there, and a clock."""

    def __init__(self) -> None:
        self.time = 1_000_000 * MS
        self.peers: dict[str, Behaviour] = {}
        """address → what it does with a request; an address that is not here refuses"""
        self.silent: set[str] = set()
        """addresses that do not even refuse"""
        self.requests: list[tuple[int, str, RemotingCommand, bytes]] = []
        """(time, address, request, body) of all that was written"""
        self.links: list[ScriptLink] = []
        self.connect_ms = 0
        self._events: list[tuple[int, int, ScriptTimer]] = []
        self._order = itertools.count()

    def now(self) -> int:
        return self.time

    def epoch(self) -> int:
        return self.time + EPOCH

    def open(self, address: str, timeout_ns: int, user: LinkUser) -> Callable[[], None]:
        assert timeout_ns > 0

        def connect() -> None:
            if address in self.peers:
                self.links.append(ScriptLink(self, address, user, len(self.links)))
                user.opened(self.links[-1])
            elif address not in self.silent:
                user.refused("connection refused", "is it running?")

        timer = self.later(self.connect_ms, connect)
        return timer.cancel

    def call_at(self, when: int, callback: Callable[[], None]) -> ScriptTimer:
        timer = ScriptTimer(callback)
        heapq.heappush(self._events, (when, next(self._order), timer))
        return timer

    def later(self, delay_ms: int, callback: Callable[[], object]) -> ScriptTimer:
        return self.call_at(self.time + delay_ms * MS, lambda: (callback(), None)[1])

    def local_address(self, address: str) -> str:
        return "10.9.9.9"

    def step(self) -> bool:
        """Deal with the next event; whether there was one."""
        while self._events:
            when, _, timer = heapq.heappop(self._events)
            if timer.callback is None:
                continue
            self.time = max(self.time, when)
            callback, timer.callback = timer.callback, None
            callback()
            return True
        return False

    def run(self, until_ms: int) -> None:
        """Let this much time go by."""
        end = self.time + until_ms * MS
        while self._events and self._events[0][0] <= end:
            if self._events[0][2].callback is None:
                heapq.heappop(self._events)
            else:
                self.step()
        self.time = max(self.time, end)

    def sent(self, code: int | None = None) -> list[tuple[str, RemotingCommand]]:
        """Address and command of the requests of a code; all without one."""
        return [
            (address, command)
            for _, address, command, _ in self.requests
            if code is None or command.code == code
        ]


def route_body(brokers: dict[str, str], queues: int = 4, perm: int = 6) -> bytes:
    """The route of a topic that these brokers (name → master) have."""
    return encode_body(
        ROUTE,
        True,
        {
            "brokerDatas": [
                {"brokerAddrs": {"0": address}, "brokerName": name, "cluster": "c"}
                for name, address in brokers.items()
            ],
            "filterServerTable": {},
            "queueDatas": [
                {
                    "brokerName": name,
                    "perm": perm,
                    "readQueueNums": queues,
                    "topicSysFlag": 0,
                    "writeQueueNums": queues,
                }
                for name in brokers
            ],
        },
    )


STORED = {"msgId": "0A00000B00002A9F00000000000003E8", "queueId": "0", "queueOffset": "7"}


def stored(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
    """A broker that stores what it is sent."""
    link.answer(command, 0, {**STORED, "queueId": command.ext_fields.get("e", "0")})


def refusing(code: int, remark: str | None = None, delay_ms: int = 0) -> Behaviour:
    """A broker that answers sends with an error code."""

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        sends = command.code in (10, 310, 320)
        link.answer(command, code if sends else 0, {}, b"", remark, delay_ms if sends else 0)

    return serve


def mute(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
    """A broker that takes everything and says nothing."""


def dropping(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
    """A broker that ends the connection on every request."""
    link.end()


class Bench:
    """A producer's core on the scripted network, with brokers a, b, c at 10.0.1.1 to 3."""

    def __init__(self, **settings: object) -> None:
        self.network = ScriptNetwork()
        self.brokers = {f"broker-{name}": f"10.0.1.{at}:10911" for at, name in enumerate("abc", 1)}
        self.network.peers[NAMESRV] = self.name_server
        for address in self.brokers.values():
            self.network.peers[address] = stored
        self.known = {"T"}
        """topics that the NameServer has a route of"""
        settings = {"group": "g", "namesrv": NAMESRV, **settings}
        self.config = ProducerConfig(**settings)  # type: ignore[arg-type]
        self.client = ClusterClient(self.config, self.network, Random(1))
        self.sender = Sender(self.client, Random(1))

    def name_server(self, link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        """A NameServer that knows `known`."""
        topic = command.ext_fields["topic"]
        if topic in self.known:
            link.answer(command, 0, {}, route_body(self.brokers))
        else:
            link.answer(command, 17, {}, b"", f"No topic route info for {topic}")

    def run(self, steps: Steps[object], most_ms: int = 60_000) -> RunningOperation[object]:
        """Run an operation to its end, in scripted time."""
        operation = self.client.runner.start(steps)
        end = self.network.time + most_ms * MS
        while not operation.done:
            assert self.network.step(), "nothing will ever happen"
            assert self.network.time <= end, "it takes too long"
        return operation

    def addresses(self, code: int = SEND_V2) -> list[str]:
        """Where the requests of a code went, in order."""
        return [address for address, _ in self.network.sent(code)]
