"""Requests about stored messages: returned, committed, rolled back, recalled.

RocketMQ: AbstractSendMessageProcessor.consumerSendMsgBack, EndTransactionProcessor,
RecallMessageProcessor.
"""

from __future__ import annotations

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.ids.message_ids import decode_recall_handle
from dissectors.remoting.sysflag import COMMIT, ROLLBACK
from dissectors.remoting.topic_names import RETRY_PREFIX

from ..groups import GroupConfig
from ..request import BadRequest, ReceivedRequest, serves
from ..server import HandlerResponse
from ..state import BrokerState
from ..store.memory import NewMessage
from ..store.shelf import StoredRecord
from ..topics import TopicConfig
from .schedule import Schedule
from .send_rules import SendRules
from .transaction import HalfMessages


class SendBackHandlers:
    """Serves requests about stored messages at one broker."""

    def __init__(
        self,
        state: BrokerState,
        rules: SendRules,
        schedule: Schedule,
        transactions: HalfMessages,
    ) -> None:
        self._state = state
        self._rules = rules
        self._schedule = schedule
        self._transactions = transactions

    @serves(RequestCode.CONSUMER_SEND_MSG_BACK)
    def send_back(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 36: store a returned message for redelivery, or as a dead letter."""
        state = self._state
        group = request.text("group")
        config = state.groups.of(group)
        if config.retry_queues <= 0:
            return HandlerResponse()
        retry = state.topic_of_retries(RETRY_PREFIX + group, config.retry_queues)
        record = state.store.at(request.number("offset"))
        if record is None:
            raise BadRequest(f"look message by offset failed, {request.number('offset')}")
        self._give_back(record, config, retry, request)
        return HandlerResponse()

    def _give_back(
        self,
        record: StoredRecord,
        config: GroupConfig,
        retry: TopicConfig,
        request: ReceivedRequest,
    ) -> None:
        stored = record.message()
        level = request.number("delayLevel", 0)
        most = request.number("maxReconsumeTimes", config.retry_max)
        properties = dict(stored.properties)
        # a message that is returned again keeps its first topic and id
        properties.setdefault("RETRY_TOPIC", stored.topic)
        origin = self._state.store.offset_id(record)
        properties.setdefault("ORIGIN_MESSAGE_ID", origin)
        queue_id = self._state.random.randrange(max(1, retry.write_queues))
        message = NewMessage.again(stored, retry.name, queue_id, properties)
        if stored.reconsume_times >= most or level < 0:
            properties.setdefault("DLQ_ORIGIN_TOPIC", properties["RETRY_TOPIC"])
            properties.setdefault("DLQ_ORIGIN_MESSAGE_ID", properties["ORIGIN_MESSAGE_ID"])
            self._state.put(self._rules.dead(message, config.name))
        else:
            # level 0 leaves the choice to the broker: 10 s, and longer after each further failure
            properties["DELAY"] = str(level if level > 0 else 3 + stored.reconsume_times)
            self._schedule.put(message)

    @serves(RequestCode.END_TRANSACTION)
    def end_transaction(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 37: commit or roll back; unknown changes nothing."""
        outcome = request.number("commitOrRollback")
        if outcome not in (COMMIT, ROLLBACK):
            return HandlerResponse()
        problem = self._transactions.end(
            request.number("commitLogOffset"), outcome, request.text("producerGroup")
        )
        return HandlerResponse() if problem is None else HandlerResponse(1, remark=problem)

    @serves(RequestCode.RECALL_MESSAGE)
    def recall(self, request: ReceivedRequest) -> HandlerResponse:
        """Handle 370: recall a timer message."""
        handle = decode_recall_handle(request.text("recallHandle"))
        if handle is None:
            raise BadRequest("recall handle is invalid", ResponseCode.ILLEGAL_OPERATION)
        record = self._schedule.recall(handle.topic, handle.unique_key)
        if record is None:
            raise BadRequest("no such message waits", ResponseCode.ILLEGAL_OPERATION)
        return HandlerResponse(0, {"msgId": handle.unique_key})
