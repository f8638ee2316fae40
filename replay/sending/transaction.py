"""Transactions: half messages, their outcomes, and the broker's checks.

As in Java: if the local transaction raises, the outcome is unknown and the broker gets the reason.
RocketMQ: DefaultMQProducerImpl (sendMessageInTransaction, endTransaction, checkTransactionState),
ClientRemotingProcessor.checkTransactionState.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.headers import encode_ext_fields
from dissectors.remoting.ids.message_ids import decode_offset_id
from dissectors.remoting.messages.compression import decompress
from dissectors.remoting.messages.message import StoredMessage
from dissectors.remoting.messages.records import decode_messages
from dissectors.remoting.sysflag import compression_of
from dissectors.remoting.versions import V4_9_5, V5_3_0

from ..errors import ClientError
from ..message import (
    UNIQ_KEY,
    Message,
    SendMode,
    SendResult,
    SendStatus,
    TransactionState,
    message_of_properties,
)
from ..namespace import unwrap_namespace
from ..wire.channel import Channel
from ..wire.network import MS
from ..wire.request import plain_request
from ..wire.steps import Invoke, Steps
from .attempt import wrapped_queue
from .send import Sender

END_TRANSACTION: Final = int(RequestCode.END_TRANSACTION)
CHECK_TRANSACTION_STATE: Final = int(RequestCode.CHECK_TRANSACTION_STATE)
TRANSACTION_ID: Final = "__transactionId__"
"""property that tells the local transaction its id"""
# as DefaultMQProducerImpl.checkTransactionState
_TIMEOUT_MS: Final = 3000
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_QUESTIONS: Final = 2000
"""what Java lets wait (checkRequestHoldMax)"""
QUESTIONS: Final = ("questions about transactions", _MOST_QUESTIONS, "passed over")
ASKED: Final = ("bytes of messages that are asked about", _MOST_BYTES, "passed over")

_log = logging.getLogger("rmqtool.replay")


@dataclass(frozen=True, slots=True)
class Check:
    """A broker's check of a transaction."""

    address: str
    """the broker that checks"""
    message: Message
    """the half message, as it was sent"""
    fields: dict[str, str]
    """ext fields of the check"""


class End(NamedTuple):
    """An outcome that was sent to a broker."""

    message: Message
    """the half message"""
    unique_key: str
    transaction_id: str | None
    """the broker's id of the transaction"""
    address: str
    """the broker"""
    state: TransactionState
    from_check: bool = False
    """it responds to a check"""


class Transactions:
    """The transactions of one producer."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._client = sender.client
        self._config = sender.config
        self._questions = sender.config.budget.bound(*QUESTIONS)
        self._bodies = sender.config.budget.bound(*ASKED)
        self.on_check: Callable[[Check], None] | None = None
        """receives every check of a broker for a message of this group; calls `asked` later"""
        self.on_end: Callable[[End], None] | None = None
        """called for every outcome sent to a broker"""
        if self._config.check_listener is not None:
            self._client.handlers[CHECK_TRANSACTION_STATE] = self._checked

    def half(self, message: Message, timeout_ms: int | None = None) -> Steps[SendResult]:
        """Send the half message, after a heartbeat so the broker can check."""
        sending = self._sender.send(message, SendMode.SYNC, timeout_ms, half=True)
        timeout = self._config.send_timeout_ms if timeout_ms is None else timeout_ms
        # first the route: without it no broker is known to greet
        yield from self._sender.find_queues(message.topic, timeout)
        yield from self._client.greet_all(timeout)  # a broker checks only groups that it knows
        result = yield from sending
        if result.transaction_id is not None:
            message.properties[TRANSACTION_ID] = result.transaction_id
        return result

    def decided(self, half: SendResult) -> TransactionState | None:
        """Return the outcome if the half message is not stored safely; otherwise None."""
        return None if half.status is SendStatus.SEND_OK else TransactionState.ROLLBACK

    def end(
        self,
        message: Message,
        half: SendResult,
        state: TransactionState,
        problem: BaseException | None = None,
    ) -> Steps[SendResult]:
        """Send the outcome to the broker; return the result of the half message with it.

        A failed write is only logged, because the broker will check.
        """
        offset_id = decode_offset_id(half.offset_msg_id or "")
        queue = wrapped_queue(self._config, half.queue)
        table = self._client.routes.table_of(queue.topic)
        broker = table.broker_of(queue) if table is not None else queue.broker_name
        address = self._client.routes.master_of(broker)
        fields: dict[str, object] = {
            "topic": queue.topic if self._config.client_version >= V5_3_0 else None,
            "producerGroup": self._client.group,
            "tranStateTableOffset": half.queue_offset,
            "commitLogOffset": offset_id.physical_offset if offset_id is not None else 0,
            "commitOrRollback": int(state),
            "fromTransactionCheck": False,
            "msgId": half.unique_key,
            "transactionId": half.transaction_id,
            "bname": broker if self._config.client_version >= V4_9_5 else None,
        }
        remark = _remark("executeLocalTransactionBranch", problem)
        # a broker finds the half message by the commit log offset, which only the id has
        if address is not None and offset_id is not None:
            yield from self._send_outcome(address, fields, remark)
            if self.on_end is not None:
                self.on_end(End(message, half.unique_key, half.transaction_id, address, state))
        else:
            _log.warning("the outcome of a transaction could not be reported: no address or offset")
        return msgspec.structs.replace(half, transaction_state=state)

    def respond(
        self, check: Check, state: TransactionState, problem: BaseException | None = None
    ) -> Steps[None]:
        """Send the outcome to the broker that checked."""
        check_fields = check.fields
        unique_key = check.message.properties.get(UNIQ_KEY) or check_fields.get("msgId", "")
        fields: dict[str, object] = {
            "topic": check_fields.get("topic"),
            "producerGroup": self._client.group,
            "tranStateTableOffset": check_fields.get("tranStateTableOffset"),
            "commitLogOffset": check_fields.get("commitLogOffset"),
            "commitOrRollback": int(state),
            "fromTransactionCheck": True,
            "msgId": unique_key,
            "transactionId": check_fields.get("transactionId"),
            "bname": check_fields.get("bname"),
        }
        remark = _remark("checkLocalTransactionState", problem)
        yield from self._send_outcome(check.address, fields, remark)
        if self.on_end is not None:
            transaction_id = check_fields.get("transactionId")
            self.on_end(End(check.message, unique_key, transaction_id, check.address, state, True))

    def _send_outcome(
        self, address: str, fields: dict[str, object], remark: str | None
    ) -> Steps[None]:
        texts = encode_ext_fields(END_TRANSACTION, False, fields)
        # oneway, as in Java: if it is lost, the broker checks (39) and the outcome is sent again
        request = plain_request(self._config, END_TRANSACTION, texts, oneway=True, remark=remark)
        deadline = self._client.network.now() + _TIMEOUT_MS * MS
        try:
            yield Invoke(address, request, deadline)
        except ClientError as error:
            _log.warning("the outcome of a transaction could not be reported: %s", error.reason)

    def _checked(self, channel: Channel, command: RemotingCommand, body: bytes) -> None:
        """Handle a broker's check of a transaction (39)."""
        messages = decode_messages(body).messages
        if not messages or messages[0].missing:
            return
        group = messages[0].properties.get("PGROUP")
        if self.on_check is None or group not in (self._config.group, self._client.group):
            return
        message = self._message_of(messages[0])
        for bound, more in ((self._questions, 1), (self._bodies, len(message.body))):
            if more > bound.room:  # the broker checks again
                bound.end(f"of {channel.address}")
                return
        # released in `asked`: a broker may check faster than the application decides
        self._questions.held += 1
        self._bodies.held += len(message.body)
        self.on_check(Check(channel.address, message, dict(command.ext_fields)))

    def asked(self, check: Check) -> None:
        """Release a check that was, or will never be, passed to the application."""
        self._questions.held -= 1
        self._bodies.held -= len(check.message.body)

    def _message_of(self, stored: StoredMessage) -> Message:
        body = stored.body
        kind = compression_of(stored.sys_flag)
        if kind is not None:
            whole = decompress(
                body, kind, self._bodies.room + 1
            )  # one more byte proves that it is too long
            body = whole.data if whole.problem is None else body
        topic = unwrap_namespace(self._config.namespace, stored.topic)
        return message_of_properties(topic, body, stored.properties, stored.flag)


def _remark(place: str, problem: BaseException | None) -> str | None:
    if problem is None:
        return None
    return f"{place} exception: {type(problem).__name__}: {problem}"


def state_of(value: object) -> TransactionState:
    """Convert a listener's return value to a state; anything else is unknown."""
    if isinstance(value, TransactionState):
        return value
    return TransactionState.UNKNOWN
