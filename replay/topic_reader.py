"""A read-only client: reads routes, offsets, and messages of a topic, and commits nothing.

No heartbeat, no offset commit, no consumer group of its own. Brokers since 5.0 store the position
of the last pull for TOOLS_CONSUMER. Requests go only to addresses that the user named, or that are
in a route and allowed by the guard.
RocketMQ: DefaultMQPullConsumerImpl.pullSyncImpl, MQClientAPIImpl, MixAll.TOOLS_CONSUMER_GROUP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple, TypeVar

from dissectors.foreign import integer_of
from dissectors.remoting.bodies.registry import decode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages

from .cluster.route import TOPIC_NOT_EXIST, ReadRoute, RouteCache, decode_read_route, whole_number
from .config import ProducerConfig
from .errors import (
    BrokerError,
    ConnectError,
    ConnectionLostError,
    NameServerError,
    ResponseError,
    RouteError,
    SendTimeoutError,
    TransportError,
)
from .transport.blocking import BlockingNetwork
from .wire.channel import NEVER, ChannelPool
from .wire.network import MS, Timer
from .wire.operation import Runner, RunningOperation
from .wire.request import plain_request
from .wire.steps import Invoke, Steps

TOOLS_CONSUMER: Final = "TOOLS_CONSUMER"
"""the group of mqadmin: brokers make it when they start"""
_SUSPEND, _SUBSCRIPTION = 2, 4
"""bits of sysFlag; without bit 1 no offset is committed"""
_HOLD_MS: Final = 15_000
"""time that a broker may hold a pull when there is nothing new"""
_MOST_MESSAGES: Final = 32
"""messages of a pull; brokers give no more unless they are set up to"""
_STEP_NS: Final = 5 * MS
_LOOK_NS: Final = 200 * MS
"""time after which a waiting reader looks whether it was stopped"""

_AGAIN_NS: Final = 1000 * MS
"""time between two pulls of a queue without a new message, or of a broker that is gone"""
_PASSING: Final = (ConnectError, ConnectionLostError, SendTimeoutError)
"""errors while a broker restarts"""

T = TypeVar("T")


class TopicQueue(NamedTuple):
    """A readable queue."""

    broker: str
    queue_id: int


class OffsetRange(NamedTuple):
    """The offsets of a queue."""

    least: int
    """offset of the oldest message"""
    most: int
    """offset of the next message"""
    last_store_ms: int = 0
    """when the last message was stored, ms since the epoch; 0: unknown"""


class Pulled(NamedTuple):
    """Messages of one pull."""

    queue: TopicQueue
    address: str
    """of the broker"""
    local: str
    """our end of the connection"""
    time: int
    """when they came, ns since the epoch"""
    messages: Sequence[StoredMessage]


class TopicReader:
    """Reads from one cluster: `with TopicReader(config) as reader`."""

    def __init__(self, config: ProducerConfig) -> None:
        """Send nothing yet. Raises ConfigError, or NameServerError if none is configured."""
        self.config = config
        self._network = BlockingNetwork(config.tls, config.guard)
        self._timer: Timer | None = None
        try:
            self._channels = ChannelPool(config, self._network, lambda *_: None)
            self._channels.on_watch = self._watch
            self._runner = Runner(self._channels)
            self._routes = RouteCache(config, self._channels, Random(), lambda: None)
        except BaseException:
            self._network.close()
            raise

    def __enter__(self) -> TopicReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all connections."""
        self._channels.close()
        self._network.close()

    # -- topics ---------------------------------------------------------------------------------

    def route(self, topic: str) -> ReadRoute:
        """Return the route of a topic. Raises NameServerError, RouteError."""
        (invoke,) = self._all([self._routes.ask(topic, self._deadline())])
        if invoke.command is not None and invoke.command.code == TOPIC_NOT_EXIST:
            raise RouteError(
                f"no NameServer has a route for topic {topic}", "check the name of the topic"
            )
        route = decode_read_route(invoke.body)
        if route is None:
            raise NameServerError(f"{invoke.address} gave a route that cannot be read")
        return route

    def offsets(self, topic: str, route: ReadRoute) -> dict[TopicQueue, OffsetRange]:
        """Return the offsets of each queue. Raises BrokerError, TransportError."""
        tables = self._per_broker(route, RequestCode.GET_TOPIC_STATS_INFO, {"topic": topic})
        return {
            queue: OffsetRange(
                whole_number(row, "minOffset"),
                whole_number(row, "maxOffset"),
                max(whole_number(row, "lastUpdateTimestamp"), 0),  # -1: the record is gone
            )
            for broker, value in tables.items()
            for queue, row in _rows(broker, topic, value)
        }

    def groups(self, topic: str, route: ReadRoute) -> list[str]:
        """Return the groups that have offsets of a topic or subscribe to it."""
        code = RequestCode.QUERY_TOPIC_CONSUME_BY_WHO
        named: set[str] = set()
        for value in self._per_broker(route, code, {"topic": topic}).values():
            members = value.get("groupList")
            if isinstance(members, list):
                named.update(name for name in members if isinstance(name, str))
        return sorted(named - {TOOLS_CONSUMER})

    def consumed(self, topic: str, route: ReadRoute, group: str) -> dict[TopicQueue, int]:
        """Return the offset that a group has committed for each queue of a topic."""
        fields = {"consumerGroup": group, "topic": topic}
        stats = self._per_broker(route, RequestCode.GET_CONSUME_STATS, fields)
        return {
            queue: whole_number(row, "consumerOffset")
            for broker, value in stats.items()
            for queue, row in _rows(broker, topic, value)
        }

    def offset_at(self, topic: str, route: ReadRoute, queue: TopicQueue, ms: int) -> int:
        """Return the offset of the first message stored at or after a time."""
        fields = {"topic": topic, "queueId": str(queue.queue_id), "timestamp": str(ms)}
        code = RequestCode.SEARCH_OFFSET_BY_TIMESTAMP
        (invoke,) = self._all([self._asked(_address(route, queue.broker), code, fields)])
        assert invoke.command is not None
        offset = integer_of(invoke.command.ext_fields.get("offset", ""))
        if offset is None:
            raise ResponseError(f"{invoke.address} gave no offset of queue {queue.queue_id}")
        return offset

    # -- messages -------------------------------------------------------------------------------

    def messages(
        self,
        topic: str,
        route: ReadRoute,
        starts: Mapping[TopicQueue, int],
        ends: Mapping[TopicQueue, int] | None,
        tags: str,
        stopped: Callable[[], bool],
        lost: Callable[[str, TransportError], None] = lambda *_: None,
    ) -> Iterator[Pulled | None]:
        """Yield messages from `starts` up to `ends` (exclusive), or forever.

        `tags` is ``*`` or tags joined by ``||``, which brokers compare by hash: compare again.
        `stopped` is polled. Yields None when there are no new messages. Without `ends`, a broker
        that cannot be reached is asked again every second, and `lost` gets its name and the first
        error. Raises BrokerError, TransportError.
        """
        away: set[str] = set()
        running: dict[TopicQueue, RunningOperation[Invoke]] = {}
        next_offset = dict(starts)
        due: dict[TopicQueue, int] = {}

        def pull(queue: TopicQueue) -> None:
            offset = next_offset[queue]
            if ends is None or offset < ends.get(queue, 0):
                steps = self._pull(topic, route, queue, offset, tags, holds=ends is None)
                running[queue] = self._runner.start(steps)

        for queue in starts:
            pull(queue)
        try:
            while (running or due) and not stopped():
                for queue in [item for item, when in due.items() if when <= self._network.now()]:
                    del due[queue]
                    pull(queue)
                ended = [queue for queue, operation in running.items() if operation.done]
                if not ended:
                    yield None
                    until = self._network.now() + _LOOK_NS
                    self._network.run(lambda: any(item.done for item in running.values()), until)
                for queue in ended:
                    operation = running.pop(queue)
                    error = operation.error
                    if ends is None and isinstance(error, _PASSING):
                        if queue.broker not in away:
                            away.add(queue.broker)
                            lost(queue.broker, error)
                        due[queue] = self._network.now() + _AGAIN_NS
                        continue
                    invoke = operation.result
                    away.discard(queue.broker)
                    before = next_offset[queue]
                    messages, after = _messages_in(invoke, before)
                    if ends is not None:
                        messages = [
                            item for item in messages if item.queue_offset < ends.get(queue, 0)
                        ]
                    next_offset[queue] = after
                    if after > before:
                        pull(queue)
                    elif ends is None:  # do not poll a broker continuously that does not hold pulls
                        due[queue] = invoke.began + _AGAIN_NS
                    if messages:
                        epoch = self._network.epoch()
                        yield Pulled(queue, invoke.address, invoke.local, epoch, messages)
        finally:
            for operation in running.values():
                operation.cancel()

    def _pull(
        self, topic: str, route: ReadRoute, queue: TopicQueue, offset: int, tags: str, holds: bool
    ) -> Steps[Invoke]:
        fields = {
            "consumerGroup": TOOLS_CONSUMER,
            "topic": topic,
            "queueId": str(queue.queue_id),
            "queueOffset": str(offset),
            "maxMsgNums": str(_MOST_MESSAGES),
            "sysFlag": str(_SUBSCRIPTION | (_SUSPEND if holds else 0)),
            "commitOffset": "0",
            "suspendTimeoutMillis": str(_HOLD_MS if holds else 0),
            "subscription": tags,
            "subVersion": "0",
            "expressionType": "TAG",
        }
        address = _address(route, queue.broker)
        # a pull that is held must not time out here first
        more = _HOLD_MS if holds else 0
        return self._asked(address, RequestCode.PULL_MESSAGE, fields, more, _PULL_CODES)

    # -- internal -------------------------------------------------------------------------------

    def _per_broker(
        self, route: ReadRoute, code: int, fields: dict[str, str]
    ) -> dict[str, dict[str, object]]:
        """Send a request to each broker of a route; return the decoded responses."""
        brokers = [name for name in route.queues if route.address_of(name) is not None]
        requests = [self._asked(_address(route, name), code, dict(fields)) for name in brokers]
        objects: dict[str, dict[str, object]] = {}
        for name, invoke in zip(brokers, self._all(requests), strict=True):
            value = decode_body(code, True, 0, invoke.body, fields).value
            objects[name] = value if isinstance(value, dict) else {}
        return objects

    def _asked(
        self,
        address: str,
        code: int,
        fields: dict[str, str],
        more_ms: int = 0,
        good: frozenset[int] = frozenset((0,)),
    ) -> Steps[Invoke]:
        request = plain_request(self.config, int(code), fields)
        deadline = self._deadline() + more_ms * MS
        invoke = yield from self._channels.ask(Invoke(address, request, deadline, True))
        assert invoke.command is not None
        if invoke.command.code not in good:
            raise BrokerError(invoke.command.code, invoke.command.remark, f"broker {address}")
        return invoke

    def _all(self, steps: Sequence[Steps[T]]) -> list[T]:
        """Run operations concurrently to their end."""
        running = [self._runner.start(operation) for operation in steps]
        try:
            self._network.run(lambda: all(operation.done for operation in running))
        finally:
            for operation in running:
                if not operation.done:
                    operation.cancel()
        return [operation.result for operation in running]

    def _deadline(self) -> int:
        return self._network.now() + self.config.api_timeout_ms * MS

    def _watch(self, when: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._channels.watched = when
        soonest = self._network.now() + _STEP_NS
        self._timer = self._network.call_at(max(when, soonest), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._channels.watched = NEVER
        earliest = self._channels.expire(self._network.now())
        if earliest != NEVER:
            self._watch(min(earliest, self._channels.watched))


_PULL_CODES: Final[frozenset[int]] = frozenset(
    (
        *(ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND),
        *(ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED),
    )
)


def _messages_in(invoke: Invoke, offset: int) -> tuple[list[StoredMessage], int]:
    """Return the messages of a pull, and the offset to pull next."""
    command = invoke.command
    assert command is not None
    after = integer_of(command.ext_fields.get("nextBeginOffset", ""))
    messages = decode_messages(invoke.body).messages if command.code == 0 else ()
    behind = max([offset, *(message.queue_offset + 1 for message in messages)])
    return list(messages), behind if after is None else after


def _address(route: ReadRoute, broker: str) -> str:
    address = route.address_of(broker)
    if address is None:
        raise RouteError(f"the route names no address of broker {broker}")
    return address


def _rows(
    broker: str, topic: str, value: Mapping[str, object]
) -> Iterator[tuple[TopicQueue, Mapping[str, object]]]:
    table = value.get("offsetTable")
    for entry in table if isinstance(table, list) else ():
        key, row = (entry.get("key"), entry.get("value")) if isinstance(entry, dict) else (0, 0)
        if not isinstance(key, dict) or not isinstance(row, dict):
            continue
        number = key.get("queueId")
        if key.get("topic") == topic and isinstance(number, int):
            yield TopicQueue(broker, number), row
