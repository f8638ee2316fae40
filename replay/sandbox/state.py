"""The state of a sandbox broker, shared by its request handlers.

RocketMQ: BrokerController.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from dissectors.foreign import integer_of
from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.versions import V5_3_2

from .clients import ClientTable
from .configs import GroupConfig, GroupTable, TopicConfig, TopicTable
from .events import EventKind, Events
from .long_polling import LongPolling
from .offsets import LockTable, OffsetTable
from .options import SandboxOptions
from .request import BadRequest
from .room import room_of
from .server import Connection, Hub
from .store.memory import MessageStore, NewMessage
from .store.shelf import StoredRecord

ANY_QUEUE: Final = -1
"""Queue id of POP requests that take from every queue."""
_CODES_LIMIT: Final = 10_000


class BrokerState:
    """The tables of one broker."""

    def __init__(
        self,
        name: str,
        address: str,
        options: SandboxOptions,
        hub: Hub,
        now_ms: Callable[[], int],
        random_: random.Random,
    ) -> None:
        """`address` is the one in routes, `ip:port`."""
        self.name = name
        self.address = address
        """`ip:port` in routes and ids"""
        self.options = options
        """the settings of the sandbox"""
        self.hub = hub
        """limits and numbers shared with the other brokers"""
        self.now_ms = now_ms
        """the clock, ms since the epoch"""
        self.events = Events(options.on_event, now_ms, name)
        self.tell = self.events.tell
        self.random = random_
        self.route: Callable[[str], list[tuple[str, int]]] = lambda _: []
        """topic → (broker, readable queues) of the whole cluster"""
        self.started_ms = now_ms()
        self.room = room_of(options.store_limit)
        """byte limit of everything but messages"""
        self.topics = TopicTable(self.room)
        self.groups = GroupTable(self.room)
        self.clients = ClientTable(self.room)
        self.offsets = OffsetTable(self.room)
        self.locks = LockTable(self.room)
        """queues of orderly consumers"""
        self.store = MessageStore(address, options.store_limit, options.drop_oldest, self.room)
        self.holds = LongPolling(options.held_limit, self.room)
        """held pulls"""
        self.config: dict[str, str] = {}
        """settings that an administrator changed"""
        self.requests: Counter[int] = Counter()
        """requests by code"""
        self.responses: Counter[tuple[int, int]] = Counter()
        """responses by request code and response code"""
        self.messages_in = 0
        """messages that clients sent and that were stored"""
        self.messages_out = 0
        """messages delivered to clients"""

    @property
    def argument_code(self) -> int:
        """Response code for a bad name or queue id, which changed in 5.3.2."""
        later = self.options.version >= V5_3_2
        return ResponseCode.INVALID_PARAMETER if later else ResponseCode.SYSTEM_ERROR

    def data_version(self, counter: int) -> dict[str, object]:
        """Return a DataVersion that changes with `counter`."""
        state = {"stateVersion": 0} if self.options.is_5 else {}
        return {"counter": counter, **state, "timestamp": self.started_ms}

    # -- checks of requests ---------------------------------------------------------------------

    def topic_of_consumers(self, topic: str) -> TopicConfig:
        """Return a topic that a consumer names; BadRequest if there is none."""
        config = self.topics.get(topic)
        if config is None:
            raise BadRequest(
                f"topic[{topic}] not exist, apply first please! {self.options.faq}",
                ResponseCode.TOPIC_NOT_EXIST,
            )
        return config

    def check_queue(self, config: TopicConfig, queue_id: int, peer: str, code: int) -> None:
        """Raise BadRequest with `code` if a topic has no such queue to read."""
        if not 0 <= queue_id < config.read_queues:
            raise BadRequest(
                f"queueId[{queue_id}] is illegal, topic:[{config.name}] topicConfig.readQueueNums:"
                f"[{config.read_queues}] consumer:[/{peer}]",
                code,
            )

    def check_group(self, group: str) -> None:
        """Raise BadRequest if a group may not consume."""
        if not self.groups.of(group).consume_enable:
            raise BadRequest(
                f"subscription group no permission, {group}", ResponseCode.NO_PERMISSION
            )

    def queue_key(self, topic: str, queue_id: int) -> dict[str, object]:
        """Return the members of a MessageQueue of this broker."""
        return {"brokerName": self.name, "queueId": queue_id, "topic": topic}

    # -- messages -------------------------------------------------------------------------------

    def put(self, message: NewMessage) -> StoredRecord:
        """Store a message and wake pulls that wait for it. Raises as `MessageStore.put`."""
        return self.put_all((message,))[0]

    def put_all(self, messages: Sequence[NewMessage]) -> list[StoredRecord]:
        """Store messages of one queue, all or none, as `put`."""
        records = self.store.put_all(messages, self.now_ms())
        for record in records if len(self.holds) else ():
            self.holds.arrived((record.topic, record.queue_id), record)
            self.holds.arrived((record.topic, ANY_QUEUE), record)
        return records

    # -- topics and offsets, persisted with a store file ----------------------------------------

    def put_topic(self, config: TopicConfig) -> bool:
        """Create or change a topic; return False if there are too many."""
        new = self.topics.get(config.name) is None
        if not self.topics.put(config):
            return False
        if self.store.journal is not None:
            self.store.journal.put_topic(config)
        if new:
            self.tell(
                EventKind.TOPIC, detail=counted(config.write_queues, "queue"), topic=config.name
            )
        return True

    def drop_topic(self, topic: str) -> None:
        """Remove a topic with its queues and offsets."""
        self.store.drop_topic(topic)
        if self.topics.drop(topic) and self.store.journal is not None:
            self.store.journal.drop_topic(topic)
        for key in self.offsets.drop_topic(topic):
            if self.store.journal is not None:
                self.store.journal.drop_offset(*key)
        self.holds.wake(topic)

    def put_group(self, config: GroupConfig) -> bool:
        """Create or change a group; return False if there are too many."""
        if not self.groups.put(config):
            return False
        if self.store.journal is not None:
            self.store.journal.put_group(config)
        return True

    def drop_group(self, group: str, *, with_offsets: bool) -> None:
        """Remove a group."""
        journal = self.store.journal
        if self.groups.drop(group) and journal is not None:
            journal.drop_group(group)
        for key in self.offsets.drop_group(group) if with_offsets else ():
            if journal is not None:
                journal.drop_offset(*key)

    @property
    def perm(self) -> int:
        """The permission of its topics: brokerPermission."""
        number = integer_of(self.config.get("brokerPermission", "6"))
        return 6 if number is None else number & 6

    def put_offset(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Store a group's offset; return False if there are too many."""
        if not self.offsets.put(group, topic, queue_id, offset):
            return False
        if self.store.journal is not None:
            self.store.journal.put_offset(group, topic, queue_id, offset)
        return True

    def count_request(self, code: int) -> None:
        """Count a request; only a limited number of unknown codes is counted separately."""
        if code in self.requests or len(self.requests) < _CODES_LIMIT:
            self.requests[code] += 1

    def count_response(self, code: int, response: int) -> None:
        """Count an error response."""
        if (code, response) in self.responses or len(self.responses) < _CODES_LIMIT:
            self.responses[(code, response)] += 1

    def topic_of_retries(self, topic: str, queues: int = 1) -> TopicConfig:
        """Return a %RETRY%, %DLQ%, or system topic, created if missing."""
        config = self.topics.get(topic)
        if config is None:
            config = TopicConfig(topic, queues, queues)
            self.put_topic(config)
        return config

    # -- clients --------------------------------------------------------------------------------

    def notify_group(self, group: str) -> None:
        """Notify the members of a group of a change, so they rebalance."""
        consumers = self.clients.consumers.get(group)
        if consumers is None or not self.groups.notifies(group):
            return
        for connection in list(consumers.members):
            connection.ask(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, {"consumerGroup": group})

    def forget(self, connection: Connection) -> None:
        """Handle the end of a connection: its client leaves all groups, its pulls wait no more."""
        self.holds.forget(connection)
        for group in self.clients.remove(connection)[1]:
            self.notify_group(group)


class StateHandlers:
    """Handlers that need only the tables of their broker."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
