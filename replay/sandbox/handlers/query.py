"""Requests that find messages by commit log offset, key, or queue offset.

RocketMQ: QueryMessageProcessor, AdminBrokerProcessor (consume queues).
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from dissectors.remoting.bodies.registry import encode_body
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.java_hash import java_hash

from ..request import BadRequest, ReceivedRequest, serves
from ..server import HandlerResponse
from ..state import StateHandlers
from ..store.memory import StoreFull

# maxMsgsNumBatch, defaultQueryMaxNum
_MOST: Final = 64
_MOST_OF_UNIQUE_KEY: Final = 32
_MOST_ENTRIES: Final = 100_000
"""entries of a queue in one response: some 10 MB"""


class QueryHandlers(StateHandlers):
    """Serves message queries at one broker."""

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
        limit = min(request.number("maxNum"), _MOST)
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
