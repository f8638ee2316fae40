"""The proxy on an asyncio loop: listeners, and one server connection per client connection.

A client is read only while its server accepts bytes, and vice versa. A side that has finished
sending may still read (half-close), except with TLS, gRPC, or faults. A connection is reset if the
guard refuses it or its server is unreachable; while that server refuses connections, new ones are.
RocketMQ: NettyRemotingServer, NettyRemotingClient.
"""

from __future__ import annotations

import asyncio
import functools
import itertools
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, cast

from dissectors.endpoint import endpoint_text, host_of, split_endpoint
from dissectors.remoting.command import ONEWAY_FLAG, RemotingCommand

from ..accepting import Acceptor, OpenFiles, allow_files, bound_socket, run_server
from ..errors import ConfigError
from ..safety import TargetRefused
from ..sandbox.events import EventKind, SandboxEvent
from ..sandbox.injection.injector import Injector
from ..sandbox.room import Room
from ..sandbox.server import Connection, HandlerResponse
from ..transport.aio import CLOSED, AioLink, AioNetwork
from ..transport.problems import is_ip_address
from ..transport.tls import server_context
from ..wire.network import Link
from ..wire_capture import WireCapture, WireConnection
from .faults import INJECTED, FaultGate, FaultyServer, ProxiedRequest, ServerResponse, frame_of
from .fronts import WILDCARDS, Front, Fronts
from .grpc_relay import GrpcRelay
from .options import ProxyOptions, check_options
from .relay import ProxyRelay

NAMESRV: Final = "namesrv"
_HIGH_WATER: Final = 64 * 1024
"""bytes that wait for a slow reader, from which on the other side is not read"""
_LINGER_SECONDS: Final = 10.0
"""time that a closed connection has to take what was written"""
_RETRY_SECONDS: Final = 0.25
"""time between attempts to reach a server that refuses connections"""
_CHECK_SECONDS: Final = 0.25
"""longest time, for each server, that the end of a connection waits until it is known whether that
server is down"""
_MOST_CHECKS: Final = 64
"""new fronts that are checked at the same time; more would take many files at once"""
_AT_ONCE_SECONDS: Final = 1.0
"""time in which a server that is down refuses a connection; a silent one needs longer"""
_FLUSH_SECONDS: Final = 0.05
"""time after which readers of the recording see a packet"""


class Proxy:
    """A proxy; listens between `start` and `close`."""

    def __init__(self, options: ProxyOptions) -> None:
        """Raise ConfigError for invalid options."""
        check_options(options)
        self.options = options
        self.namesrv = ""
        """own `host:port` that stands for the NameServers, once started"""
        self.connections: set[ProxyConnection] = set()
        """open connections"""
        self.counts: Counter[str] = Counter()
        """event counts: connections, rewritten responses, refused connections, …"""
        self.room = Room(options.memory_limit)
        """memory that connections share"""
        self.grpc = ""
        """own `host:port` for clients of gRPC, once started; empty: none"""
        self.grpc_network: AioNetwork
        """opens connections to real servers that speak gRPC"""
        self.network: AioNetwork
        """opens connections to real servers, once started"""
        self.wire: WireCapture | None = None
        """the recording"""
        self.fronts = Fronts(options.host, self._listen, self._not_fronted)
        """own addresses of brokers"""
        self.injector: Injector
        """injects faults, once started"""
        self._faulty: dict[str, FaultyServer] = {}
        self.files = OpenFiles(lambda: len(self.connections), each=2)
        """counts the open files of all connections"""
        self._ports: list[_Port] = []
        self._unchecked = 0
        """ports of new fronts of which it is not known yet whether their server is down"""
        self._held: list[Callable[[], None]] = []
        """calls that end the wait of connections for these ports"""
        self._tls: ssl.SSLContext | None = None
        self._grpc_tls: ssl.SSLContext | None = None  # its ALPN must not be offered to the others
        self._flushing: asyncio.TimerHandle | None = None

    async def start(self) -> Proxy:
        """Listen; raise ConfigError if a port is in use or a TLS file is unusable."""
        options = self.options
        if options.listen_cert is not None:
            files = options.listen_cert, options.listen_key, options.key_password
            self._tls, self._grpc_tls = server_context(*files), server_context(*files)
            self._grpc_tls.set_alpn_protocols(["h2"])
        self.injector = Injector(options.seed, asyncio.get_running_loop().time, INJECTED)
        self.faulty(NAMESRV)
        self.injector.add(options.injections)
        self.network = AioNetwork(options.tls, self.why_not, _HIGH_WATER)
        self.grpc_network = AioNetwork(options.tls, self.why_not, _HIGH_WATER, ("h2",))
        bound, self.namesrv = self._bind(options.port, "host")
        if itself := [one for one in options.namesrv if self.fronts.leads_here(one)]:
            bound.close()
            reason = f"the NameServer {itself[0]} is the address that the proxy listens on"
            raise ConfigError(reason, "give another port", setting="host")
        if options.wire is not None:
            self.wire = WireCapture("", options.wire)
            self._flush_wire()
        self._listen(self._front(NAMESRV, bound, options.namesrv))
        if options.grpc:
            bound, self.grpc = self._bind(options.grpc_port, "grpc_port")
            front = self._front("grpc", bound, (options.grpc,), grpc=True)
            self.fronts.add(options.grpc, front)
            self._listen(front)
        return self

    def _bind(self, port: int, setting: str) -> tuple[socket.socket, str]:
        """Return a bound socket and its own `host:port`; ConfigError if the port is in use."""
        host = self.options.host
        try:
            bound = bound_socket(host, port)
        except OSError as error:
            reason = f"cannot listen on {endpoint_text(host, port)}: {error.strerror or error}"
            raise ConfigError(reason, "give another port", setting=setting) from None
        self.fronts.add_own(bound)
        return bound, endpoint_text(host, bound.getsockname()[1])

    def _front(
        self, name: str, bound: socket.socket, targets: tuple[str, ...], grpc: bool = False
    ) -> Front:
        port = bound.getsockname()[1]
        return Front(name, targets, self.options.host, port, ((bound, targets),), grpc)

    async def close(self) -> None:
        """Close every connection and stop listening."""
        # first, so that no connection comes while the others end
        for port in self._ports:
            port.close()
        for port in self._ports:
            await port.acceptor.settled()
        self._ports = []
        self.injector.close()
        for connection in list(self.connections):
            connection.close()
        await self.network.close()
        await self.grpc_network.close()
        if self._flushing is not None:
            self._flushing.cancel()
        if self.wire is not None:
            self.wire.flush()

    def tell(
        self, kind: EventKind, server: str, peer: str = "", detail: str = "", count: str = ""
    ) -> None:
        """Emit an event, and count it under a name."""
        if count:
            self.counts[count] += 1
        if self.options.on_event is not None:
            at = time.time_ns() // 1_000_000
            self.options.on_event(SandboxEvent(at, kind, server, peer, detail))

    def faulty(self, name: str) -> FaultyServer:
        """Return the injection server of the fronts with that name."""
        server = self._faulty.get(name)
        if server is None:
            server = FaultyServer(name, self.tell, lambda: self.connections)
            self._faulty[name] = server
            self.injector.watch(server)
        return server

    def advertised_to(self, local: str) -> str:
        """Return the host for routes sent to a client that connected to this own address."""
        options = self.options
        if options.advertised or options.host not in WILDCARDS:
            return options.advertised or options.host
        # a client that reached this address reaches the other ports there, too
        return host_of(local)

    def why_not(self, address: str, named: str) -> str | None:
        """Return why the proxy does not connect to an address; None: it may."""
        if self.fronts.leads_here(address):
            return f"{address} is this proxy; check brokerIP1 and listenPort of the broker"
        guard = self.options.guard
        return None if guard is None else guard(address, named)

    def _flush_wire(self) -> None:
        """Flush the recording periodically for its readers."""
        assert self.wire is not None
        self.wire.flush()
        self._flushing = asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self._flush_wire)

    def _listen(self, front: Front) -> None:
        """Accept connections to a front."""
        options = self.options
        tls = self._grpc_tls if front.grpc else self._tls
        for bound, targets in front.sockets:
            port = _Port(self, front, bound, targets, tls)
            self._ports.append(port)
            # Brokers behind NAT and RocketMQ proxies have no VIP channel, and few clients use one:
            # a check would lead to attempts that never end.
            is_first = targets == front.targets
            named = front.targets in (options.namesrv, (options.grpc,))
            if is_first and not named and self._may_check(targets):
                self._unchecked += 1
                port.check(self._checked)
        own = endpoint_text(front.host, front.port)
        self.tell(EventKind.LISTENING, front.name, own, f"{own} for {', '.join(front.targets)}")

    def _may_check(self, targets: Iterable[str]) -> bool:
        """Return whether the user has allowed these addresses already; no name is looked up."""
        return self._unchecked < _MOST_CHECKS and all(
            is_ip_address(host_of(one)) and self.why_not(one, one) is None for one in targets
        )

    def _checked(self) -> None:
        self._unchecked -= 1
        if not self._unchecked:
            held, self._held = self._held, []
            for release in held:
                release()

    def once_checked(self, release: Callable[[], None]) -> bool:
        """Return whether servers of new fronts are being checked; call `release` at the end."""
        if self._unchecked:
            self._held.append(release)
        return self._unchecked > 0

    def _not_fronted(self, reason: str) -> None:
        self.tell(EventKind.REFUSED, NAMESRV, "", reason, count="addresses not fronted")

    def network_of(self, front: Front) -> AioNetwork:
        """Return what opens connections to the real servers of a front."""
        return self.grpc_network if front.grpc else self.network


def _ignore(*_: object) -> None:
    pass


@dataclass(slots=True)
class _Side:
    """The callbacks of one link to a client or a server."""

    opened: Callable[[Link], None]
    refused: Callable[[str, str], None] = _ignore
    received: Callable[[bytes], None] = _ignore
    ended: Callable[[str], None] = _ignore
    resumed: Callable[[], None] = _ignore


class _Attempt:
    """An attempt to reach any of several servers; a connection that opens is closed again."""

    def __init__(
        self,
        network: AioNetwork,
        targets: tuple[str, ...],
        seconds: float,
        done: Callable[[bool], object],
    ) -> None:
        """`seconds` is the limit for each server; `done` is called with whether one accepts."""
        self._network = network
        self._left = iter(targets)
        self._timeout = int(seconds * 1e9)
        self._done = done
        self._side = _Side(self._opened, self._refused)
        self._next()

    def _next(self) -> None:
        target = next(self._left, None)
        if target is None:
            self._done(False)
        else:
            self._cancel = self._network.open(target, self._timeout, self._side)

    def cancel(self) -> None:
        """End the attempt; `done` is not called."""
        self._cancel()

    def _opened(self, link: Link) -> None:
        link.abort()
        self._done(True)

    def _refused(self, *_: str) -> None:
        self._next()


class _Port:
    """A listening socket of a front; it refuses connections while its servers do.

    Otherwise a client would be connected and then reset. Java's clients send a heartbeat as soon as
    they are connected, and connect again at once: hundreds of times per second.
    """

    def __init__(
        self,
        proxy: Proxy,
        front: Front,
        bound: socket.socket,
        targets: tuple[str, ...],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._proxy = proxy
        self._front = front
        self._targets = targets
        self._refuses = False
        self._retry: _Attempt | asyncio.TimerHandle | None = None
        """the attempt to reach a server that is down, or the wait for the next one"""
        self._check: _Attempt | None = None
        """the attempt to find out whether a server is down"""
        self._checked_at = -_RETRY_SECONDS
        self._waiting: list[Callable[[], None]] = []
        """called after the check"""
        tell = functools.partial(proxy.tell, EventKind.REFUSED, front.name, "")
        self.acceptor = Acceptor(bound, self._accepted, proxy.files, tell, tls)

    def close(self) -> None:
        """Stop listening."""
        for attempt in (self._retry, self._check):
            if attempt is not None:
                attempt.cancel()
        self.acceptor.close()

    def unreachable(self) -> None:
        """Refuse connections until a server can be reached."""
        if self._refuses:
            return
        try:
            self.acceptor.refuse()
        except OSError as error:  # another process took the port in between
            own = endpoint_text(self._front.host, self._front.port)
            detail = f"cannot keep {own}: {error.strerror or error}; restart the proxy"
            self._proxy.tell(EventKind.REFUSED, self._front.name, detail=detail)
            return
        self._refuses = True
        detail = f"{', '.join(self._targets)} cannot be reached: new connections are refused"
        self._proxy.tell(EventKind.REFUSED, self._front.name, detail=detail)
        self._wait()

    def server_ended(self, end: Callable[[], None]) -> None:
        """Call `end`, which ends a connection that its server has ended.

        If that server is down, new connections are refused by then: a client that connects again at
        once sees what it would see without the proxy.
        """
        now = asyncio.get_running_loop().time()
        if self._check is None and (self._refuses or now - self._checked_at < _RETRY_SECONDS):
            end()
        else:
            self.check(end)

    def check(self, done: Callable[[], None]) -> None:
        """Check whether the server is down; call `done` at the end, at most 0.25 s later."""
        self._waiting.append(done)
        if self._check is None:
            self._checked_at = asyncio.get_running_loop().time()
            self._check = self._attempt(_CHECK_SECONDS, self._checked)

    def _checked(self, reachable: bool) -> None:
        self._check = None
        spent = asyncio.get_running_loop().time() - self._checked_at
        if not reachable and spent < _CHECK_SECONDS:  # a silent server is not known to be down
            self.unreachable()
        waiting, self._waiting = self._waiting, []
        for done in waiting:
            done()

    def _accepted(self) -> AioLink:
        connection = ProxyConnection(self._proxy, self._front, self._targets, self)
        return AioLink(self._proxy.network_of(self._front), connection.client)

    def _attempt(self, seconds: float, done: Callable[[bool], None]) -> _Attempt:
        return _Attempt(self._proxy.network_of(self._front), self._targets, seconds, done)

    def _wait(self) -> None:
        def again() -> None:
            self._retry = self._attempt(self._proxy.options.connect_seconds, self._retried)

        self._retry = asyncio.get_running_loop().call_later(_RETRY_SECONDS, again)

    def _retried(self, reachable: bool) -> None:
        if not reachable:
            self._wait()
            return
        self._retry, self._refuses = None, False
        self.acceptor.accept()
        own = endpoint_text(self._front.host, self._front.port)
        self._proxy.tell(EventKind.LISTENING, self._front.name, own, f"{own} can be reached again")


class ProxyConnection:
    """A client connection and its connection to the real server."""

    def __init__(
        self,
        proxy: Proxy,
        front: Front,
        targets: tuple[str, ...],
        port: _Port,
    ) -> None:
        self.front = front
        """what the client connected to"""
        self.peer = ""
        """address of the client, `ip:port`"""
        self._proxy = proxy
        self._targets = itertools.chain(targets)
        self._target = ""
        self._port = port
        self._tried_at = 0.0
        self._client: AioLink | None = None
        self._server: AioLink | None = None
        self._opening: asyncio.Task[None] | None = None
        self._give_up: Callable[[], None] | None = None
        self._early: list[bytes] = []
        self._held: list[tuple[bytes, bytes | None]] | None = None
        """what waits until servers of new fronts are checked; None: nothing has to"""
        self._wire: WireConnection | None = None
        self._client_waits = self._server_waits = 0
        self._closed = False
        self._finished: AioLink | None = None
        self.judged = b""
        """an injected fault is decided on: the frame of the request"""
        self.pace: Callable[[int], float] | None = None
        """an injected fault: seconds to wait before more is read, by the bytes just read"""
        injector = proxy.injector
        self._gate = None
        if injector.is_active:
            self._gate = FaultGate(self, proxy.faulty(front.name), injector)
        self._relay: ProxyRelay | GrpcRelay
        if front.grpc:
            self._relay = GrpcRelay(self, self._endpoint, proxy.room)
        else:
            self._relay = ProxyRelay(self, self._rewritten, proxy.room, self._gate)
        self._from_client = self._relay.from_client
        self.client = _Side(
            self._client_opened,
            received=self._early_or_paced,
            ended=self._client_ended,
            resumed=self._client_takes,
        )
        """callbacks of the client connection"""
        self._server_side = _Side(
            self._server_opened,
            self._server_refused,
            self._relay.from_server,
            self._server_ended,
            self._server_takes,
        )

    # -- the client -----------------------------------------------------------------------------

    def _client_opened(self, link: Link) -> None:
        """Open the connection to the real server, then read the client."""
        assert isinstance(link, AioLink)
        proxy = self._proxy
        self._client, self.peer = link, link.peer
        link.half_closed = lambda: self._half_closed(by_client=True)
        link.pause_reading()  # until the server can take what the client sends
        proxy.connections.add(self)
        if len(proxy.connections) > proxy.options.connections_limit:
            proxy.tell(EventKind.REFUSED, self.front.name, self.peer, "too many connections")
            self.close(reset=True)
            return
        proxy.tell(EventKind.CONNECTED, self.front.name, self.peer, count="connections")
        if not proxy.injector.admits(self.front.name, cast(Connection, self)):
            self.close(reset=True)
            return
        self._next_target()

    def _early_or_paced(self, data: bytes) -> None:
        """Handle bytes from the client before the server is reached, or with faults."""
        if self._server is None:  # TLS may have read some before the pause
            self._early.append(data)
        else:
            self._from_client(data)
            if self.pace is not None:
                self._read_slowly(self.pace(len(data)))

    def _client_takes(self) -> None:
        """Resume reading from the server."""
        self._proxy.room.take(-self._server_waits)
        if self._server_waits and self._server is not None:
            self._server.resume_reading()
        self._server_waits = 0

    def _server_takes(self) -> None:
        """Resume reading from the client."""
        self._proxy.room.take(-self._client_waits)
        # exactly one resume for each pause: pauses nest
        if self._client_waits and self._client is not None:
            self._client.resume_reading()
        self._client_waits = 0

    # -- the server -----------------------------------------------------------------------------

    def _next_target(self) -> None:
        target = next(self._targets, None)
        loop = asyncio.get_running_loop()
        if target is None:
            self.close(reset=True)
            if loop.time() - self._tried_at < _AT_ONCE_SECONDS:
                self._port.unreachable()
            return
        self._target, self._tried_at = target, loop.time()
        self._opening = loop.create_task(self._open(target))

    async def _open(self, target: str) -> None:
        options = self._proxy.options
        if options.consent is not None:
            try:
                await options.consent((target,))
            except TargetRefused as refusal:
                self._server_refused(str(refusal), "")
                return
        # the user may have taken a while to agree
        if not self._closed:
            timeout = int(options.connect_seconds * 1e9)
            proxy = self._proxy
            network = proxy.network_of(self.front)
            self._give_up = network.open(target, timeout, self._server_side)

    def _server_opened(self, link: Link) -> None:
        """Start forwarding bytes."""
        assert isinstance(link, AioLink)
        self._give_up = None
        if self._closed or self._client is None:
            link.abort()
            return
        self._server = link
        link.half_closed = lambda: self._half_closed(by_client=False)
        if self._proxy.wire is not None:
            self._wire = self._proxy.wire.opened(time.time_ns(), self.peer, link.peer)
        for data in self._early:
            self._from_client(data)
        self._early = []
        if self._gate is None:  # the common case: forward without going through this object
            self.client.received = self._from_client
        self._client.resume_reading()

    def _server_refused(self, reason: str, hint: str) -> None:
        """Try the next NameServer; if there is none, close the client's connection."""
        self._give_up = None
        if self._closed:
            return
        detail = f"{self._target}: {reason}" + (f"; {hint}" if hint else "")
        self._proxy.tell(
            EventKind.REFUSED, self.front.name, self.peer, detail, count="refused connections"
        )
        self._next_target()

    # -- the end --------------------------------------------------------------------------------

    def _half_closed(self, *, by_client: bool) -> bool:
        """Forward a half-close; return False if both sides must end."""
        finished, other = (self._client, self._server)[:: 1 if by_client else -1]
        if (
            finished is None
            or other is None
            or not (finished.can_half_close and other.can_half_close)
        ):
            return False
        if self._finished is not None or not isinstance(self._relay, ProxyRelay):
            return self._finished is finished  # a paused reader sees the end again
        if self._gate is not None:
            return False  # a fault may still have to send something
        self._finished = finished

        relay = self._relay

        def forward() -> None:
            if self._closed:
                return
            self._release()
            relay.finish(by_client)
            if self._wire is not None:
                self._wire.half_closed(time.time_ns(), by_peer=not by_client)
            other.half_close()

        if by_client:
            forward()
        else:
            self._port.server_ended(forward)
        return True

    def _client_ended(self, reason: str) -> None:
        """Close the connection to the server as the client closed its own."""
        self._end(True, reason != CLOSED)

    def _server_ended(self, reason: str) -> None:
        """Close the client's connection as the server closed its own."""
        reset = reason != CLOSED
        if self._closed or self._client is None:
            self._end(False, reset)
            return
        self._server = None
        self._client.pause_reading()  # what it sends has no receiver
        self._port.server_ended(lambda: self._end(False, reset))

    def close(self, reset: bool = False) -> None:
        """Close both sides: gracefully after pending writes, or at once."""
        self._end(False, reset)

    @property
    def front_name(self) -> str:
        """The name of the front that the client connected to."""
        return self.front.name

    @property
    def is_open(self) -> bool:
        """Whether something can still be written."""
        return not self._closed

    def _end(self, by_client: bool, reset: bool) -> None:
        if self._closed:
            return
        # what was held for new fronts still reaches the client
        if not reset:
            self._release()
        self._closed = True
        proxy = self._proxy
        proxy.connections.discard(self)
        proxy.room.take(-self._client_waits - self._server_waits)
        self._client_waits = self._server_waits = 0
        self._relay.close()
        if self._give_up is not None:
            self._give_up()
        for link in (self._client, self._server):
            if link is None:
                continue
            if reset:
                link.reset()
            else:
                link.close()
                # a side that no longer reads would keep the connection forever
                if link.unsent:
                    asyncio.get_running_loop().call_later(_LINGER_SECONDS, link.abort)
        self._client = self._server = self._finished = None
        if self._wire is not None:
            self._wire.closed(time.time_ns(), by_peer=not by_client, reset=reset)
        proxy.tell(EventKind.DISCONNECTED, self.front.name, self.peer)

    # -- interface for injected faults ----------------------------------------------------------

    def mark(self, fault: str) -> None:
        """Record the current request, with its injected fault."""
        judged, self.judged = self.judged, b""
        if judged:
            self.seen(judged, fault)

    def execute(self, request: ProxiedRequest, raw: bytes) -> None:
        """Forward a request; a fault may intercept its response."""
        if self._gate is not None:
            self._gate.wait_for(request)
        self.forward(raw)

    def respond(self, request: RemotingCommand, response: HandlerResponse) -> None:
        """Respond to a request with the server's response or a fault's error."""
        if request.flag & ONEWAY_FLAG:
            return
        shown = response.shown if isinstance(response, ServerResponse) else None
        self.to_client(frame_of(request, response), shown)

    def encode_response(self, request: RemotingCommand, response: HandlerResponse) -> bytes:
        """Return the frame of a response, for faults that truncate it."""
        return frame_of(request, response)

    def write(self, data: bytes) -> None:
        """Send bytes of a fault to the client."""
        self.to_client(data)

    def pause_reading(self) -> None:
        """Keep reading while a request is frozen.

        The kernel of a hung server accepts bytes, too. Recordings then show requests at their send
        time; the injector queues them in order, with a limit.
        """

    def resume_reading(self) -> None:
        """Do nothing, as `pause_reading`."""

    def _read_slowly(self, seconds: float) -> None:
        client = self._client
        if seconds > 0 and client is not None:
            client.pause_reading()
            asyncio.get_running_loop().call_later(seconds, client.resume_reading)

    # -- outlet of the relay --------------------------------------------------------------------

    def to_server(self, data: bytes) -> None:
        """Record bytes from the client and send them to the real server."""
        self.seen(data)
        self.forward(data)

    def forward(self, data: bytes) -> None:
        """Send bytes to the real server."""
        link = self._server
        if link is not None:
            link.send(data)
            if not link.writable:
                self._wait_for_server(link)

    def to_client(self, data: bytes, shown: bytes | None = None) -> None:
        """Send bytes to the client."""
        link = self._client
        if link is None:
            return
        if self._held is not None:
            self._held.append((data, shown))
            return
        if self._wire is not None:
            self._wire.received(time.time_ns(), data if shown is None else shown)
        link.send(data)
        if not link.writable and not self._server_waits and self._server is not None:
            self._server_waits = self._waiting(link)
            if self._server is not None:
                self._server.pause_reading()

    def seen(self, data: bytes, fault: str = "") -> None:
        """Record bytes of the client."""
        if self._wire is not None:
            self._wire.sent(time.time_ns(), data, fault)

    def unreadable(self, from_client: bool) -> None:
        """Report that bytes pass uninspected."""
        side = "the client" if from_client else "the server"
        self._proxy.tell(
            EventKind.BAD_BYTES,
            self.front.name,
            self.peer,
            f"{side} sent bytes that are not RocketMQ; they pass unchanged",
            count="connections of other protocols",
        )

    def overflow(self) -> None:
        """Close the connection: too many bytes are held."""
        detail = "too many bytes are held: a slow reader, or incomplete frames"
        self._proxy.tell(
            EventKind.REFUSED, self.front.name, self.peer, detail, count="dropped connections"
        )
        self.close(reset=True)

    def _waiting(self, link: AioLink) -> int:
        """Count bytes unread by a slow reader; close the connection above the limit."""
        size = max(1, link.unsent)
        if self._proxy.room.take(size):
            return size
        self.overflow()
        return 0

    def _wait_for_server(self, link: AioLink) -> None:
        """Pause reading from the client until the server has read the waiting bytes."""
        if not self._client_waits and self._client is not None:
            self._client_waits = self._waiting(link)
            if self._client is not None:
                self._client.pause_reading()

    def _endpoint(self, host: str, port: int, dialled: bool) -> tuple[str, int] | None:
        proxy = self._proxy
        local = "" if self._client is None else self._client.local
        advertised = proxy.advertised_to(local)
        real = split_endpoint(proxy.options.grpc)
        if real is not None and port == real[1] and (dialled or host == advertised):
            # A RocketMQ proxy returns the host that its client connected to, with its own port.
            host = real[0]
        proxy.counts["rewritten endpoints"] += 1
        fronted = proxy.fronts.grpc_front(host, port, advertised)
        self._hold()
        return fronted

    def _rewritten(self, body: bytes) -> bytes:
        proxy = self._proxy
        local = "" if self._client is None else self._client.local
        new = proxy.fronts.rewritten(body, proxy.advertised_to(local))
        if new != body:
            proxy.counts["rewritten responses"] += 1
            self._hold()
        return new

    def _hold(self) -> None:
        """Let the client learn of new fronts when those whose server is down refuse connections."""
        if self._held is None and self._proxy.once_checked(self._release):
            self._held = []
            if self._server is not None:
                self._server.pause_reading()

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is None or self._closed:
            return
        if self._server is not None:
            self._server.resume_reading()
        for data, shown in held:
            self.to_client(data, shown)


def run_proxy(
    options: ProxyOptions,
    started: Callable[[Proxy], None],
    tick: Callable[[], None],
    stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]],
    seconds: float | None = None,
) -> Proxy:
    """Run a proxy in this thread until `stoppable`'s argument is called or the time is up.

    `started` is called once it listens, `tick` every second. Returns the proxy, closed; raises
    ConfigError as `Proxy.start` does.
    """
    allow_files()
    proxy = Proxy(options)
    run_server(proxy, started, tick, stoppable, seconds)
    return proxy
