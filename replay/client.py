"""A client of one cluster: routes, masters, heartbeats, and the clock that looks after them.

Rules: an address is asked only because the user named it (NameServers) or a route of theirs names
it (brokers). What repeats (route refresh, heartbeats, closing of silent connections) is due at
times and begun by `tick`, which the transport calls; nothing waits for it.
RocketMQ: MQClientInstance (updateTopicRouteInfoFromNameServer, sendHeartbeatToAllBroker,
cleanOfflineBroker), NettyRemotingClient (getAndCreateNameserverChannel).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from dissectors.remoting.bodies import encode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand

from .channels import MS, Channel, Channels
from .config import V5_0_0, ProducerConfig, split_address
from .connection import NEVER
from .errors import (
    BrokerError,
    ClientError,
    NameServerError,
    RouteError,
    SendTimeoutError,
    TransportError,
)
from .namespace import wrap_namespace
from .network import Network, Timer
from .operation import Runner
from .request import PlainRequest
from .route import GET_ROUTE, MASTER, PublishTable, Route, decode_route
from .steps import Await, Invoke, Join, Resumable, Steps

HEART_BEAT: Final = int(RequestCode.HEART_BEAT)
UNREGISTER_CLIENT: Final = int(RequestCode.UNREGISTER_CLIENT)
TOPIC_NOT_EXIST: Final = int(ResponseCode.TOPIC_NOT_EXIST)
NOT_SUPPORTED: Final = int(ResponseCode.REQUEST_CODE_NOT_SUPPORTED)
GO_AWAY: Final = int(ResponseCode.GO_AWAY)

_FIRST_HEARTBEAT_MS: Final = 1000
"""a master that is new hears of us so soon"""
_GREETING_MS: Final = 1000
_STEP_NS: Final = 5 * MS
"""the clock is looked at no more often"""
_IDLE_STEP_MS: Final = 10_000
"""silent connections are looked for so often"""

Handler = Callable[[Channel, RemotingCommand, bytes], None]


@dataclass(slots=True)
class _Repeated:
    """Something that is done every so often."""

    due: int
    every: int
    call: Callable[[int], None]


class Client:
    """What the sends of one producer share."""

    def __init__(
        self, config: ProducerConfig, network: Network, random: Random | None = None
    ) -> None:
        """Raises NameServerError where none is named. Nothing is sent yet."""
        self.config = config
        self.network = network
        self.random = random or Random()
        self.namesrvs = config.namesrv_addresses()
        self.namesrv = self.random.choice(self.namesrvs)
        """the NameServer that is asked"""
        self.ip = config.client_ip or network.local_address(self.namesrv)
        self.client_id = _client_id(config, self.ip, network.now())
        self.group = wrap_namespace(config.namespace, config.group)
        self.channels = Channels(config, network, self._request)
        self.channels.on_watch = self._watch
        self.runner = Runner(self.channels)
        self.handlers: dict[int, Handler] = {}
        """who serves the requests of brokers, by code"""
        self.offset = network.epoch() - network.now()
        """what makes a time of the steady clock one since the epoch, ns"""
        self._repeated: list[_Repeated] = []
        self._tables: dict[str, PublishTable] = {}
        self._brokers: dict[str, dict[str, str]] = {}
        self._greeted: set[str] = set()
        self._timer: Timer | None = None
        self._heartbeat_due = NEVER
        self._poll_due = NEVER
        self._idle_due = network.now() + _IDLE_STEP_MS * MS
        self._polling = False
        self._closed = False

    # -- routes ---------------------------------------------------------------------------------

    def table_of(self, topic: str) -> PublishTable | None:
        """The queues of a topic, as far as they are known."""
        table = self._tables.get(topic)
        return table if table is not None and table.queues else None

    def find_table(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """The queues of a topic, asked for if they are not known.

        Raises NameServerError, RouteError.
        """
        table = self.table_of(topic)
        while table is None:
            mine: list[bool] = []

            def look_up() -> Steps[PublishTable]:
                mine.append(True)  # noqa: B023 - called, if at all, before the next round
                return self._look_up(topic, deadline)

            # What began the query gave it its own time; who has more begins another one.
            try:
                found = yield Join(topic, look_up, deadline + 2 * _STEP_NS, self._unanswered)
            except NameServerError:
                if mine or self.network.now() >= deadline:
                    raise
            else:
                assert isinstance(found, PublishTable)
                table = found
        return table

    def _unanswered(self) -> NameServerError:
        return NameServerError(f"no answer from NameServer {self.namesrv} in time")

    def any_topic(self) -> str | None:
        """A topic whose route is known; None while there is none."""
        return next(iter(self._tables), None)

    def master_of(self, broker_name: str) -> str | None:
        """The address of a broker's master; None where no route says it."""
        addresses = self._brokers.get(broker_name)
        return addresses.get(MASTER) if addresses is not None else None

    def _look_up(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """Ask for a route, then for that of the topic from which unknown topics are made."""
        route = yield from self._ask_route(topic, topic, deadline, None)
        if route is None or not route.queues:
            key = self.config.create_topic_key
            most = self.config.default_topic_queue_nums
            made = yield from self._ask_route(key, topic, deadline, most)
            if made is None and route is None:
                hint = "create it, or let brokers create topics (autoCreateTopicEnable)"
                raise RouteError(f"no NameServer has a route of topic {topic}", hint)
            route = made if made is not None and made.queues else route
        if route is None or not route.queues:
            hint = "no master of it is up, or none lets it be written to (perm)"
            raise RouteError(f"topic {topic} has no queue that can be written to", hint)
        return self._keep(route)

    def _ask_route(
        self, asked: str, topic: str, deadline: int, most_queues: int | None
    ) -> Steps[Route | None]:
        """The route of `asked`, as one of `topic`; None where there is none."""
        request = PlainRequest(self.config, GET_ROUTE, {"topic": asked})
        invoke = yield from self._ask_namesrv(request, deadline)
        assert invoke.command is not None
        if invoke.command.code == TOPIC_NOT_EXIST:
            return None
        route = decode_route(topic, invoke.body, most_queues)
        if route is None:
            raise NameServerError(f"{invoke.address} gave a route that cannot be read")
        return route

    def _ask_namesrv(self, request: PlainRequest, deadline: int) -> Steps[Invoke]:
        """Ask the chosen NameServer, then the next ones, within the time that is left."""
        problems: list[str] = []
        hint = ""
        for left in range(len(self.namesrvs), 0, -1):
            now = self.network.now()
            share = min((deadline - now) // left, self.config.api_timeout_ms * MS)
            if share <= 0:
                break
            try:
                invoke = yield from self.ask(Invoke(self.namesrv, request, now + share, True))
            except TransportError as error:
                problems.append(error.reason)
                hint = error.hint
            else:
                assert invoke.command is not None
                code = invoke.command.code
                if code == 0 or code == TOPIC_NOT_EXIST:
                    return invoke
                said = BrokerError(code, invoke.command.remark)
                problems.append(f"{self.namesrv} answered {said.reason}")
            self._next_namesrv()
        raise NameServerError("; ".join(problems) or "the time was over before one was asked", hint)

    def _next_namesrv(self) -> None:
        place = self.namesrvs.index(self.namesrv)
        self.namesrv = self.namesrvs[(place + 1) % len(self.namesrvs)]

    def _keep(self, route: Route) -> PublishTable:
        """Take a route over; one that says nothing new leaves the index where it is."""
        for name, addresses in route.addresses.items():
            self._brokers[name] = addresses
        table = self._tables.get(route.topic)
        if table is None or table.route != route:
            table = self._tables[route.topic] = PublishTable(route)
        now = self.network.now()
        if self._poll_due == NEVER:
            self._poll_due = now + self.config.poll_namesrv_ms * MS
            self._watch(self._poll_due)
        if any(address not in self._greeted for address in self._masters()):
            soon = now + min(_FIRST_HEARTBEAT_MS, self.config.heartbeat_ms) * MS
            self._heartbeat_due = min(self._heartbeat_due, soon)
            self._watch(self._heartbeat_due)
        return table

    def refresh(self) -> Steps[None]:
        """Ask for the routes of all topics in use; what cannot be had stays as it was."""
        for topic in list(self._tables):
            deadline = self.network.now() + self.config.api_timeout_ms * MS
            try:
                route = yield from self._ask_route(topic, topic, deadline, None)
            except ClientError:
                continue
            if route is not None and topic in self._tables:
                self._keep(route)

    # -- requests -------------------------------------------------------------------------------

    def ask(self, invoke: Invoke) -> Steps[Invoke]:
        """One request; a broker that says GO_AWAY is asked once more, on a new connection."""
        yield invoke
        again = self.again_of(invoke)
        if again is None:
            return invoke
        yield again
        return again

    def again_of(self, invoke: Invoke) -> Invoke | None:
        """The same request once more, if the answer to it is GO_AWAY; None otherwise."""
        command = invoke.command
        if command is None or command.code != GO_AWAY or invoke.again:
            return None
        if not self.config.reconnect_for_go_away:
            return None
        self.channels.retire(invoke.conversation, invoke.address)
        again = Invoke(invoke.address, invoke.request, invoke.deadline, invoke.synchronous)
        again.again = True
        return again

    def _request(self, channel: Channel, command: RemotingCommand, body: bytes) -> None:
        """A broker asks: whoever registered for the code serves it."""
        handler = self.handlers.get(command.code)
        if handler is not None:
            handler(channel, command, body)
        else:
            text = f"request type {command.code} not supported"
            channel.answer(command, self.answer_of(NOT_SUPPORTED, text))

    def answer_of(self, code: int, remark: str | None = None) -> RemotingCommand:
        """An answer to a broker."""
        config = self.config
        return RemotingCommand(
            code, 0, RESPONSE_FLAG, config.language, config.client_version, remark
        )

    # -- heartbeats -----------------------------------------------------------------------------

    def _masters(self) -> list[str]:
        return [table[MASTER] for table in self._brokers.values() if MASTER in table]

    def greet_all(self, timeout_ms: int) -> Steps[None]:
        """Tell all masters that do not know us who we are, so that they can ask and answer us.

        Who does not listen within the time, a second at most, is left out.
        """
        strangers = [address for address in self._masters() if address not in self._greeted]
        if not strangers:
            return
        deadline = self.network.now() + min(timeout_ms, _GREETING_MS) * MS
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
        members: dict[str, object] = {"clientID": self.client_id, "consumerDataSet": []}
        if self.config.client_version >= V5_0_0:
            members["heartbeatFingerprint"] = 0
        members["producerDataSet"] = [{"groupName": self.group}]
        if self.config.client_version >= V5_0_0:
            members["withoutSub"] = False
        body = encode_body(HEART_BEAT, False, members)
        request = PlainRequest(self.config, HEART_BEAT, {}, body)
        self._greeted.add(address)
        try:
            yield from self.ask(Invoke(address, request, deadline, True))
        except ClientError:
            self._greeted.discard(address)
            raise

    def _unregister(self, address: str, deadline: int) -> Steps[None]:
        fields = {"clientID": self.client_id, "producerGroup": self.group}
        request = PlainRequest(self.config, UNREGISTER_CLIENT, fields)
        yield Invoke(address, request, deadline)

    def _drop_offline(self) -> None:
        """Forget brokers that no route names any more."""
        named = {name for table in self._tables.values() for name in table.route.addresses}
        for name in [name for name in self._brokers if name not in named]:
            del self._brokers[name]
        self._greeted &= set(self._masters())

    def _is_used(self, address: str) -> bool:
        """Whether an address is a NameServer's or named by a route, its second port included."""
        if address in self.namesrvs:
            return True
        every = [one for table in self._brokers.values() for one in table.values()]
        return address in every or any(address == vip_address(one) for one in every)

    # -- the clock ------------------------------------------------------------------------------

    def repeat(self, every_ms: int, call: Callable[[int], None]) -> None:
        """Call something with the time every so often, for the first time after as long."""
        when = self.network.now() + every_ms * MS
        self._repeated.append(_Repeated(when, every_ms * MS, call))
        self._watch(when)

    def tick(self) -> None:
        """Do what is due; set the clock for what comes next."""
        self._timer = None
        if self._closed:
            return
        now = self.network.now()
        self.offset = self.network.epoch() - now
        self.channels.watched = NEVER
        earliest = self.channels.expire(now)
        if now >= self._heartbeat_due:
            self._heartbeat_due = now + self.config.heartbeat_ms * MS
            self._drop_offline()
            for address in self._masters():
                deadline = now + self.config.api_timeout_ms * MS
                self.runner.start(self._heartbeat(address, deadline))
        if now >= self._poll_due and not self._polling:
            self._poll_due = now + self.config.poll_namesrv_ms * MS
            self._polling = True
            self.runner.start(self.refresh(), self._polled)
        if now >= self._idle_due:
            self._idle_due = now + min(_IDLE_STEP_MS, self.config.max_idle_ms) * MS
            self.channels.close_silent(now, self._is_used)
        for one in self._repeated:
            if now >= one.due:
                one.due = now + one.every
                one.call(now)
        dues = [one.due for one in self._repeated]
        due = min(earliest, self._heartbeat_due, self._poll_due, self._idle_due, *dues)
        self._watch(min(due, self.channels.watched))

    def _polled(self, _: object) -> None:
        self._polling = False

    def _watch(self, when: int) -> None:
        """Let `tick` be called at this time, unless it will be before."""
        if self._closed or (self._timer is not None and self.channels.watched <= when):
            return
        if self._timer is not None:
            self._timer.cancel()
        self.channels.watched = when
        soonest = self.network.now() + _STEP_NS
        self._timer = self.network.call_at(max(when, soonest), self.tick)

    # -- the end --------------------------------------------------------------------------------

    def farewell(self) -> Iterable[Steps[None]]:
        """What is to be told to brokers before the end: that we leave."""
        deadline = self.network.now() + min(self.config.api_timeout_ms, 1000) * MS
        told = [address for address in self._greeted if self.channels.get(address) is not None]
        return [self._unregister(address, deadline) for address in told]

    def close(self) -> None:
        """End all connections; every request that is not answered fails."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.channels.close()


def _unheard() -> SendTimeoutError:
    return SendTimeoutError("heartbeats are not answered")


def vip_address(address: str) -> str:
    """The second port of a broker, two below the one of its address."""
    parts = split_address(address)
    if parts is None or parts[1] <= 2:
        return address
    return f"{address.rpartition(':')[0]}:{parts[1] - 2}"


def _client_id(config: ProducerConfig, ip: str, now: int) -> str:
    instance = config.instance_name
    if instance == "DEFAULT":
        instance = f"{os.getpid()}#{now}"
    parts = [f"{ip}@{instance}"]
    if config.unit_name:
        parts.append(config.unit_name)
    return "@".join(parts)
