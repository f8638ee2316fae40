"""The connections of one client: one per address, opened on demand, closed when idle.

Rules: a request is written only to its own address. After GO_AWAY a connection accepts no further
request and closes after the last response.
RocketMQ: NettyRemotingClient (channelTables, GO_AWAY), IdleStateHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import RemotingCommand

from ..config import ProducerConfig
from ..errors import ClosedError
from ..hooks import hook_error
from .channel import Channel
from .connection import NEVER, Opaques
from .network import MS, Network
from .request import decoration_of
from .steps import Invoke, Steps

GO_AWAY: Final = int(ResponseCode.GO_AWAY)

OnChannelRequest = Callable[[Channel, RemotingCommand, bytes], None]


class ChannelPool:
    """All connections of one client."""

    def __init__(
        self, config: ProducerConfig, network: Network, on_request: OnChannelRequest
    ) -> None:
        self.config = config
        self.network = network
        self.opaques = Opaques()
        self.on_request = on_request
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


def _ignore(*_: object) -> None:
    pass
