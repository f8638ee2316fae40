"""Requests that read queues: pulls with long polling and tags, offsets, and queries of messages.

RocketMQ: PullMessageProcessor, DefaultMessageStore.getMessage, ExpressionMessageFilter,
ConsumerManageProcessor, QueryMessageProcessor, AdminBrokerProcessor.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from dissectors.endpoint import host_of
from dissectors.remoting.bodies.registry import encode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.java_hash import java_hash

from ..clients import EXPRESSION_LIMIT, Subscription, subscription_of
from ..configs import READ
from ..events import EventKind
from ..long_polling import Held
from ..request import BadRequest, ReceivedRequest, serves
from ..server import HandlerResponse
from ..state import StateHandlers
from ..store.memory import StoreFull
from ..store.shelf import StoredQueue, StoredRecord

FLAG_COMMIT: Final = 1
FLAG_SUSPEND: Final = 2
FLAG_SUBSCRIPTION: Final = 4
# maxTransferCountOnMessageInMemory and maxTransferBytesOnMessageInMemory
_MOST_MESSAGES: Final = 32
_MOST_BYTES: Final = 256 * 1024
_MOST_SCANNED: Final = 16_000
_LONGEST_HOLD_MS: Final = 60_000
# maxMsgsNumBatch, defaultQueryMaxNum
_MOST_FOUND: Final = 64
_MOST_OF_UNIQUE_KEY: Final = 32
_MOST_ENTRIES: Final = 100_000
"""entries of a queue in one response: some 10 MB"""


@dataclass(frozen=True, slots=True)
class PullResult:
    """The result of reading a queue for a group."""

    status: str
    """name that RocketMQ's store gives to it"""
    code: int
    next_offset: int
    records: tuple[StoredRecord, ...] = ()


def read_queue(
    queue: StoredQueue, offset: int, most: int, most_bytes: int, subscription: Subscription
) -> PullResult:
    """Return at most `most` messages of a queue from `offset` on, at least one if one fits."""
    # the conditions, names and codes are those of DefaultMessageStore.getMessage
    low, high = queue.min_offset, queue.max_offset
    if high == 0:
        code = ResponseCode.PULL_NOT_FOUND if offset == 0 else ResponseCode.PULL_OFFSET_MOVED
        return PullResult("NO_MESSAGE_IN_QUEUE", code, 0)
    if offset < low:
        return PullResult("OFFSET_TOO_SMALL", ResponseCode.PULL_OFFSET_MOVED, low)
    if offset == high:
        return PullResult("OFFSET_OVERFLOW_ONE", ResponseCode.PULL_NOT_FOUND, offset)
    if offset > high:
        return PullResult("OFFSET_OVERFLOW_BADLY", ResponseCode.PULL_OFFSET_MOVED, high)
    taken: list[StoredRecord] = []
    size = 0
    at = offset
    for record in queue.since(offset):
        if len(taken) >= most or at - offset >= _MOST_SCANNED:
            break
        if subscription.wants(record.tag):
            if taken and size + len(record.data) > most_bytes:
                break
            taken.append(record)
            size += len(record.data)
        at = record.queue_offset + 1
    if taken:
        return PullResult("FOUND", ResponseCode.SUCCESS, at, tuple(taken))
    return PullResult("NO_MATCHED_MESSAGE", ResponseCode.PULL_RETRY_IMMEDIATELY, at)


class QueueHandlers(StateHandlers):
    """Serves requests that read queues of one broker."""

    # -- pulls ------------------------------------------------------------------------------------

    @serves(RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
    def pull(self, request: ReceivedRequest) -> HandlerResponse | None:
        """Handle 11 and 361: return messages, or nothing after a while."""
        return self._pull(request, may_hold=True)

    def _pull(self, request: ReceivedRequest, may_hold: bool) -> HandlerResponse | None:
        state = self._state
        group, topic = request.text("consumerGroup"), request.text("topic")
        queue_id, offset = request.number("queueId"), request.number("queueOffset")
        sys_flag = request.number("sysFlag")
        self._check(request, group, topic, queue_id)
        subscription = self._subscription(request, group, topic, sys_flag)
        if sys_flag & FLAG_COMMIT and may_hold:  # not again when a held pull is resumed
            state.put_offset(group, topic, queue_id, request.number("commitOffset"))
        queue = state.store.queue(topic, queue_id)
        # an administrator's offset goes before that of the request
        reset = state.offsets.resets.drop((group, topic, queue_id))
        if reset is not None:
            result = PullResult("OFFSET_RESET", ResponseCode.PULL_OFFSET_MOVED, reset)
        else:
            most = max(1, min(request.number("maxMsgNums"), _MOST_MESSAGES))
            most_bytes = min(request.number("maxMsgBytes", _MOST_BYTES), _MOST_BYTES)
            result = read_queue(queue, offset, most, most_bytes, subscription)
        nothing = result.code == ResponseCode.PULL_NOT_FOUND
        hold_ms = min(request.number("suspendTimeoutMillis", 0), _LONGEST_HOLD_MS)
        if (
            nothing
            and may_hold
            and sys_flag & FLAG_SUSPEND
            and hold_ms > 0
            and self._hold(request, (topic, queue_id), subscription, offset, hold_ms)
        ):
            return None
        return self._respond(request, result, queue, topic)

    def _respond(
        self, request: ReceivedRequest, result: PullResult, queue: StoredQueue, topic: str
    ) -> HandlerResponse:
        body = b"".join([record.data for record in result.records])
        if result.records:
            self._state.messages_out += len(result.records)
            self._state.tell(
                EventKind.PULLED,
                request.connection,
                code=request.code,
                topic=topic,
                count=len(result.records),
            )
        fields = {
            "suggestWhichBrokerId": "0",
            "nextBeginOffset": str(result.next_offset),
            "minOffset": str(queue.min_offset),
            "maxOffset": str(queue.max_offset),
        }
        if self._state.options.is_5:
            fields["topicSysFlag"] = "0"
            fields["groupSysFlag"] = "0"
        return HandlerResponse(result.code, fields, body, result.status)

    def _hold(
        self,
        request: ReceivedRequest,
        key: tuple[str, int],
        subscription: Subscription,
        offset: int,
        hold_ms: int,
    ) -> bool:
        def resume() -> None:
            try:
                response = self._pull(request, may_hold=False)
            except BadRequest as bad:
                response = bad.response
            if response is not None:
                request.respond(response)

        def wants(record: StoredRecord) -> bool:
            return record.queue_offset >= offset and subscription.wants(record.tag)

        request.body = b""  # the body is no longer needed, and many requests may wait
        size = request.size + subscription.size
        held = Held(key, request.connection, wants, resume, size)
        return self._state.holds.hold(held, hold_ms / 1000)

    def _check(self, request: ReceivedRequest, group: str, topic: str, queue_id: int) -> None:
        state = self._state
        if not state.perm & READ:
            raise BadRequest(
                f"the broker[{host_of(state.address)}] pulling message is forbidden",
                ResponseCode.NO_PERMISSION,
            )
        state.check_group(group)
        config = state.topic_of_consumers(topic)
        if not config.perm & READ:
            raise BadRequest(
                f"the topic[{topic}] pulling message is forbidden",
                ResponseCode.NO_PERMISSION,
                {"forbiddenType": "3"} if state.options.is_5 else None,
            )
        state.check_queue(config, queue_id, request.connection.peer, state.argument_code)

    def _subscription(
        self, request: ReceivedRequest, group: str, topic: str, sys_flag: int
    ) -> Subscription:
        """Return the subscription of the request, or that of the group's heartbeat."""
        if sys_flag & FLAG_SUBSCRIPTION:
            wants = subscription_of(
                topic, request.fields.get("subscription"), request.fields.get("expressionType")
            )
        else:
            wants = self._announced(request, group, topic)
        if len(wants.expression) > EXPRESSION_LIMIT:
            raise BadRequest("the subscription is too long")
        if wants.expression_type != "TAG":
            raise BadRequest(
                f"The broker does not support consumer to filter message by {wants.expression_type}"
            )
        return wants

    def _announced(self, request: ReceivedRequest, group: str, topic: str) -> Subscription:
        known = self._state.clients.consumers.get(group)
        if known is None:
            raise BadRequest(
                f"the consumer's group info not exist{self._state.options.faq}",
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
            )
        subscription = known.subscriptions.get(topic)
        if subscription is None:
            raise BadRequest(
                f"the consumer's subscription not exist{self._state.options.faq}",
                ResponseCode.SUBSCRIPTION_NOT_EXIST,
            )
        if subscription.version < request.number("subVersion", 0):
            raise BadRequest(
                "the consumer's subscription not latest", ResponseCode.SUBSCRIPTION_NOT_LATEST
            )
        return subscription

    # -- offsets ----------------------------------------------------------------------------------

    @serves(RequestCode.QUERY_CONSUMER_OFFSET)
    def query_offset(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 14: return a group's offset."""
        group, topic = request.text("consumerGroup"), request.text("topic")
        queue_id = request.number("queueId")
        offset = self._state.offsets.get(group, topic, queue_id)
        if offset is None:
            queue = self._state.store.queue(topic, queue_id)
            if self._state.options.is_5 and not request.flag("setZeroIfNotFound", True):
                raise BadRequest(
                    "Not found, do not set to zero, maybe this group boot first",
                    ResponseCode.QUERY_NOT_FOUND,
                )
            # A new group reads a queue from the start if its first message still exists.
            if queue.min_offset > 0 or queue.at(0) is None:
                raise BadRequest(
                    "Not found, maybe this group consumer boot first",
                    ResponseCode.QUERY_NOT_FOUND,
                )
            offset = 0
        return _offset(offset)

    @serves(RequestCode.UPDATE_CONSUMER_OFFSET)
    def update_offset(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 15: store a group's offset."""
        topic = request.text("topic")
        # 4.x stores offsets of any topic
        if self._state.options.is_5 and self._state.topics.get(topic) is None:
            raise BadRequest(f"Topic {topic} not exist!", ResponseCode.TOPIC_NOT_EXIST)
        self._state.put_offset(
            request.text("consumerGroup"),
            topic,
            request.number("queueId"),
            request.number("commitOffset"),
        )
        return HandlerResponse()

    @serves(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
    def search_offset(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 29: return the offset at a time."""
        upper = request.fields.get("boundaryType", "").upper() == "UPPER"
        return _offset(self._queue(request).offset_at(request.number("timestamp"), upper))

    @serves(RequestCode.GET_MAX_OFFSET)
    def max_offset(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 30: return the offset of the next message."""
        return _offset(self._queue(request).max_offset)

    @serves(RequestCode.GET_MIN_OFFSET)
    def min_offset(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 31: return the offset of the oldest message."""
        return _offset(self._queue(request).min_offset)

    @serves(RequestCode.GET_EARLIEST_MSG_STORETIME)
    def earliest(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 32: return the store time of the oldest message, or -1."""
        queue = self._queue(request)
        first = queue.at(queue.min_offset)
        return HandlerResponse(0, {"timestamp": str(first.store_ms if first is not None else -1)})

    def _queue(self, request: ReceivedRequest) -> StoredQueue:
        return self._state.store.queue(request.text("topic"), request.number("queueId"))

    # -- queries ----------------------------------------------------------------------------------

    @serves(RequestCode.VIEW_MESSAGE_BY_ID)
    def view(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 33: return the message at a commit log offset."""
        offset = request.number("offset")
        record = self._state.store.at(offset)
        if record is None:
            raise BadRequest(f"can not find message by the offset, {offset}")
        return HandlerResponse(body=record.data)

    @serves(RequestCode.QUERY_MESSAGE)
    def query(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 12: return messages with a key or UNIQ_KEY."""
        store = self._state.store
        limit = min(request.number("maxNum"), _MOST_FOUND)
        if request.flag("_UNIQUE_KEY_QUERY"):  # as in Java, the client's limit does not count then
            limit = _MOST_OF_UNIQUE_KEY
        topic, key = request.text("topic"), request.text("key")
        begin_ms, end_ms = request.number("beginTimestamp"), request.number("endTimestamp")
        try:
            records = store.find(topic, key, limit, begin_ms, end_ms)
        except StoreFull:
            raise BadRequest("the store has no room for an index by key: raise its limit") from None
        fields = {
            "indexLastUpdateTimestamp": str(store.last_store_ms),
            "indexLastUpdatePhyoffset": str(store.end_offset),
        }
        if not records:
            remark = "can not find message, maybe time range not correct"
            return HandlerResponse(ResponseCode.QUERY_NOT_FOUND, fields, b"", remark)
        return HandlerResponse(0, fields, b"".join(record.data for record in records))

    @serves(RequestCode.QUERY_CONSUME_QUEUE)
    def consume_queue(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 321: return the entries of a queue from an index on."""
        topic, queue_id = request.text("topic"), request.number("queueId")
        index, count = request.number("index"), request.number("count")
        queue = self._state.store.queue(topic, queue_id)
        if not queue.max_offset:
            raise BadRequest(f"{queue_id}@{topic} is not exist!")
        value: dict[str, object] = {
            "maxQueueIndex": queue.max_offset,
            "minQueueIndex": queue.min_offset,
        }
        group = request.fields.get("consumerGroup")
        if group is not None:
            known = self._state.clients.consumers.get(group)
            wanted = known.subscriptions.get(topic) if known is not None else None
            value["filterData"] = "null" if wanted else f"{group}@{topic} is not online!"
            if wanted is not None:
                value["subscriptionData"] = wanted.value()
        if not queue.min_offset <= index < queue.max_offset:
            return HandlerResponse(remark=f"Index {index} of {queue_id}@{topic} is not exist!")
        value["queueData"] = [
            {
                "eval": False,
                "physicOffset": record.physical_offset,
                "physicSize": len(record.data),
                "tagsCode": java_hash(record.tag) if record.tag else 0,
            }
            for record in islice(queue.since(index), max(0, min(count, _MOST_ENTRIES)))
        ]
        return HandlerResponse(body=encode_body(RequestCode.QUERY_CONSUME_QUEUE, True, value))


def _offset(offset: int) -> HandlerResponse:
    return HandlerResponse(0, {"offset": str(offset)})
