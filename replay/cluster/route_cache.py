"""Cached routes of the topics in use, and the masters of their brokers.

One NameServer is queried; if it fails, the next ones are, and the one that responds is kept.
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
from ..wire.channel import ChannelPool
from ..wire.network import MS
from ..wire.request import plain_request
from ..wire.steps import Invoke, Join, Steps
from .route import BROKERS, GET_ROUTE, MASTER, QUEUES, PublishTable, Route, decode_route

TOPIC_NOT_EXIST: Final = int(ResponseCode.TOPIC_NOT_EXIST)

_log = logging.getLogger("rmqtool.replay")
_GRACE_NS: Final = 10 * MS
"""grace time, so that a query's own, more precise error comes first"""


class RouteCache:
    """The routes of one client."""

    def __init__(
        self,
        config: ProducerConfig,
        channels: ChannelPool,
        random: Random,
        on_route: Callable[[], None],
    ) -> None:
        """Raise NameServerError if none is configured."""
        self.namesrvs = config.namesrv_addresses()
        self.namesrv = random.choice(self.namesrvs)
        """the current NameServer"""
        self.on_route = on_route
        """called with each new route"""
        self._config = config
        self._channels = channels
        self._now = channels.network.now
        self._tables: dict[str, PublishTable] = {}
        self._brokers: dict[str, dict[str, str]] = {}

    def table_of(self, topic: str) -> PublishTable | None:
        """Return the queues of a topic, or None if they are unknown."""
        table = self._tables.get(topic)
        return table if table is not None and table.queues else None

    def find_table(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """Yield the queues of a topic, querying them if unknown.

        Raises NameServerError, RouteError.
        """
        table = self.table_of(topic)
        while table is None:
            mine: list[bool] = []

            def look_up() -> Steps[PublishTable]:
                mine.append(True)  # noqa: B023 - called, if at all, before the next round
                return self._look_up(topic, deadline)

            # The query has the time of its first caller; a caller with more time starts another.
            try:
                result = yield Join(topic, look_up, deadline + _GRACE_NS, self._unanswered)
            except NameServerError:
                if mine or self._now() >= deadline:
                    raise
            else:
                assert isinstance(result, PublishTable)
                table = result
        return table

    def _unanswered(self) -> NameServerError:
        return NameServerError(f"no response from NameServer {self.namesrv} in time")

    def any_topic(self) -> str | None:
        """Return any topic with a known route, or None."""
        return next(iter(self._tables), None)

    def master_of(self, broker_name: str) -> str | None:
        """Return the address of a broker's master, or None if no route has it."""
        addresses = self._brokers.get(broker_name)
        return addresses.get(MASTER) if addresses is not None else None

    def _look_up(self, topic: str, deadline: int) -> Steps[PublishTable]:
        """Query a route, then that of the template topic for unknown topics."""
        route = yield from self._ask_route(topic, topic, deadline, None)
        if route is None:  # the first message to it creates the topic after this template
            key = self._config.create_topic_key
            most = self._config.default_topic_queue_nums
            route = yield from self._ask_route(key, topic, deadline, most)
            if route is None:
                hint = "create it, or let brokers create topics (autoCreateTopicEnable)"
                raise RouteError(f"no NameServer has a route for topic {topic}", hint)
        if not route.queues:
            hint = "none of its masters is up, or none allows writing (perm)"
            raise RouteError(f"topic {topic} has no writable queue", hint)
        return self._keep(route)

    def _ask_route(
        self, queried: str, topic: str, deadline: int, most_queues: int | None
    ) -> Steps[Route | None]:
        """Yield the route of `queried`, as one of `topic`, or None if there is none."""
        invoke = yield from self.ask(queried, deadline)
        assert invoke.command is not None
        if invoke.command.code == TOPIC_NOT_EXIST:
            return None
        route = decode_route(topic, invoke.body, most_queues)
        if route is None:
            raise NameServerError(f"{invoke.address} gave a route that cannot be read")
        place = f"of topic {queried} at {invoke.address}"
        bound = self._config.budget.bound
        for more, limit in ((route.left_out, QUEUES), (route.brokers_left_out, BROKERS)):
            if more:
                beyond = bound(*limit)
                is_first = not beyond.ended
                beyond.end(place, more)
                if is_first:
                    _log.warning("%s", beyond.said())
        return route

    def ask(self, topic: str, deadline: int) -> Steps[Invoke]:
        """Yield the response for a topic of the current NameServer, or of one after it.

        Raises NameServerError if none responds within the remaining time.
        """
        request = plain_request(self._config, GET_ROUTE, {"topic": topic})
        problems: list[str] = []
        hint = ""
        for left in range(len(self.namesrvs), 0, -1):
            now = self._now()
            # each NameServer gets an equal share of what is left, so that the last one is asked
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
                rejection = BrokerError(code, invoke.command.remark)
                problems.append(f"{self.namesrv} responded {rejection.reason}")
            place = self.namesrvs.index(self.namesrv)
            self.namesrv = self.namesrvs[(place + 1) % len(self.namesrvs)]
        raise NameServerError(
            "; ".join(problems) or "the timeout passed before a NameServer was asked", hint
        )

    def _keep(self, route: Route) -> PublishTable:
        """Store a route; an unchanged one keeps the round-robin index."""
        # brokers that this route lost may be in another: drop_offline decides
        self._brokers.update(route.addresses)
        table = self._tables.get(route.topic)
        if table is None or table.route != route:
            # queues that the fault strategy renamed (up to 5.1.3) stay so until the route changes
            table = self._tables[route.topic] = PublishTable(route)
        self.on_route()
        return table

    def refresh(self) -> Steps[None]:
        """Query the routes of all topics in use; keep the old one if a query fails."""
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
        """Forget brokers that are no longer in any route."""
        named = {name for table in self._tables.values() for name in table.route.addresses}
        for name in [name for name in self._brokers if name not in named]:
            del self._brokers[name]

    def is_used(self, address: str) -> bool:
        """Return whether an address is a NameServer's or in a route, VIP ports included."""
        if address in self.namesrvs:
            return True
        every = (known for table in self._brokers.values() for known in table.values())
        return any(address in (known, vip_address(known)) for known in every)


def vip_address(address: str) -> str:
    """Return the VIP address of a broker: its port minus two."""
    parts = split_endpoint(address)
    if parts is None or parts[1] <= 2:
        return address
    return f"{address.rpartition(':')[0]}:{parts[1] - 2}"
