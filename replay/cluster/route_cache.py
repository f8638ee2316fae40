"""What NameServers say: the routes of the topics in use, and the masters of their brokers.

Rules: one NameServer is asked; when it fails the next ones are, each with a share of the time that
is left, and the one that answers is kept. A topic that none knows is made from the queues of
`create_topic_key`. Those who need the same route wait for the same query.
RocketMQ: MQClientInstance (updateTopicRouteInfoFromNameServer, cleanOfflineBroker),
DefaultMQProducerImpl.tryToFindTopicPublishInfo, NettyRemotingClient.getAndCreateNameserverChannel.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from random import Random
from typing import Final

from dissectors.endpoint import split_endpoint
from dissectors.remoting.codes import ResponseCode

from ..config import ProducerConfig
from ..errors import BrokerError, ClientError, NameServerError, RouteError, TransportError
from ..wire.channel_pool import ChannelPool
from ..wire.network import MS
from ..wire.request import PlainRequest, plain_request
from ..wire.steps import Invoke, Join, Steps
from .route import BROKERS, GET_ROUTE, MASTER, QUEUES, PublishTable, Route, decode_route

TOPIC_NOT_EXIST: Final = int(ResponseCode.TOPIC_NOT_EXIST)

_log = logging.getLogger("rmqtool.replay")
_GRACE_NS: Final = 10 * MS
"""a query's own error, which says more, comes first"""


class RouteCache:
    """The routes of one client."""

    def __init__(
        self,
        config: ProducerConfig,
        channels: ChannelPool,
        random: Random,
        on_route: Callable[[], None],
    ) -> None:
        """Raise NameServerError where none is named."""
        self.namesrvs = config.namesrv_addresses()
        self.namesrv = random.choice(self.namesrvs)
        """the NameServer that is asked"""
        self.on_route = on_route
        """called when a route was taken over"""
        self._config = config
        self._channels = channels
        self._now = channels.network.now
        self._tables: dict[str, PublishTable] = {}
        self._brokers: dict[str, dict[str, str]] = {}

    def table_of(self, topic: str) -> PublishTable | None:
        """Return the queues of a topic, as far as they are known."""
        table = self._tables.get(topic)
        return table if table is not None and table.queues else None

    def find_table(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """Yield the queues of a topic, asked for if they are not known.

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
                found = yield Join(topic, look_up, deadline + _GRACE_NS, self._unanswered)
            except NameServerError:
                if mine or self._now() >= deadline:
                    raise
            else:
                assert isinstance(found, PublishTable)
                table = found
        return table

    def _unanswered(self) -> NameServerError:
        return NameServerError(f"no answer from NameServer {self.namesrv} in time")

    def any_topic(self) -> str | None:
        """Return a topic whose route is known; None while there is none."""
        return next(iter(self._tables), None)

    def master_of(self, broker_name: str) -> str | None:
        """Return the address of a broker's master; None where no route says it."""
        addresses = self._brokers.get(broker_name)
        return addresses.get(MASTER) if addresses is not None else None

    def _look_up(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """Ask for a route, then for that of the topic from which unknown topics are made."""
        route = yield from self._ask_route(topic, topic, deadline, None)
        if route is None:
            key = self._config.create_topic_key
            most = self._config.default_topic_queue_nums
            route = yield from self._ask_route(key, topic, deadline, most)
            if route is None:
                hint = "create it, or let brokers create topics (autoCreateTopicEnable)"
                raise RouteError(f"no NameServer has a route of topic {topic}", hint)
        if not route.queues:
            hint = "no master of it is up, or none lets it be written to (perm)"
            raise RouteError(f"topic {topic} has no queue that can be written to", hint)
        return self._keep(route)

    def _ask_route(
        self, asked: str, topic: str, deadline: int, most_queues: int | None
    ) -> Steps[Route | None]:
        """Yield the route of `asked`, as one of `topic`; None where there is none."""
        request = plain_request(self._config, GET_ROUTE, {"topic": asked})
        invoke = yield from self._ask_namesrv(request, deadline)
        assert invoke.command is not None
        if invoke.command.code == TOPIC_NOT_EXIST:
            return None
        route = decode_route(topic, invoke.body, most_queues)
        if route is None:
            raise NameServerError(f"{invoke.address} gave a route that cannot be read")
        place = f"of topic {asked} at {invoke.address}"
        bound = self._config.budget.bound
        for more, limit in ((route.left_out, QUEUES), (route.brokers_left_out, BROKERS)):
            if more:
                beyond = bound(*limit)
                is_first = not beyond.ended
                beyond.end(place, more)
                if is_first:
                    _log.warning("%s", beyond.said())
        return route

    def _ask_namesrv(self, request: PlainRequest, deadline: int) -> Steps[Invoke]:
        """Ask the chosen NameServer, then the next ones, within the time that is left."""
        problems: list[str] = []
        hint = ""
        for left in range(len(self.namesrvs), 0, -1):
            now = self._now()
            share = min((deadline - now) // left, self._config.api_timeout_ms * MS)
            if share <= 0:
                break
            try:
                invoke = yield from self._channels.ask(
                    Invoke(self.namesrv, request, now + share, True)
                )
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
        self.on_route()
        return table

    def refresh(self) -> Steps[None]:
        """Ask for the routes of all topics in use; what cannot be had stays as it was."""
        for topic in list(self._tables):
            deadline = self._now() + self._config.api_timeout_ms * MS
            try:
                route = yield from self._ask_route(topic, topic, deadline, None)
            except ClientError:
                continue
            if route is not None and topic in self._tables:
                self._keep(route)

    # -- masters --------------------------------------------------------------------------------

    def masters(self) -> list[str]:
        """Return the addresses of all masters."""
        return [table[MASTER] for table in self._brokers.values() if MASTER in table]

    def drop_offline(self) -> None:
        """Forget brokers that no route names any more."""
        named = {name for table in self._tables.values() for name in table.route.addresses}
        for name in [name for name in self._brokers if name not in named]:
            del self._brokers[name]

    def is_used(self, address: str) -> bool:
        """Return whether an address is a NameServer's or in a route, its second port included."""
        if address in self.namesrvs:
            return True
        every = [one for table in self._brokers.values() for one in table.values()]
        return address in every or any(address == vip_address(one) for one in every)


def vip_address(address: str) -> str:
    """Return the second port of a broker, two below the one of its address."""
    parts = split_endpoint(address)
    if parts is None or parts[1] <= 2:
        return address
    return f"{address.rpartition(':')[0]}:{parts[1] - 2}"
