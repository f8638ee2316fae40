"""Requests that find single messages: by commit log offset, by key.

RocketMQ: QueryMessageProcessor.
"""

from __future__ import annotations

from dissectors.remoting.codes import RequestCode, ResponseCode

from ..answer import Answer
from ..request import BadRequest, Handler, ReceivedRequest
from ..state import BrokerState

_MOST: int = 64


class QueryHandlers:
    """Serves questions for messages at one broker."""

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def handlers(self) -> dict[int, Handler]:
        """Return what serves each request code."""
        return {
            RequestCode.VIEW_MESSAGE_BY_ID: self.view,
            RequestCode.QUERY_MESSAGE: self.query,
        }

    def view(self, request: ReceivedRequest) -> Answer:
        """Answer 33: return the message at a commit log offset."""
        offset = request.number("offset")
        record = self._state.store.at(offset)
        if record is None:
            raise BadRequest(f"can not find message by the offset, {offset}")
        return Answer(0, None, record.data)

    def query(self, request: ReceivedRequest) -> Answer:
        """Answer 12: return messages with a key or UNIQ_KEY."""
        store = self._state.store
        limit = min(request.number("maxNum"), _MOST)
        if request.flag("_UNIQUE_KEY_QUERY"):
            limit = _MOST
        found = store.find(
            request.text("topic"),
            request.text("key"),
            limit,
            request.number("beginTimestamp"),
            request.number("endTimestamp"),
        )
        fields = {
            "indexLastUpdateTimestamp": str(store.last_store_ms),
            "indexLastUpdatePhyoffset": str(store.end_offset),
        }
        if not found:
            remark = "can not find message, maybe time range not correct"
            return Answer(ResponseCode.QUERY_NOT_FOUND, fields, b"", remark)
        return Answer(0, fields, b"".join(record.data for record in found))
