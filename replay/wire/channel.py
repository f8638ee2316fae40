"""The connections of one client: a channel per address, opened on demand, closed when idle.

A connection knows the protocol, a channel the link. Requests wait while their address is being
connected; if that fails, all fail. Each request ends with a response or an error within its
timeout.
RocketMQ: NettyRemotingClient, NettyRemotingAbstract, IdleStateHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dissectors.decode.strict_reader import StrictProblem, StrictReader
from dissectors.remoting.code_sets import SENDS
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand

from ..config import ProducerConfig
from ..errors import (
    ClientError,
    ClosedError,
    ConnectError,
    ConnectionLostError,
    InvalidMessageError,
    ProtocolError,
    SendTimeoutError,
)
from ..hooks import hook_error
from ..wire_capture import WireConnection
from .network import MS, Link, Network
from .request import decoration_of, encode_command
from .steps import Invoke, Steps

NEVER: Final = 1 << 62
"""ns: a time in the infinite future"""
# opaque is an int of Java: 31 bits stay positive
_OPAQUES: Final = 0x7FFFFFFF


class Opaques:
    """The opaques of a client's requests, unique across its connections."""

    __slots__ = ("_last",)

    def __init__(self, last: int = -1) -> None:
        self._last = last

    def next(self) -> int:
        """Return the next number, 0 to 2^31 - 1."""
        self._last = number = (self._last + 1) & _OPAQUES
        return number


OnRequest = Callable[["RemotingConnection", RemotingCommand, bytes], None]


class RemotingConnection:
    """The state of one connection."""

    def __init__(
        self, number: int, address: str, local: str, opaques: Opaques, on_request: OnRequest
    ) -> None:
        self.number = number
        """number of the connection, in the order in which they were opened"""
        self.address = address
        """the other side"""
        self.local = local
        """our side, `address:port`"""
        self.table: dict[int, Invoke] = {}
        """requests that are not answered, by opaque, the oldest first"""
        self.earliest = NEVER
        """earliest possible deadline of its requests"""
        self.used = 0
        """when something was last sent or received"""
        self.orphans = 0
        """responses without a request: late or duplicate"""
        self._opaques = opaques
        self._on_request = on_request
        self._reader = StrictReader(number)

    def begin(self, invoke: Invoke, now: int) -> bytes:
        """Assign an opaque to the request and return its bytes; ValueError over the frame limit."""
        opaque = self._opaques.next()
        request = invoke.request
        data = request.encode(opaque)
        invoke.opaque = opaque
        invoke.began = self.used = now
        invoke.local = self.local
        invoke.conversation = self.number
        invoke.request_bytes = len(data)
        if not request.oneway:
            self.table[opaque] = invoke
            if invoke.deadline < self.earliest:
                self.earliest = invoke.deadline
        return data

    def receive(self, data: bytes, now: int) -> ProtocolError | None:
        """Receive bytes: pass responses to their requests, and requests to their handler.

        Returns why the connection must end; None if it may go on.
        """
        self.used = now
        pop = self.table.pop
        for command, body, size in self._reader.receive(data):
            if command.flag & RESPONSE_FLAG:
                # `earliest` stays: a look too early costs less than a new minimum for each response
                invoke = pop(command.opaque, None)
                if invoke is None:
                    self.orphans += 1
                    continue
                invoke.complete(command, body, size, now)
            else:
                self._on_request(self, command, body)
        # Unlike a reader of captures, a client does not search for the next frame after a bad one.
        problem = self._reader.problem
        return None if problem is None else self._error_of(problem)

    def expire(self, now: int) -> list[Invoke]:
        """Remove the requests that timed out."""
        if now < self.earliest:
            return []
        table = self.table
        over = [invoke for invoke in table.values() if invoke.deadline <= now]
        for invoke in over:
            del table[invoke.opaque]
        self.earliest = min([invoke.deadline for invoke in table.values()], default=NEVER)
        return over

    def fail(self, error: ClientError, now: int) -> None:
        """Close the connection and fail all its requests."""
        table, self.table = self.table, {}
        self.earliest = NEVER
        for invoke in table.values():
            invoke.fail(error, now)

    def _error_of(self, problem: StrictProblem) -> ProtocolError:
        if problem.protocol is not None:
            hint = f"it looks like {problem.protocol}; check the port"
            return ProtocolError(f"{self.address} does not speak RocketMQ", hint)
        if problem.bad_header:
            return ProtocolError(f"{self.address} sent {problem.detail}")
        hint = (
            "check that this is the port of a NameServer or broker,"
            " and that both sides use TLS, or neither"
        )
        return ProtocolError(
            f"{self.address} sent what is not a RocketMQ frame ({problem.detail})", hint
        )


def timeout_error(invoke: Invoke, timeout_ms: int) -> SendTimeoutError:
    """Return the error of a request that timed out."""
    hint = "the server is slow, frozen, or unreachable"
    if invoke.request.code in SENDS:
        hint = "the broker is slow, frozen, or unreachable; it may have stored the message anyway"
    return SendTimeoutError(f"no response from {invoke.address} within {timeout_ms} ms", hint)


GO_AWAY: Final = int(ResponseCode.GO_AWAY)
_CLOSE_LEAST: Final = 100 * MS
"""a request that had more time than this closes its connection when it times out"""
_MOST_UNREAD: Final = 1 << 20
"""bytes of responses that a peer may ask for while it does not read"""
UNREAD: Final = ("bytes of responses that a peer does not read", _MOST_UNREAD, "connections ended")
_RESPONSE_BYTES: Final = 256
"""bytes of a response, besides what it repeats of the request"""


class Channel:
    """A channel to one address."""

    def __init__(self, channels: ChannelPool, address: str) -> None:
        self.address = address
        self.connection: RemotingConnection | None = None
        self.link: Link | None = None
        self.leaving = False
        """no further requests are accepted"""
        self.opened_by = NEVER
        """deadline for opening the connection"""
        self._channels = channels
        self._waiting: list[Invoke] = []
        self._oneways: list[Invoke] = []
        self._give_up: Callable[[], None] | None = None
        self._tap: WireConnection | None = None
        self._heard = False
        self._unread = 0

    @property
    def in_flight(self) -> int:
        """Number of requests that wait for a response or a connection."""
        table = self.connection.table if self.connection is not None else ()
        return len(table) + len(self._waiting) + len(self._oneways)

    @property
    def earliest(self) -> int:
        """Earliest possible deadline of this channel."""
        earliest = self.connection.earliest if self.connection is not None else NEVER
        return min(
            earliest,
            self.opened_by,
            min([invoke.deadline for invoke in self._waiting], default=NEVER),
            min([invoke.deadline for invoke in self._oneways], default=NEVER),
        )

    # -- requests -------------------------------------------------------------------------------

    def send(self, invoke: Invoke) -> None:
        """Write a request, or queue it until the connection is open."""
        link, connection = self.link, self.connection
        channels = self._channels
        now = channels.network.now()
        if now >= invoke.deadline:
            if link is None and self._give_up is None:
                channels.forget(self)  # it was made for this request, and is not opened
            invoke.fail(SendTimeoutError("the timeout passed before anything was sent"), now)
            return
        if link is None or connection is None:
            self._waiting.append(invoke)
            if self._give_up is None:
                self._open(invoke.deadline)
            channels.watch(min(invoke.deadline, self.opened_by))
            return
        try:
            data = connection.begin(invoke, now)
        except ValueError as error:
            invoke.fail(InvalidMessageError(str(error), "send less in one message"), now)
            return
        except Exception as error:  # a header or body has a wrong type: only this request fails
            reason = f"the request cannot be encoded: {type(error).__name__}: {error}"
            failed = InvalidMessageError(reason, "every field must be a string")
            failed.__cause__ = error
            invoke.fail(failed, now)
            return
        link.write(data)
        if self._tap is not None:
            self._tap.sent(channels.network.epoch(), data)
        if not invoke.request.oneway:
            if invoke.deadline < channels.watched:
                channels.watch(invoke.deadline)
        # in the send buffer: no response follows that could be waited for
        elif link.writable:
            invoke.written(now)
        else:
            self._oneways.append(invoke)
            channels.watch(invoke.deadline)

    def respond(
        self, request: RemotingCommand, response: RemotingCommand, body: bytes = b""
    ) -> None:
        """Respond to a request of the peer, unless it is oneway or the peer is gone."""
        if request.is_oneway or self.link is None or self.connection is None:
            return
        response.opaque = request.opaque
        response.serialize_type = request.serialize_type
        data = encode_command(response, body)
        self.link.write(data)
        if self._tap is not None:
            self._tap.sent(self._channels.network.epoch(), data)

    def _open(self, deadline: int) -> None:
        channels = self._channels
        now = channels.network.now()
        timeout = min(deadline - now, channels.config.connect_timeout_ms * MS)
        self.opened_by = now + timeout
        self._give_up = _ignore  # the transport may fail before it returns
        give_up = channels.network.open(self.address, timeout, self)
        # None: `opened` or `refused` was called meanwhile
        if self._give_up is not None:
            self._give_up = give_up

    # -- callbacks of the transport -------------------------------------------------------------

    def opened(self, link: Link) -> None:
        """Handle the open connection: write queued requests."""
        channels = self._channels
        self._give_up = None
        self.opened_by = NEVER
        number = channels.next_number()
        self.link = link
        connection = RemotingConnection(
            number, self.address, link.local, channels.opaques, self._request
        )
        connection.used = channels.network.now()
        self.connection = connection
        if channels.config.on_connected is not None:
            channels.config.on_connected(link.local, link.peer)
        if channels.config.wire is not None:
            now = channels.network.epoch()
            self._tap = channels.config.wire.opened(now, link.local, link.peer)
        waiting, self._waiting = self._waiting, []
        for invoke in waiting:
            if invoke.waiter is None or invoke.waiter.done:
                continue  # abandoned in the meantime
            # the callback of an earlier request may have ended the connection
            if self.link is link:
                self.send(invoke)
            else:
                ended = ConnectionLostError(f"the connection to {self.address} was ended")
                invoke.fail(ended, channels.network.now())

    def refused(self, reason: str, hint: str) -> None:
        """Handle a failed connection attempt: fail queued requests."""
        self._fail(ConnectError(f"no connection to {self.address}: {reason}", hint))

    def received(self, data: bytes) -> None:
        """Handle received bytes."""
        connection, channels = self.connection, self._channels
        if connection is None:
            return
        self._heard = True
        if self._tap is not None:
            self._tap.received(channels.network.epoch(), data)
        error = connection.receive(data, channels.network.now())
        if error is not None:
            self.end(error)
        # it said GO_AWAY, and this was its last response
        elif self.leaving and not self.in_flight:
            self.end(ClosedError(f"{self.address} went away"))

    def ended(self, reason: str) -> None:
        """Handle a connection closed by the peer or the network."""
        if self._tap is not None:
            self._tap.closed(self._channels.network.epoch(), by_peer=True)
        hint = "the server went down, or something in between closes connections"
        if not self._heard:
            hint = f"check that both sides use TLS, or neither (--tls, tls=); otherwise {hint}"
        self._fail(
            ConnectionLostError(f"the connection to {self.address} ended: {reason}", hint),
            by_peer=True,
        )

    def resumed(self) -> None:
        """Handle a drained send buffer."""
        self._unread = 0
        now = self._channels.network.now()
        oneways, self._oneways = self._oneways, []
        for invoke in oneways:
            invoke.written(now)

    def end(self, error: ClientError) -> None:
        """Close the connection or cancel opening it; its requests fail with the error."""
        link, give_up = self.link, self._give_up
        if link is not None:
            link.abort()
        elif give_up is not None:
            give_up()
        self._fail(error)

    def close(self, error: ClientError) -> None:
        """Close the connection after all written data has left; unanswered requests fail."""
        if self.link is not None:
            self.link.close()
            self._fail(error)
        else:
            self.end(error)

    def _fail(self, error: ClientError, by_peer: bool = False) -> None:
        """Remove the channel and fail its requests."""
        channels = self._channels
        now = channels.network.now()
        # All state is changed first, because the callbacks below may send again.
        connection, self.connection = self.connection, None
        self.link = None
        self._give_up = None
        self.opened_by = NEVER
        waiting, self._waiting = self._waiting, []
        oneways, self._oneways = self._oneways, []
        channels.forget(self)
        if connection is not None:
            if self._tap is not None:
                self._tap.closed(channels.network.epoch())
            connection.fail(error, now)
            channels.on_end(self.address, by_peer)
        for invoke in (*waiting, *oneways):
            invoke.fail(error, now)

    def _request(self, _: RemotingConnection, command: RemotingCommand, body: bytes) -> None:
        link = self.link
        if link is not None and not link.writable:
            self._unread += _RESPONSE_BYTES + sum(map(len, command.ext_fields.values()))
            if self._unread > _MOST_UNREAD:
                self._channels.config.budget.bound(*UNREAD).end(f"with {self.address}")
                reason = f"{self.address} asks and does not read the responses"
                self.end(ConnectionLostError(reason, "the broker is frozen or hostile"))
        if self.link is not None:
            self._channels.on_request(self, command, body)

    # -- timeouts -------------------------------------------------------------------------------

    def expire(self, now: int) -> None:
        """Fail the requests that timed out."""
        if self.connection is not None and self._expire_responses(self.connection, now):
            return
        if self.link is None and now >= self.opened_by:
            self.end(_too_slow(self.address))
            return
        over = [request for request in (*self._waiting, *self._oneways) if request.deadline <= now]
        if over:
            # Remove all before any callback: a callback may send again.
            self._waiting = [request for request in self._waiting if request.deadline > now]
            self._oneways = [request for request in self._oneways if request.deadline > now]
        for invoke in over:
            unopened = self.link is None
            invoke.fail(_too_slow(self.address) if unopened else _stuck(self.address), now)

    def _expire_responses(self, connection: RemotingConnection, now: int) -> bool:
        """Fail the requests that timed out; return whether that closed the connection."""
        over = connection.expire(now)
        close = self._channels.config.close_on_timeout and any(
            request.synchronous and request.deadline - request.began > _CLOSE_LEAST
            for request in over
        )
        if close:  # first, so that a retry opens a new connection
            reason = f"the connection to {self.address} was closed: a request timed out"
            self.end(ConnectionLostError(reason))
        for invoke in over:
            had = (invoke.deadline - invoke.began) // MS
            invoke.fail(timeout_error(invoke, max(had, 0)), now)
        return close


def _too_slow(address: str) -> ConnectError:
    hint = "check the address, whether it is reachable from here, and firewalls on the way"
    return ConnectError(f"no connection to {address}: no response in time", hint)


def _stuck(address: str) -> SendTimeoutError:
    return SendTimeoutError(f"{address} takes no more data", "the broker is frozen or overloaded")


def _ignore(*_: object) -> None:
    pass


OnChannelRequest = Callable[[Channel, RemotingCommand, bytes], None]


class ChannelPool:
    """All connections of one client."""

    def __init__(
        self, config: ProducerConfig, network: Network, on_request: OnChannelRequest
    ) -> None:
        self.config = config
        self.network = network
        self.opaques = Opaques()
        """numbers of requests, shared by all channels"""
        self.on_request = on_request
        """called with requests of peers"""
        self.watched = NEVER
        """time of the next timeout check"""
        self.on_watch: Callable[[int], None] = _ignore
        """called with a time earlier than `watched`"""
        self.on_end: Callable[[str, bool], None] = _ignore
        """called for each closed connection: its address, and whether the peer closed it"""
        self._by_address: dict[str, Channel] = {}
        self._leaving: list[Channel] = []
        self._number = 0
        self._decorate = decoration_of(config)
        self._closed = False

    def __iter__(self) -> Iterator[Channel]:
        return iter([*self._by_address.values(), *self._leaving])

    @property
    def open_count(self) -> int:
        """Number of connections that are open or being opened."""
        return len(self._by_address) + len(self._leaving)

    @property
    def in_flight(self) -> int:
        """Number of unanswered requests."""
        return sum([channel.in_flight for channel in self])

    def next_number(self) -> int:
        """Return the number of a new connection."""
        self._number += 1
        return self._number

    def get(self, address: str) -> Channel | None:
        """Return the channel to an address, if there is one."""
        return self._by_address.get(address)

    def invoke(self, invoke: Invoke) -> None:
        """Send a request; its waiter gets the outcome."""
        # closing runs callbacks, which may send again
        if self._closed:
            invoke.fail(ClosedError("the producer is closed"), self.network.now())
            return
        if self._decorate is not None:
            try:
                self._decorate(invoke.address, invoke.request)
            except Exception as error:  # a hook's error: only this request fails
                invoke.fail(hook_error("an RPC hook", error), self.network.now())
                return
        channel = self._by_address.get(invoke.address)
        if channel is None:
            channel = self._by_address[invoke.address] = Channel(self, invoke.address)
        channel.send(invoke)

    def ask(self, invoke: Invoke) -> Steps[Invoke]:
        """Send a request; after GO_AWAY, send it once more on a new connection."""
        yield invoke
        again = self.again_of(invoke)
        if again is None:
            return invoke
        yield again
        return again

    def again_of(self, invoke: Invoke) -> Invoke | None:
        """Return a copy of the request if its response is GO_AWAY, otherwise None."""
        command = invoke.command
        if command is None or command.code != GO_AWAY or invoke.again:
            return None
        if not self.config.reconnect_for_go_away:
            return None
        self.retire(invoke.conversation, invoke.address)
        again = Invoke(invoke.address, invoke.request, invoke.deadline, invoke.synchronous)
        again.again = True
        return again

    def retire(self, conversation: int, address: str) -> None:
        """Retire a connection whose peer said GO_AWAY: the next request opens a new one."""
        channel = self._by_address.get(address)
        if channel is None or channel.connection is None:
            return
        # another request may have opened a new connection already
        if channel.connection.number == conversation:
            del self._by_address[address]
            channel.leaving = True
            self._leaving.append(channel)

    def forget(self, channel: Channel) -> None:
        """Remove a channel that has ended."""
        if self._by_address.get(channel.address) is channel:
            del self._by_address[channel.address]
        elif channel in self._leaving:
            self._leaving.remove(channel)

    def watch(self, when: int) -> None:
        """Check timeouts at this time, or earlier."""
        if when < self.watched:
            self.on_watch(when)

    def expire(self, now: int) -> int:
        """Fail requests that timed out; return when to check again."""
        for channel in self:
            if channel.earliest <= now:
                channel.expire(now)
        return min([channel.earliest for channel in self], default=NEVER)

    def close_silent(self, now: int, kept: Callable[[str], bool]) -> None:
        """Close connections that are idle for too long, or whose address is no longer used."""
        oldest = now - self.config.max_idle_ms * MS
        for channel in list(self):
            connection = channel.connection
            if connection is None or channel.in_flight:
                continue
            if connection.used <= oldest or channel.leaving or not kept(channel.address):
                channel.close(ClosedError("the connection was silent"))

    def close(self) -> None:
        """End all connections; no further request is sent."""
        self._closed = True
        for channel in list(self):
            channel.close(ClosedError("the producer was closed before the response"))
