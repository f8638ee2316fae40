"""POP consumers: messages in flight, and the requests to pop, acknowledge, and change them.

A group pops the messages of a queue in order; unacknowledged ones are redelivered: in the group's
retry topic, or for ordered groups at their offset.
RocketMQ: PopMessageProcessor, AckMessageProcessor, ChangeInvisibleTimeProcessor,
NotificationProcessor, PopBufferMergeService, PopReviveService, ConsumerOrderInfoManager.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.ids.pop_receipts import (
    ORDER_REVIVE_QUEUE,
    PopEntry,
    decode_bit_set,
    decode_pop_receipt,
    encode_pop_list,
)
from dissectors.remoting.topic_names import RETRY_PREFIX

from .clients import EXPRESSION_LIMIT, NAME_LIMIT, Subscription, subscription_of
from .configs import READ, TopicConfig
from .events import EventKind
from .handlers.client_requests import json_object, objects_of, text_of
from .long_polling import Held
from .offsets import OFFSETS_LIMIT
from .request import BadRequest, ReceivedRequest, serves
from .room import ENTRY, BoundedTable, Room, weight_of
from .server import HandlerResponse
from .state import ANY_QUEUE, BrokerState
from .store.memory import NewMessage, StoreFull
from .store.shelf import StoredQueue, StoredRecord

IN_FLIGHT_LIMIT: Final = 200_000
"""messages handed out and not acknowledged, at one broker"""
_MOST_SCANNED: Final = 4_000
_FREE_DEADLINES: Final = 1_000
"""deadlines that may be out of date"""
_FREE_OFFSETS: Final = 32
"""offsets of a queue that may be acknowledged"""


class PopKey(NamedTuple):
    """A queue as a group sees it."""

    group: str
    topic: str
    """topic, or the group's POP retry topic of it"""
    queue_id: int


@dataclass(slots=True)
class PopQueue:
    """A group's offset in a queue, and its messages in flight."""

    next_offset: int
    """offset of the next message to hand out"""
    in_flight: dict[int, int] = field(default_factory=dict)
    """offset → until when it is invisible, ms since the epoch"""
    _lowest: list[int] = field(default_factory=list)
    """heap of the offsets in flight; some of them are acknowledged since, or there twice"""

    def hold(self, offset: int, until_ms: int) -> None:
        """Note a message that is handed out."""
        self.in_flight[offset] = until_ms
        heapq.heappush(self._lowest, offset)
        if len(self._lowest) > 2 * len(self.in_flight) + _FREE_OFFSETS:
            self._lowest = sorted(self.in_flight)

    def committed(self) -> int:
        """Return the offset below which everything is acknowledged."""
        lowest = self._lowest
        while lowest and lowest[0] not in self.in_flight:
            heapq.heappop(lowest)
        return lowest[0] if lowest else self.next_offset


class Expired(NamedTuple):
    """A message whose invisible time has expired."""

    key: PopKey
    offset: int


class PopQueues:
    """Messages in flight of the POP groups of one broker."""

    def __init__(self, begin: Callable[[PopKey], int], room: Room) -> None:
        """`begin` returns the start offset of a group in a new queue."""
        self._begin = begin
        self._room = room
        self._queues = BoundedTable[PopKey, PopQueue](
            self._room, lambda key, _: ENTRY + weight_of(key.group, key.topic)
        )
        self._deadlines: list[tuple[int, PopKey, int]] = []
        """(until when, queue, offset); some of them are acknowledged or extended since"""
        self.in_flight = 0
        """messages handed out and not acknowledged"""

    def queue(self, key: PopKey) -> PopQueue:
        """Return a group's state in a queue."""
        queue = self._queues.get(key)
        if queue is None:
            queue = PopQueue(self._begin(key))
            if len(self._queues) < OFFSETS_LIMIT and len(key.group) <= NAME_LIMIT:
                self._queues.put(key, queue)
        return queue

    def take(
        self, key: PopKey, queue: StoredQueue, most: int, until_ms: int, subscription: Subscription
    ) -> list[StoredRecord]:
        """Deliver at most `most` messages of a queue, invisible until `until_ms`."""
        state = self.queue(key)
        if key not in self._queues:
            return []  # no room to record the messages in flight
        # the store may have dropped messages, or the topic may be a new one of that name
        state.next_offset = min(max(state.next_offset, queue.min_offset), queue.max_offset)
        taken: list[StoredRecord] = []
        begin = state.next_offset
        for record in queue.since(begin):
            full = self.in_flight >= IN_FLIGHT_LIMIT or not self._room.takes(ENTRY)
            # bounded: tags that match nothing would read a whole queue within one request
            if len(taken) >= most or full or record.queue_offset - begin >= _MOST_SCANNED:
                break
            # after a rewind, some behind that offset may still be invisible
            if record.queue_offset not in state.in_flight and subscription.wants(record.tag):
                taken.append(record)
                self._hold(key, state, record.queue_offset, until_ms)
            state.next_offset = record.queue_offset + 1
        return taken

    def has_more(self, key: PopKey, queue: StoredQueue) -> bool:
        """Return whether there are messages to deliver."""
        return self.queue(key).next_offset < queue.max_offset

    def acknowledge(self, key: PopKey, offset: int) -> None:
        """Acknowledge a message; do nothing if it is not in flight."""
        if self.queue(key).in_flight.pop(offset, None) is not None:
            self._let_go()

    def extend(self, key: PopKey, offset: int, until_ms: int) -> bool:
        """Change the invisible time of a message; return False if it is not in flight."""
        state = self.queue(key)
        if state.in_flight.pop(offset, None) is None:
            return False
        self._let_go()
        self._hold(key, state, offset, until_ms)
        return True

    def _hold(self, key: PopKey, state: PopQueue, offset: int, until_ms: int) -> None:
        state.hold(offset, until_ms)
        self.in_flight += 1
        self._room.take(ENTRY)
        heapq.heappush(self._deadlines, (until_ms, key, offset))
        # acknowledged entries stay until their time: they are removed in bulk before they add up
        if len(self._deadlines) > 2 * self.in_flight + _FREE_DEADLINES:
            self._deadlines = [entry for entry in self._deadlines if self._is_due(*entry)]
            heapq.heapify(self._deadlines)

    def _let_go(self) -> None:
        self.in_flight -= 1
        self._room.take(-ENTRY)

    def _is_due(self, until_ms: int, key: PopKey, offset: int) -> bool:
        state = self._queues.get(key)
        # an extended message has another deadline: this entry is out of date
        return state is not None and state.in_flight.get(offset) == until_ms

    @property
    def next_deadline(self) -> int | None:
        """Earliest possible expiry, ms since the epoch, or None."""
        return self._deadlines[0][0] if self._deadlines else None

    def expire(self, now_ms: int) -> Iterator[Expired]:
        """Yield expired messages, which are then no longer in flight."""
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            until_ms, key, offset = heapq.heappop(self._deadlines)
            if self._is_due(until_ms, key, offset):
                del self._queues[key].in_flight[offset]
                self._let_go()
                yield Expired(key, offset)

    def go_back(self, key: PopKey, offset: int) -> None:
        """Rewind to an offset: an ordered group must redeliver it first."""
        state = self.queue(key)
        state.next_offset = min(state.next_offset, offset)
        for later in [other for other in state.in_flight if other >= offset]:
            del state.in_flight[later]
            self._let_go()


def retry_topic(group: str, topic: str) -> str:
    """Return the retry topic of `topic` for a POP group."""
    return f"{RETRY_PREFIX}{group}_{topic}"


_MOST_MESSAGES: Final = 32
_LONGEST_HOLD_MS: Final = 60_000
# as PopMessageRequestHeader.isTimeoutTooMuch
_LATE_MS: Final = 500
_LEAST_INVISIBLE_MS: Final = 10


class _Pop(NamedTuple):
    """A validated pop request."""

    group: str
    topic: str
    queue_id: int
    most: int
    invisible_ms: int
    deadline_ms: int
    ordered: bool
    subscription: Subscription


class PopHandlers:
    """Serves POP consumers at one broker."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state
        self.queues = PopQueues(self._begin_of, state.room)
        """what the groups hold"""
        self._ordered = _groups(state.room)
        self._from_end = _groups(state.room)
        self._timer: asyncio.TimerHandle | None = None
        self._turn = 0

    def close(self) -> None:
        """Stop redelivering."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- pop ------------------------------------------------------------------------------------

    @serves(RequestCode.POP_MESSAGE)
    def pop(self, request: ReceivedRequest) -> HandlerResponse | None:
        """Handle 200050: return messages and make them invisible, or return nothing."""
        wanted = self._wanted(request)
        response = self._take(wanted)
        if response is not None:
            return response
        remaining = wanted.deadline_ms - self._state.now_ms()
        if remaining <= 0:
            return HandlerResponse(ResponseCode.POLLING_TIMEOUT, remark="NOT_POLLING")

        def resume() -> None:
            late = HandlerResponse(ResponseCode.POLLING_TIMEOUT, remark="POLLING_TIMEOUT")
            request.respond(self._take(wanted) or late)

        if self._hold(request, wanted.topic, resume, wanted.subscription, remaining):
            return None
        return HandlerResponse(ResponseCode.POLLING_FULL, remark="POLLING_FULL")

    def _wanted(self, request: ReceivedRequest) -> _Pop:
        group, topic = request.text("consumerGroup"), request.text("topic")
        most = request.number("maxMsgNums")
        if not 0 < most <= _MOST_MESSAGES:
            raise BadRequest(
                f"the broker[{host_of(self._state.address)}] pop message's num is "
                f"greater than {_MOST_MESSAGES}",
                self._state.argument_code,
            )
        config = self._readable(group, topic)
        queue_id = request.number("queueId")
        if queue_id >= config.read_queues:
            raise BadRequest(f"queueId[{queue_id}] is illegal", self._state.argument_code)
        born, poll = request.number("bornTime"), request.number("pollTime")
        deadline = born + min(max(poll, 0), _LONGEST_HOLD_MS)
        if self._state.now_ms() > deadline + _LATE_MS:
            raise BadRequest("the broker was too late", ResponseCode.POLLING_TIMEOUT)
        # ConsumeInitMode.MAX
        if request.number("initMode") == 1:
            self._from_end.put(group, True)
        ordered = request.flag("order") or self._state.groups.of(group).orderly
        if ordered:
            self._ordered.put(group, True)
        subscription = subscription_of(
            topic, request.fields.get("exp"), request.fields.get("expType")
        )
        if len(subscription.expression) > EXPRESSION_LIMIT:
            raise BadRequest("the subscription is too long")
        if subscription.expression_type != "TAG":
            raise BadRequest("The broker does not support consumer to filter message by SQL92")
        return _Pop(
            group,
            topic,
            queue_id,
            most,
            max(request.number("invisibleTime"), _LEAST_INVISIBLE_MS),
            deadline,
            ordered,
            subscription,
        )

    def _readable(self, group: str, topic: str) -> TopicConfig:
        if len(group) > NAME_LIMIT:
            raise BadRequest("the name of the group is too long")
        self._state.check_group(group)
        config = self._state.topic_of_consumers(topic)
        if not config.perm & READ or not self._state.perm & READ:
            raise BadRequest(
                f"the topic[{topic}] peeking message is forbidden", ResponseCode.NO_PERMISSION
            )
        return config

    def _keys(self, group: str, topic: str, queue_id: int) -> list[tuple[str, PopKey]]:
        """Return (topic kind, queue) that a pop may read, the retry topic first."""
        keys = []
        retries = retry_topic(group, topic)
        if self._state.topics.get(retries) is not None:
            keys.append(("1", PopKey(group, retries, 0)))
        config = self._state.topics.get(topic)
        count = config.read_queues if config is not None else 0
        if queue_id != ANY_QUEUE:
            return [*keys, ("0", PopKey(group, topic, queue_id))]
        self._turn += 1  # begin at another queue each time, so that none is left out
        queues = [(self._turn + place) % count for place in range(count)]
        return keys + [("0", PopKey(group, topic, number)) for number in queues]

    def _take(self, wanted: _Pop) -> HandlerResponse | None:
        """Return a response with available messages, or None."""
        now = self._state.now_ms()
        until = now + wanted.invisible_ms
        records: list[StoredRecord] = []
        starts: list[PopEntry] = []
        offsets: list[PopEntry] = []
        rest = 0
        for kind, key in self._keys(wanted.group, wanted.topic, wanted.queue_id):
            queue = self._state.store.queue(key.topic, key.queue_id)
            state = self.queues.queue(key)
            left = wanted.most - len(records)
            # an ordered group gets nothing more of a queue until all that it has is acknowledged
            if left <= 0 or (wanted.ordered and state.in_flight):
                rest += max(0, queue.max_offset - state.next_offset)
                continue
            # what is in the retry topic has matched before
            subscription = wanted.subscription if kind == "0" else subscription_of(key.topic, "*")
            taken = self.queues.take(key, queue, left, until, subscription)
            rest += max(0, queue.max_offset - state.next_offset)
            self._commit(key)
            if taken:
                records += taken
                starts.append(PopEntry(kind, key.queue_id, (taken[0].queue_offset,)))
                numbers = tuple(record.queue_offset for record in taken)
                offsets.append(PopEntry(kind, key.queue_id, numbers))
        if not records:
            return None
        self._arm()
        self._state.messages_out += len(records)
        self._state.tell(
            EventKind.PULLED,
            topic=wanted.topic,
            count=len(records),
            code=int(RequestCode.POP_MESSAGE),
        )
        fields = {
            "popTime": str(now),
            "invisibleTime": str(wanted.invisible_ms),
            "reviveQid": str(ORDER_REVIVE_QUEUE if wanted.ordered else 0),
            "restNum": str(rest),
            "startOffsetInfo": encode_pop_list(tuple(starts)),
            "msgOffsetInfo": encode_pop_list(tuple(offsets)),
        }
        return HandlerResponse(0, fields, b"".join(record.data for record in records), "FOUND")

    def _hold(
        self,
        request: ReceivedRequest,
        topic: str,
        resume: Callable[[], None],
        subscription: Subscription,
        hold_ms: int,
    ) -> bool:
        def wants(record: StoredRecord) -> bool:
            return record.topic != topic or subscription.wants(record.tag)

        size = request.size + subscription.size
        held = Held((topic, ANY_QUEUE), request.connection, wants, resume, size)
        return self._state.holds.hold(held, hold_ms / 1000)

    def _begin_of(self, key: PopKey) -> int:
        stored = self._state.offsets.get(*key)
        if stored is not None:
            return stored
        queue = self._state.store.queue(key.topic, key.queue_id)
        from_end = key.group in self._from_end and not key.topic.startswith(RETRY_PREFIX)
        return queue.max_offset if from_end else queue.min_offset

    def _commit(self, key: PopKey) -> None:
        offset = self.queues.queue(key).committed()
        if self._state.offsets.get(*key) != offset:
            self._state.put_offset(*key, offset)

    # -- acknowledging --------------------------------------------------------------------------

    @serves(RequestCode.ACK_MESSAGE)
    def acknowledge(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 200051: acknowledge a message."""
        key, offset = self._receipt(request)
        self.queues.acknowledge(key, offset)
        self._commit(key)
        return HandlerResponse()

    @serves(RequestCode.BATCH_ACK_MESSAGE)
    def acknowledge_many(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 200151: acknowledge many messages."""
        acknowledged: dict[PopKey, None] = {}
        for item in objects_of(json_object(request.body).get("acks")):
            group, topic = text_of(item.get("c")), text_of(item.get("t"))
            queue_id, start = item.get("q"), item.get("so")
            places = decode_bit_set(text_of(item.get("b"))) or ()
            if not isinstance(queue_id, int) or not isinstance(start, int):
                continue
            # a receipt from the retry topic names the original topic
            if item.get("r") == "1":
                topic = retry_topic(group, topic)
            key = PopKey(group, topic, queue_id)
            self._known(key, request)
            for place in places:
                self.queues.acknowledge(key, start + place)
            acknowledged[key] = None
        for key in acknowledged:
            self._commit(key)
        return HandlerResponse()

    @serves(RequestCode.CHANGE_MESSAGE_INVISIBLETIME)
    def change(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 200053: change the invisible time of a message."""
        key, offset = self._receipt(request)
        now = self._state.now_ms()
        invisible = max(request.number("invisibleTime"), _LEAST_INVISIBLE_MS)
        self.queues.extend(key, offset, now + invisible)
        self._arm()
        ordered = key.group in self._ordered
        return HandlerResponse(
            0,
            {
                "popTime": str(now),
                "invisibleTime": str(invisible),
                "reviveQid": str(ORDER_REVIVE_QUEUE if ordered else 0),
            },
        )

    def _receipt(self, request: ReceivedRequest) -> tuple[PopKey, int]:
        if decode_pop_receipt(request.text("extraInfo")) is None:
            raise BadRequest("the receipt makes no sense", ResponseCode.MESSAGE_ILLEGAL)
        key = PopKey(
            request.text("consumerGroup"), request.text("topic"), request.number("queueId")
        )
        self._known(key, request)
        offset = request.number("offset")
        queue = self._state.store.queue(key.topic, key.queue_id)
        if not queue.min_offset <= offset < queue.max_offset:
            raise BadRequest(
                f"offset is illegal, key:{key.topic}@{key.queue_id}, commit:{offset}, "
                f"store:{queue.min_offset}~{queue.max_offset}",
                ResponseCode.NO_MESSAGE,
            )
        return key, offset

    def _known(self, key: PopKey, request: ReceivedRequest) -> None:
        config = self._state.topic_of_consumers(key.topic)
        peer = request.connection.peer
        self._state.check_queue(config, key.queue_id, peer, ResponseCode.MESSAGE_ILLEGAL)

    # -- redelivery -------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Schedule the next expiry; call after each change of the messages in flight."""
        deadline = self.queues.next_deadline
        self.close()
        if deadline is not None:
            seconds = max(0.001, (deadline - self._state.now_ms()) / 1000)
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        changed: dict[PopKey, None] = {}
        for expired in self.queues.expire(self._state.now_ms()):
            if expired.key.group in self._ordered:
                self.queues.go_back(expired.key, expired.offset)
            else:
                self._revive(expired.key, expired.offset)
            changed[expired.key] = None
        for key in changed:
            self._commit(key)
        self._arm()

    def _revive(self, key: PopKey, offset: int) -> None:
        """Store a message again in the group's retry topic."""
        record = self._state.store.queue(key.topic, key.queue_id).at(offset)
        if record is None:
            return
        stored = record.message()
        topic = stored.properties.get("RETRY_TOPIC", key.topic)
        retries = self._state.topic_of_retries(retry_topic(key.group, topic))
        properties = {**stored.properties, "RETRY_TOPIC": topic}
        properties.pop("POP_CK", None)
        properties.setdefault("1ST_POP_TIME", str(self._state.now_ms()))
        message = NewMessage.again(stored, retries.name, 0, properties)
        try:
            again = self._state.put(message)
        except (StoreFull, ValueError):
            # No room for a copy or its properties: the group pops the message itself again.
            state = self.queues.queue(key)
            state.next_offset = min(state.next_offset, offset)
            return
        # pops of the topic read its retry topic, too
        self._state.holds.arrived((topic, ANY_QUEUE), again)

    # -- queries --------------------------------------------------------------------------------

    @serves(RequestCode.PEEK_MESSAGE)
    def peek(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 200052: return messages, which stay visible."""
        group, topic = request.text("consumerGroup"), request.text("topic")
        self._readable(group, topic)
        most = min(max(1, request.number("maxMsgNums")), _MOST_MESSAGES)
        records: list[StoredRecord] = []
        for _, key in self._keys(group, topic, request.number("queueId")):
            queue = self._state.store.queue(key.topic, key.queue_id)
            for record in queue.since(self.queues.queue(key).next_offset):
                if len(records) >= most:
                    break
                records.append(record)
        if not records:
            raise BadRequest("NO_MESSAGE_IN_QUEUE", ResponseCode.PULL_NOT_FOUND)
        fields = {
            "popTime": str(self._state.now_ms()),
            "invisibleTime": "0",
            "reviveQid": "0",
            "restNum": "0",
        }
        return HandlerResponse(0, fields, b"".join(record.data for record in records), "FOUND")

    @serves(RequestCode.NOTIFICATION)
    def notification(self, request: ReceivedRequest) -> HandlerResponse | None:
        """Handle 200054: return whether there is a message, at the latest after the poll time."""
        group, topic = request.text("consumerGroup"), request.text("topic")
        queue_id = request.number("queueId")
        self._readable(group, topic)
        if self._has_messages(group, topic, queue_id):
            return _has(True)
        deadline = request.number("bornTime") + min(request.number("pollTime"), _LONGEST_HOLD_MS)
        remaining = deadline - self._state.now_ms()

        def resume() -> None:
            request.respond(_has(self._has_messages(group, topic, queue_id)))

        everything = subscription_of(topic, "*")
        if remaining > 0 and self._hold(request, topic, resume, everything, remaining):
            return None
        return _has(False)

    def _has_messages(self, group: str, topic: str, queue_id: int) -> bool:
        return any(
            self.queues.has_more(key, self._state.store.queue(key.topic, key.queue_id))
            for _, key in self._keys(group, topic, queue_id)
        )

    @serves(RequestCode.POLLING_INFO)
    def polling(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 200055: return the number of held requests of a topic."""
        number = self._state.holds.count((request.text("topic"), ANY_QUEUE))
        return HandlerResponse(0, {"pollingNum": str(number)})


def _groups(room: Room) -> BoundedTable[str, bool]:
    return BoundedTable(room, lambda name, _: weight_of(name))


def _has(messages: bool) -> HandlerResponse:
    return HandlerResponse(0, {"hasMsg": str(messages).lower(), "pollingFull": "false"})
