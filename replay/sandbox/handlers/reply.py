"""Replies: stored, and pushed to the client that waits for them.

RocketMQ: ReplyMessageProcessor.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.messages.properties import encode_properties

from ..request import ReceivedRequest, serves
from ..server import HandlerResponse
from ..state import BrokerState
from ..store.memory import NewMessage
from ..store.shelf import StoredRecord
from .send_rules import SendHeader, SendRules, send_header, with_region

_PUSH_SECONDS: Final = 10.0
"""How long the waiting client has to say that it got its reply."""


class ReplyHandlers:
    """Serves replies at one broker."""

    def __init__(self, state: BrokerState, rules: SendRules) -> None:
        self._state = state
        self._rules = rules

    @serves(RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2)
    @with_region
    def reply(self, request: ReceivedRequest) -> HandlerResponse | None:
        """Handle 324 and 325: store a reply and push it to the client that waits for it."""
        header = send_header(request)
        config = self._rules.topic_for(header)
        queue_id = self._rules.queue_of(header, config, request)
        properties = self._rules.properties(header.properties, reply=True)
        message = NewMessage(
            header.topic,
            queue_id,
            request.body,
            properties,
            header.flag,
            header.sys_flag,
            header.born_timestamp,
            request.connection.peer,
        )
        record = self._rules.store(message)
        response = self._rules.stored(record, queue_id, {}, header.topic)
        client_id = properties.get("REPLY_TO_CLIENT", "")
        target = self._state.clients.client(client_id)
        # an error although the reply is stored, as in RocketMQ
        if target is None:
            remark = f"push reply message fail, channel of <{client_id}> not found."
            return response._replace(code=int(ResponseCode.SYSTEM_ERROR), remark=remark)
        failed = response._replace(
            code=int(ResponseCode.SYSTEM_ERROR), remark=f"push reply message to {client_id}fail."
        )
        self._rules.count(request, header.topic, 1)
        timer: asyncio.TimerHandle | None = None

        def answered(answer: RemotingCommand | None, _: bytes) -> None:
            if timer is not None:
                timer.cancel()
            request.respond(failed if answer is None else response)

        def late() -> None:
            target.forget_request(answered)
            request.respond(failed)

        fields = self._push_fields(header, record, properties, request)
        code = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT
        if not target.ask(code, fields, request.body, answered):
            return failed
        timer = asyncio.get_running_loop().call_later(_PUSH_SECONDS, late)
        request.release()
        return None

    def _push_fields(
        self,
        header: SendHeader,
        record: StoredRecord,
        properties: dict[str, str],
        request: ReceivedRequest,
    ) -> dict[str, str]:
        pushed = {**properties, "PUSH_REPLY_TIME": str(self._state.now_ms())}
        return {
            "producerGroup": header.group,
            "topic": header.topic,
            "defaultTopic": header.default_topic,
            "defaultTopicQueueNums": str(header.default_queues),
            "queueId": str(header.queue_id),
            "sysFlag": str(header.sys_flag),
            "bornTimestamp": str(header.born_timestamp),
            "flag": str(header.flag),
            "properties": encode_properties(pushed),
            "reconsumeTimes": str(header.reconsume_times),
            "bornHost": request.connection.peer,
            "storeHost": self._state.store.store_host,
            "storeTimestamp": str(record.store_ms),
        }
