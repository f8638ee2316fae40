"""A client of one cluster: routes, masters, heartbeats, and their timers.

Rules: requests go only to addresses that the user named (NameServers) or a route contains
(brokers). Periodic work (route refresh, heartbeats, closing idle connections) is started by `tick`,
which the transport calls; nothing waits for it.
RocketMQ: MQClientInstance (startScheduledTask, sendHeartbeatToAllBroker, unregisterClient).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from dissectors.remoting.bodies.registry import encode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand
from dissectors.remoting.versions import V5_0_0

from ..config import DEFAULT_INSTANCE, ProducerConfig
from ..errors import ClientError, SendTimeoutError
from ..fault import DETECTOR_PERIOD_MS, FaultStrategy
from ..namespace import wrap_namespace
from ..wire.channel import NEVER, Channel, ChannelPool, OnChannelRequest
from ..wire.network import MS, Network, Timer
from ..wire.operation import Runner
from ..wire.request import plain_request
from ..wire.steps import Await, Invoke, Resumable, Steps
from .route import RouteCache

HEART_BEAT: Final = int(RequestCode.HEART_BEAT)
GET_MAX_OFFSET: Final = int(RequestCode.GET_MAX_OFFSET)
UNREGISTER_CLIENT: Final = int(RequestCode.UNREGISTER_CLIENT)
NOT_SUPPORTED: Final = int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)

_FIRST_HEARTBEAT_MS: Final = 1000
"""delay before the first heartbeat to a new master, ms"""
_GREETING_MS: Final = 1000
_STEP_NS: Final = 5 * MS
"""minimum time between two ticks"""
_IDLE_STEP_MS: Final = 10_000
"""time between two searches for idle connections"""


@dataclass(slots=True)
class _Repeated:
    """A periodic task."""

    due: int
    every: int
    call: Callable[[int], None]


class ClusterClient:
    """The cluster state that the sends of one producer share."""

    def __init__(
        self, config: ProducerConfig, network: Network, random: Random | None = None
    ) -> None:
        """Send nothing yet. Raise NameServerError if none is configured."""
        self.config = config
        self.network = network
        self.random = random or Random()
        self.channels = ChannelPool(config, network, self._request)
        self.channels.on_watch = self._watch
        self.channels.on_end = self._on_connection_end
        self.runner = Runner(self.channels)
        self.routes = RouteCache(config, self.channels, self.random, self._on_route)
        self.ip = config.client_ip or network.local_address(self.routes.namesrv)
        self.client_id = _client_id(config, self.ip, network.now())
        self.group = wrap_namespace(config.namespace, config.group)
        self.handlers: dict[int, OnChannelRequest] = {}
        """handlers of brokers' requests, by code"""
        self.offset = network.epoch() - network.now()
        """offset from the monotonic clock to the epoch, ns"""
        self._repeated: list[_Repeated] = []
        self._greeted: set[str] = set()
        self._timer: Timer | None = None
        self._heartbeat_due = NEVER
        self._poll_due = NEVER
        self._idle_due = network.now() + _IDLE_STEP_MS * MS
        self._polling = False
        self._closed = False

    # -- requests of brokers --------------------------------------------------------------------

    def _request(self, channel: Channel, command: RemotingCommand, body: bytes) -> None:
        """Serve a request of a broker by the handler that is registered for its code."""
        handler = self.handlers.get(command.code)
        if handler is not None:
            handler(channel, command, body)
        else:
            text = f"request type {command.code} not supported"
            channel.respond(command, self.response_of(NOT_SUPPORTED, text))

    def response_of(self, code: int, remark: str | None = None) -> RemotingCommand:
        """Return a response to a broker's request."""
        config = self.config
        return RemotingCommand(
            code, 0, RESPONSE_FLAG, config.language, config.client_version, remark
        )

    def _on_connection_end(self, address: str, by_peer: bool) -> None:
        """Handle a closed connection: its broker has forgotten this client.

        If the broker closed it, send a heartbeat soon: it may have restarted.
        """
        if address in self._greeted:
            self._greeted.discard(address)
            if by_peer:
                self._greet_soon(self.network.now())

    def _greet_soon(self, now: int) -> None:
        soon = now + min(_FIRST_HEARTBEAT_MS, self.config.heartbeat_ms) * MS
        self._heartbeat_due = min(self._heartbeat_due, soon)
        self._watch(self._heartbeat_due)

    def _on_route(self) -> None:
        """Handle a new route: refresh it periodically, and send heartbeats to new masters soon."""
        now = self.network.now()
        if self._poll_due == NEVER:
            self._poll_due = now + self.config.poll_namesrv_ms * MS
            self._watch(self._poll_due)
        if any(address not in self._greeted for address in self.routes.masters()):
            self._greet_soon(now)

    # -- heartbeats -----------------------------------------------------------------------------

    def greet_all(self, timeout_ms: int) -> Steps[None]:
        """Send heartbeats to all masters that do not know this client yet.

        Masters that do not accept a connection in time (a second at most) are skipped.
        """
        strangers = [address for address in self.routes.masters() if address not in self._greeted]
        if not strangers:
            return
        deadline = self.network.now() + min(timeout_ms, _GREETING_MS) * MS
        # may reach 0 before the Await begins, if all fail at once: then nobody waits
        left = len(strangers)
        waiting: list[Resumable] = []

        def ended(_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0 and waiting:
                waiting.pop().resume(None)

        for address in strangers:
            self.runner.start(self._heartbeat(address, deadline), ended)
        if left > 0:
            with suppress(SendTimeoutError):
                yield Await(waiting.append, waiting.clear, deadline + 2 * _STEP_NS, _unheard)

    def _heartbeat(self, address: str, deadline: int) -> Steps[None]:
        # in the order of names, as fastjson writes them
        members: dict[str, object] = {"clientID": self.client_id, "consumerDataSet": []}
        if self.config.client_version >= V5_0_0:
            members["heartbeatFingerprint"] = 0
        members["producerDataSet"] = [{"groupName": self.group}]
        if self.config.client_version >= V5_0_0:
            members["withoutSub"] = False
        body = encode_body(HEART_BEAT, False, members)
        request = plain_request(self.config, HEART_BEAT, {}, body)
        self._greeted.add(address)  # at once: other sends do not greet it meanwhile
        try:
            yield from self.channels.ask(Invoke(address, request, deadline, True))
        except ClientError:
            self._greeted.discard(address)
            raise

    def _unregister(self, address: str, deadline: int) -> Steps[None]:
        fields = {"clientID": self.client_id, "producerGroup": self.group}
        request = plain_request(self.config, UNREGISTER_CLIENT, fields)
        yield Invoke(address, request, deadline)

    # -- the clock ------------------------------------------------------------------------------

    def repeat(self, every_ms: int, call: Callable[[int], None]) -> None:
        """Call `call` with the time at this interval, starting one interval from now."""
        when = self.network.now() + every_ms * MS
        self._repeated.append(_Repeated(when, every_ms * MS, call))
        self._watch(when)

    def tick(self) -> None:
        """Run what is due and set the timer for the next task."""
        self._timer = None
        if self._closed:
            return
        now = self.network.now()
        self.offset = self.network.epoch() - now  # again, because the wall clock may be set
        self.channels.watched = NEVER
        earliest = now  # run again at once if a task below fails
        try:
            earliest = self._do_due(now)
        finally:
            dues = [task.due for task in self._repeated]
            due = min(earliest, self._heartbeat_due, self._poll_due, self._idle_due, *dues)
            self._watch(min(due, self.channels.watched))

    def _do_due(self, now: int) -> int:
        """Run what is due at `now`; return the next request deadline."""
        earliest = self.channels.expire(now)
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + self.config.heartbeat_ms * MS
            self.routes.drop_offline()
            # a broker that left the routes and comes back is greeted as a new one
            self._greeted &= set(self.routes.masters())
            for address in self.routes.masters():
                deadline = now + self.config.api_timeout_ms * MS
                self.runner.start(self._heartbeat(address, deadline))
        if now >= self._poll_due:
            self._poll_due = now + self.config.poll_namesrv_ms * MS
            # with a slow NameServer a round may take longer than the interval: they do not overlap
            if not self._polling:
                self._polling = True
                self.runner.start(self.routes.refresh(), self._polled)
        if now >= self._idle_due:
            self._idle_due = now + min(_IDLE_STEP_MS, self.config.max_idle_ms) * MS
            self.channels.close_silent(now, self.routes.is_used)
        for task in self._repeated:
            if now >= task.due:
                task.due = now + task.every
                task.call(now)
        return earliest

    def _polled(self, _: object) -> None:
        self._polling = False

    def _watch(self, when: int) -> None:
        """Schedule `tick` for this time, unless it is scheduled earlier."""
        if self._closed or (self._timer is not None and self.channels.watched <= when):
            return
        if self._timer is not None:
            self._timer.cancel()
        self.channels.watched = when
        soonest = self.network.now() + _STEP_NS
        self._timer = self.network.call_at(max(when, soonest), self.tick)

    # -- the end --------------------------------------------------------------------------------

    def farewell(self) -> Iterable[Steps[None]]:
        """Return the requests that unregister this client from brokers."""
        deadline = self.network.now() + min(self.config.api_timeout_ms, 1000) * MS
        # a broker forgets the client by itself when its connection ends
        # no new connections only to say goodbye
        greeted = [address for address in self._greeted if self.channels.get(address) is not None]
        return [self._unregister(address, deadline) for address in greeted]

    def close(self) -> None:
        """Close all connections; unanswered requests fail."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.channels.close()


def _unheard() -> SendTimeoutError:
    return SendTimeoutError("heartbeats are not answered")


def _client_id(config: ProducerConfig, ip: str, now: int) -> str:
    instance = config.instance_name
    if instance == DEFAULT_INSTANCE:
        # as Java since 4.9.0
        instance = f"{os.getpid()}#{now}"
    parts = [f"{ip}@{instance}"]
    if config.unit_name:
        parts.append(config.unit_name)
    return "@".join(parts)


class Detector:
    """Probes the brokers that a fault strategy avoids, in the background.

    RocketMQ: LatencyFaultToleranceImpl.detectByOneRound, MQClientInstance (ServiceDetector); 5.1.4.
    """

    def __init__(self, client: ClusterClient, strategy: FaultStrategy) -> None:
        """Start probing for `strategy` if it has a detector."""
        self._client = client
        self._strategy = strategy
        if strategy.settings.enabled and strategy.settings.detector:
            client.repeat(DETECTOR_PERIOD_MS, self._step)

    def _step(self, now: int) -> None:
        for broker in self._strategy.due(now // MS):
            self._strategy.probing(broker, now // MS)
            address = self._client.routes.master_of(broker)
            topic = self._client.routes.any_topic()
            if address is None:
                self._strategy.forget(broker)
            elif topic is not None:
                self._client.runner.start(self._probe(broker, address, topic))

    def _probe(self, broker: str, address: str, topic: str) -> Steps[None]:
        timeout = self._strategy.settings.detect_timeout_ms
        fields = {"topic": topic, "queueId": "0"}
        request = plain_request(self._client.config, GET_MAX_OFFSET, fields)
        deadline = self._client.network.now() + timeout * MS
        try:
            invoke = yield from self._client.channels.ask(Invoke(address, request, deadline, True))
        except ClientError:
            return
        assert invoke.command is not None
        self._strategy.probed(broker, invoke.command.code == 0)
