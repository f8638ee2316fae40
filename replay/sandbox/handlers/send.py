"""Send requests: single messages, batches, and half messages.

RocketMQ: SendMessageProcessor.
"""

from __future__ import annotations

import os
from typing import Final

from dissectors.endpoint import host_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.messages.batch import decode_batch
from dissectors.remoting.send_fields import send_fields_of
from dissectors.remoting.sysflag import TRANSACTION_MASK
from dissectors.remoting.topic_names import RETRY_PREFIX

from ...unique_id import UniqueIds
from ..request import BadRequest, ReceivedRequest, serves
from ..server import HandlerResponse
from ..state import BrokerState
from ..store.memory import NewMessage
from .send_rules import SendHeader, SendRules, send_header, with_region
from .transaction import HalfMessages

_BATCH_LIMIT: Final = 100_000


class SendHandlers:
    """Serves sends at one broker."""

    def __init__(self, state: BrokerState, rules: SendRules, transactions: HalfMessages) -> None:
        self._state = state
        self._rules = rules
        self._transactions = transactions
        self._ids = UniqueIds(host_of(state.address), os.getpid(), id(self))

    @serves(RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2)
    @with_region
    def send(self, request: ReceivedRequest) -> HandlerResponse | None:
        """Handle 10 and 310: store one message."""
        if request.fields.get(send_fields_of(request.command.code).batch) == "true":
            return self.send_batch(request)
        header = send_header(request)
        config = self._rules.topic_for(header)
        queue_id = self._rules.queue_of(header, config, request)
        body = request.body
        if len(body) > self._state.options.max_message_size:
            raise self._rules.illegal()
        if not body and self._state.options.is_5:
            request.header_read = False  # a real broker also responds without fields
            raise BadRequest("the message has no body")
        properties = self._rules.properties(header.properties)
        if self._state.options.is_5 and "UNIQ_KEY" not in properties:
            properties["UNIQ_KEY"] = self._ids.next(self._state.now_ms())
        message = NewMessage(
            header.topic,
            queue_id,
            body,
            properties,
            header.flag,
            header.sys_flag & ~TRANSACTION_MASK,
            header.born_timestamp,
            request.connection.peer,
            header.reconsume_times,
        )
        # As in Java: a retry of a client before 4.6.1 still has the property of its half message.
        half = properties.get("TRAN_MSG", "").lower() == "true" and not (
            header.reconsume_times > 0 and "DELAY" in properties
        )
        if header.topic.startswith(RETRY_PREFIX):
            message = self._retried(message, header)
        record = self._rules.store(message, self._transactions.put if half else None)
        self._rules.count(request, header.topic, 1)
        return self._rules.stored(record, queue_id, properties, header.topic)

    def _retried(self, message: NewMessage, header: SendHeader) -> NewMessage:
        """Return a message for a retry topic, or a dead letter after too many retries."""
        group = header.topic.removeprefix(RETRY_PREFIX)
        most = self._state.groups.of(group).retry_max
        if header.max_reconsume_times is not None:
            most = header.max_reconsume_times
        # 4.x compares by >=, 5.x by >: an orderly consumer of 5.x has counted the last try, too
        times = message.reconsume_times - self._state.options.is_5
        return message if times < most else self._rules.dead(message, group)

    @serves(RequestCode.SEND_BATCH_MESSAGE)
    @with_region
    def send_batch(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 320: store several messages of one topic and queue."""
        header = send_header(request)
        if header.topic.startswith(RETRY_PREFIX) and self._state.options.is_5:
            raise BadRequest(
                f"batch request does not support retry group {header.topic}",
                ResponseCode.MESSAGE_ILLEGAL,
            )
        config = self._rules.topic_for(header)
        queue_id = self._rules.queue_of(header, config, request)
        if len(request.body) > self._state.options.max_message_size:
            raise self._rules.illegal()
        batch = decode_batch(request.body)
        if batch.problems or not 0 < len(batch.items) <= _BATCH_LIMIT:
            raise self._rules.illegal()
        messages = [
            NewMessage(
                header.topic,
                queue_id,
                item.body,
                self._rules.completed_item(item.properties),
                item.flag,
                header.sys_flag & ~TRANSACTION_MASK,
                header.born_timestamp,
                request.connection.peer,
            )
            for item in batch.items
        ]
        try:
            records = self._state.put_all(messages)
        except ValueError:
            raise self._rules.illegal() from None
        self._rules.count(request, header.topic, len(records))
        response = self._rules.stored(records[0], queue_id, {}, header.topic)
        ids = ",".join(map(self._state.store.offset_id, records))
        return response._replace(fields={**(response.fields or {}), "msgId": ids})
