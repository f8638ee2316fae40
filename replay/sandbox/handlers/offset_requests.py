"""Requests about offsets: of groups, and of the queues themselves.

RocketMQ: ConsumerManageProcessor, AdminBrokerProcessor.
"""

from __future__ import annotations

from dissectors.remoting.codes import RequestCode, ResponseCode

from ..request import BadRequest, ReceivedRequest, serves
from ..server import HandlerResponse
from ..state import StateHandlers
from ..store.shelf import StoredQueue


class OffsetHandlers(StateHandlers):
    """Serves offset requests at one broker."""

    @serves(RequestCode.QUERY_CONSUMER_OFFSET)
    def query(self, request: ReceivedRequest) -> HandlerResponse:
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
    def update(self, request: ReceivedRequest) -> HandlerResponse:
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
    def search(self, request: ReceivedRequest) -> HandlerResponse:
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


def _offset(offset: int) -> HandlerResponse:
    return HandlerResponse(0, {"offset": str(offset)})
