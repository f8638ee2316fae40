"""One send attempt: request, response, and its record.

All codes of `code_sets.STORED` mean that the broker has the message. An attempt is also a row of
the decoded log, so that reports read our sends like captures.
RocketMQ: DefaultMQProducerImpl.sendKernelImpl, MQClientAPIImpl.processSendResponse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from dissectors.foreign import integer_of
from dissectors.remoting.code_names import request_name, response_name
from dissectors.remoting.code_sets import STORED
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.send_fields import DEFAULT_REGION
from dissectors.remoting.versions import version_name
from dissectors.rows.record import ANSWERED, ONEWAY, UNANSWERED, ExchangeRecord

from ..cluster.client import ClusterClient
from ..cluster.route import vip_address
from ..config import ProducerConfig
from ..errors import (
    BrokerError,
    ClientError,
    ClosedError,
    ConnectError,
    ConnectionLostError,
    ForbiddenError,
    HookError,
    InvalidMessageError,
    ProtocolError,
    ResponseError,
    SendTimeoutError,
    TooManyRequestsError,
    UnknownBrokerError,
)
from ..hooks import SendContext, guarded, hook_error
from ..message import (
    Attempt,
    AttemptOutcome,
    Message,
    MessageQueue,
    SendMode,
    SendResult,
    SendStatus,
)
from ..namespace import unwrap_namespace, wrap_namespace
from ..wire.network import MS
from ..wire.steps import Acquire, Invoke, Permits, Steps
from .send_request import Prepared, SendEncoder, SendRequest

STATUSES: Final[dict[int, SendStatus]] = {
    code: SendStatus.SEND_OK
    if code == ResponseCode.SUCCESS
    else SendStatus[ResponseCode(code).name]
    for code in STORED
}
"""Response code of a message that the broker has → how it was stored."""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """The fields of a send response."""

    status: SendStatus
    """how the message was stored"""
    queue: MessageQueue
    queue_offset: int
    """offset in the queue; of a batch that of its first message"""
    offset_msg_id: str
    """broker's message id; several, joined by commas, for a batch"""
    transaction_id: str | None = None
    """id of the transaction of a half message"""
    recall_handle: str | None = None
    """handle that recalls a timer message"""
    region: str = DEFAULT_REGION
    """region of the broker, for traces"""
    trace_on: bool = True
    """whether the broker wants traces"""


def stored_of(response: RemotingCommand, queue: MessageQueue) -> Stored | str | None:
    """Parse the response to a send to `queue`.

    None if its code means a rejection; an error text if the code means stored but the header lacks
    required fields, so the response is unusable.
    """
    status = STATUSES.get(response.code)
    if status is None:
        return None
    get = response.ext_fields.get
    queue_id, offset = integer_of(get("queueId", "")), integer_of(get("queueOffset", ""))
    msg_id = get("msgId")
    if msg_id is None or queue_id is None or offset is None:
        missing = "msgId" if msg_id is None else "queueId" if queue_id is None else "queueOffset"
        return (
            f"the response says that the message is stored, but has no {missing} that can be read"
        )
    if queue_id != queue.queue_id:
        queue = MessageQueue(queue.topic, queue.broker_name, queue_id)
    return Stored(
        status,
        queue,
        offset,
        msg_id,
        get("transactionId"),
        get("recallHandle"),
        get("MSG_REGION") or DEFAULT_REGION,
        get("TRACE_ON") != "false",
    )


_OUTCOMES: tuple[tuple[type[ClientError], AttemptOutcome], ...] = (
    (SendTimeoutError, AttemptOutcome.TIMEOUT),
    (ConnectError, AttemptOutcome.CONNECT),
    (UnknownBrokerError, AttemptOutcome.CONNECT),
    (ConnectionLostError, AttemptOutcome.LOST),
    (TooManyRequestsError, AttemptOutcome.BUSY),
    (ProtocolError, AttemptOutcome.GARBAGE),
    (ResponseError, AttemptOutcome.GARBAGE),
    (ClosedError, AttemptOutcome.CANCELLED),
    (ForbiddenError, AttemptOutcome.REFUSED),
    (HookError, AttemptOutcome.REFUSED),
    (InvalidMessageError, AttemptOutcome.REFUSED),
)
_GO_AWAY = "the broker sent GO_AWAY: retried on a new connection"
_VIP_HINT = (
    "this is the VIP channel, two ports below the broker's; if brokers cannot be reached there,"
    " turn it off: --no-vip, vip_channel=False"
)
_HINTS = {
    1: "see the broker's log",
    2: "the broker is overloaded: send more slowly or to more brokers",
    13: "the broker rejects the message: it is too large, or a property is invalid",
    14: "the broker cannot store: its disk is full, it is a slave, or it is stopping",
    16: "the topic or broker cannot be written to, or the credentials do not allow it",
    17: "create the topic, or let the broker create it (autoCreateTopicEnable)",
}


_ACL_HINT = "access control refused the request: check the credentials (--acl, credentials=)"
_ACL_REMARK = "AclException"
"""in what brokers of 4.x say, with code 1"""


def _hint_of(response: RemotingCommand) -> str:
    """Return the hint for an error response."""
    if _ACL_REMARK in (response.remark or ""):
        return _ACL_HINT
    return _HINTS.get(response.code, "")


_NOT_PREPARED = Prepared("", "", 0, 0, 0, "", "", b"")


class Sending(msgspec.Struct, eq=False):
    """The state of sending one message or batch."""

    message: Message
    """the message; of a batch its first one"""
    mode: SendMode
    """how its response is waited for"""
    begin: int
    """when the send was called, ns of the steady clock"""
    deadline: int
    """when it must have ended"""
    half: bool = False
    """it opens a transaction"""
    messages: list[Message] | None = None
    """all of a batch"""
    prepared: Prepared = _NOT_PREPARED
    # msgspec gives each instance its own copy of an empty default
    attempts: list[Attempt] = []
    hook_errors: list[Exception] = []
    """what send hooks raised so far"""


class AttemptSender:
    """Makes attempts for one producer."""

    def __init__(self, client: ClusterClient, config: ProducerConfig, encoder: SendEncoder) -> None:
        self.encoder = encoder
        self.permits = {
            SendMode.ASYNC: Permits(config.async_limit),
            SendMode.ONEWAY: Permits(config.oneway_limit),
        }
        """requests of each kind that may be on their way at the same time"""
        self._client = client
        self._network = client.network
        self._config = config
        self._vip = config.uses_vip_channel
        self._checks = config.check_hooks
        self._hooks = config.hooks
        self._on_attempt = config.on_attempt
        self._group = wrap_namespace(config.namespace, config.group)
        self.on_stored: Callable[[Sending, SendResult, Attempt], None] | None = None
        """called for every stored message"""

    def request(self, sending: Sending, queue: MessageQueue, broker: str) -> SendRequest:
        """Return the request of an attempt that starts now."""
        client = self._client
        born = (self._network.now() + client.offset) // MS
        oneway = sending.mode is SendMode.ONEWAY
        return self.encoder.request(
            sending.prepared, queue, born, oneway=oneway, broker_name=broker
        )

    def attempt(
        self,
        sending: Sending,
        request: SendRequest,
        queue: MessageQueue,
        broker: str,
        why: str,
        deadline: int,
    ) -> Steps[SendResult]:
        """Send `request` to the master of `broker`; yield the result if it is stored.

        Raises ClientError: BrokerError for a code that means not stored, TransportError if that is
        unknown.
        """
        address = self._address_of(sending, request, queue, broker, why)
        mode = sending.mode
        invoke = Invoke(address, request, deadline, mode is SendMode.SYNC)
        # before the send hooks, as in Java: a vetoed attempt calls no before_send
        if self._checks:
            self._check(sending, request, queue, address, why)
        context = self._before(sending, queue, address) if self._hooks else None
        permits = self.permits.get(mode)
        taken = False
        started = self._network.now()
        try:
            if permits is not None and not permits.take():
                yield Acquire(permits, 1, deadline)
            # still False if the wait for a permit failed: only a taken one is given back
            taken = permits is not None
            yield invoke
            again = self._client.channels.again_of(invoke)
            if again is not None:
                # the refused request is an attempt of its own: a capture has it, with its response
                self._record(sending, invoke, queue, why, None)
                invoke, why = again, _GO_AWAY
                yield invoke
        # also GeneratorExit: an attempt that the caller abandons is recorded too
        except BaseException as problem:
            # 0: it was never written; the record still needs a begin
            invoke.began = invoke.began or started
            invoke.ended = invoke.ended or self._network.now()
            failure = problem if isinstance(problem, ClientError) else _reason_of_cancel(problem)
            if isinstance(failure, ConnectError) and self._uses_vip(sending):
                failure.hint = _VIP_HINT
            attempt = self._record(sending, invoke, queue, why, failure)
            self._after(sending, context, attempt, None, failure)
            raise
        finally:
            if permits is not None and taken:
                permits.give()
        return self._finish(sending, invoke, queue, why, context)

    def _address_of(
        self, sending: Sending, request: SendRequest, queue: MessageQueue, broker: str, why: str
    ) -> str:
        """Return the address of an attempt; an UnknownBrokerError is recorded as an attempt."""
        address = self._client.routes.master_of(broker)
        if address is None:
            reason = f"broker {broker} has no master in the route"
            error = UnknownBrokerError(reason, "it is down, or being replaced")
            # never yielded: it only carries fields of the record
            invoke = Invoke("", request, 0)
            invoke.ended = self._network.now()
            self._record(sending, invoke, queue, why, error)
            raise error
        return vip_address(address) if self._uses_vip(sending) else address

    def _uses_vip(self, sending: Sending) -> bool:
        """Return whether the next attempt uses the VIP channel."""
        # as Java: the retries of an asynchronous send use the main port
        return self._vip and not (sending.mode is SendMode.ASYNC and sending.attempts)

    def _finish(
        self,
        sending: Sending,
        invoke: Invoke,
        queue: MessageQueue,
        why: str,
        context: SendContext | None,
    ) -> SendResult:
        """Return the result of an attempt that has a response or is oneway."""
        command = invoke.command
        parsed = stored_of(command, queue) if command is not None else None
        error: ClientError | None = None
        if isinstance(parsed, str):
            error = ResponseError(parsed, f"{invoke.address} may not be a RocketMQ broker")
        elif parsed is None and command is not None:
            error = BrokerError(command.code, command.remark, _hint_of(command))
        stored = parsed if isinstance(parsed, Stored) else None
        attempt = self._record(sending, invoke, queue, why, error, stored)
        if error is not None:
            self._after(sending, context, attempt, None, error)
            raise error
        result = self._result(sending, queue, stored)
        self._after(sending, context, attempt, result, None)
        if sending.hook_errors:
            result = msgspec.structs.replace(result, hook_errors=tuple(sending.hook_errors))
        if stored is not None and self.on_stored is not None:
            self.on_stored(sending, result, attempt)
        return result

    def _result(self, sending: Sending, queue: MessageQueue, stored: Stored | None) -> SendResult:
        """Return the result for the caller; `stored` is None for a oneway send."""
        key, attempts = sending.prepared.unique_key, tuple(sending.attempts)
        if stored is None:
            return SendResult(SendStatus.SEND_OK, key, self._seen(queue), attempts=attempts)
        return SendResult(
            stored.status,
            key,
            self._seen(stored.queue),
            stored.queue_offset,
            stored.offset_msg_id,
            stored.transaction_id,
            stored.recall_handle,
            stored.region,
            stored.trace_on,
            None,
            attempts,
        )

    def _seen(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue for the application: its topic without the namespace."""
        namespace = self._config.namespace
        if not namespace:
            return queue
        return queue._replace(topic=unwrap_namespace(namespace, queue.topic))

    def _record(
        self,
        sending: Sending,
        invoke: Invoke,
        queue: MessageQueue,
        why: str,
        error: ClientError | None,
        stored: Stored | None = None,
    ) -> Attempt:
        """Record an attempt, and call `on_attempt`."""
        command, prepared, config = invoke.command, sending.prepared, self._config
        offset = self._client.offset
        ended = invoke.ended or invoke.began
        outcome = _outcome_of(invoke, error)
        attempt = Attempt(
            len(sending.attempts) + 1,
            self._seen(queue),
            invoke.address,
            (invoke.began or ended) + offset,
            None if outcome is AttemptOutcome.ONEWAY else ended + offset,
            outcome,
            command.code if command is not None else None,
            command.remark if command is not None else None,
            # code and remark already say what a broker responded
            error.reason if error is not None and command is None else None,
            why,
            invoke.local,
            invoke.conversation,
            invoke.opaque,
            prepared.code,
            config.serialize_type,
            config.language,
            config.client_version,
            self._group,
            invoke.request_bytes,
            invoke.response_bytes,
            len(prepared.body),
            prepared.message_count,
            stored.queue.queue_id if stored is not None else None,
            stored.queue_offset if stored is not None else None,
            stored.offset_msg_id if stored is not None else None,
        )
        sending.attempts.append(attempt)
        if self._on_attempt is not None:
            self._on_attempt(sending.message, attempt)
        return attempt

    # -- hooks ----------------------------------------------------------------------------------

    def _context(self, sending: Sending, queue: MessageQueue, address: str) -> SendContext:
        return SendContext(sending.message, self._group, self._seen(queue), address, sending.mode)

    def _check(
        self,
        sending: Sending,
        request: SendRequest,
        queue: MessageQueue,
        address: str,
        why: str,
    ) -> None:
        """Call the check hooks; a veto is raised, and recorded as an attempt."""
        context = self._context(sending, queue, address)
        for hook in self._checks:
            try:
                hook.check_send(context)
            except Exception as raised:
                error = hook_error("a check hook", raised)
                invoke = Invoke(address, request, 0)
                invoke.ended = self._network.now()
                self._record(sending, invoke, queue, why, error)
                raise error from error.__cause__

    def _before(self, sending: Sending, queue: MessageQueue, address: str) -> SendContext:
        context = self._context(sending, queue, address)
        for hook in self._hooks:
            self._keep(sending, guarded(hook.before_send, context))
        return context

    def _after(
        self,
        sending: Sending,
        context: SendContext | None,
        attempt: Attempt,
        result: SendResult | None,
        error: ClientError | None,
    ) -> None:
        if context is None:
            return
        context.attempt, context.result, context.error = attempt, result, error
        for hook in self._hooks:
            self._keep(sending, guarded(hook.after_send, context))

    def _keep(self, sending: Sending, error: Exception | None) -> None:
        if error is not None:
            sending.hook_errors.append(error)


def _outcome_of(invoke: Invoke, error: ClientError | None) -> AttemptOutcome:
    # an unusable response is garbage, although the broker answered
    if invoke.command is not None and not isinstance(error, ResponseError):
        return AttemptOutcome.ANSWERED
    if error is None:
        return AttemptOutcome.ONEWAY
    for kind, outcome in _OUTCOMES:
        if isinstance(error, kind):
            return outcome
    return AttemptOutcome.CANCELLED


def _reason_of_cancel(problem: BaseException) -> ClosedError:
    """Return the reason of an abandoned attempt."""
    if isinstance(problem, GeneratorExit):
        return ClosedError("given up by the caller")
    return ClosedError(f"{type(problem).__name__}: {problem}")


def with_attempts(result: SendResult, sending: Sending) -> SendResult:
    """Return a result with all attempts and errors of hooks, including later ones."""
    attempts, errors = tuple(sending.attempts), tuple(sending.hook_errors)
    return msgspec.structs.replace(result, attempts=attempts, hook_errors=errors)


def wrapped_queue(config: ProducerConfig, queue: MessageQueue) -> MessageQueue:
    """Return a queue for brokers: its topic with the producer's namespace."""
    return queue._replace(topic=wrap_namespace(config.namespace, queue.topic))


NO_CAPTURE: Final = "-"
_ROW_STATUSES: Final = {AttemptOutcome.ANSWERED: ANSWERED, AttemptOutcome.ONEWAY: ONEWAY}
_ENDS: Final = {
    AttemptOutcome.TIMEOUT: "open",
    AttemptOutcome.LOST: "closed",
    AttemptOutcome.GARBAGE: "closed",
}
"""how the connection of a request without response was when it was given up"""


def record_of_attempt(
    message: Message, attempt: Attempt, capture: str = NO_CAPTURE
) -> ExchangeRecord:
    """Return the row of an attempt to send `message`; `capture` is the value of that column."""
    status = _ROW_STATUSES.get(AttemptOutcome(attempt.outcome), UNANSWERED)
    answered = status == ANSWERED
    queue_id = attempt.queue.queue_id if attempt.queue_id is None else attempt.queue_id
    return ExchangeRecord(
        capture=capture,
        conversation=attempt.conversation,
        client_address=attempt.local,
        server_address=attempt.address,
        status=status,
        # nothing was captured, so there are no packets
        request_packet=None,
        response_packet=None,
        request_time=attempt.begin,
        response_time=attempt.end if answered else None,
        latency_us=attempt.latency_us if answered else None,
        opaque=attempt.opaque,
        request_code=attempt.request_code,
        request_name=request_name(attempt.request_code),
        response_code=attempt.code,
        response_name=None if attempt.code is None else response_name(attempt.code),
        remark=attempt.remark or (None if answered else attempt.error),
        language=attempt.language,
        version=attempt.version,
        version_name=version_name(attempt.version),
        serialize_type=attempt.serialize_type,
        topic=attempt.queue.topic,
        group=attempt.group or None,
        queue_id=queue_id,
        broker_name=attempt.queue.broker_name,
        unique_key=message.unique_key,
        keys=message.keys,
        tags=message.tags,
        body_bytes=attempt.body_bytes,
        request_bytes=attempt.request_bytes,
        response_bytes=attempt.response_bytes,
        missing_bytes=0,
        message_count=attempt.message_count,
        queue_offset=attempt.queue_offset,
        offset_msg_id=attempt.offset_msg_id,
        rtt_us=None,
        end=_ENDS.get(AttemptOutcome(attempt.outcome)),
        findings=[],
    )
