"""Request-reply: a consumer's reply message is pushed by a broker.

Rules: a reply is matched by its correlation id; an unexpected one is dropped.
RocketMQ: DefaultMQProducerImpl.request, RequestFutureHolder, ClientRemotingProcessor (326).
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final

from dissectors.foreign import integer_of
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.messages.compression import decompress
from dissectors.remoting.messages.properties import decode_properties
from dissectors.remoting.sysflag import compression_of

from ..errors import ReplyTimeoutError
from ..message import Message, SendMode, SendResult, message_of_properties
from ..namespace import unwrap_namespace
from ..wire.channel import Channel
from ..wire.network import MS
from ..wire.steps import Await, Resumable, Steps
from .send import Sender

PUSH_REPLY: Final = int(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT)
CORRELATION_ID: Final = "CORRELATION_ID"
REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
TTL: Final = "TTL"
ARRIVE_TIME: Final = "ARRIVE_TIME"
_MOST_BYTES: Final = 64 * 1024 * 1024
REPLIES: Final = ("bytes of pushed replies", _MOST_BYTES, "refused")
"""of those that nobody has taken yet, decompressed"""
_SUCCESS: Final = int(ResponseCode.SUCCESS)
_ERROR: Final = int(ResponseCode.SYSTEM_ERROR)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A pending request."""

    reply: Message | None = None
    waiter: Resumable | None = None


class PendingRequests:
    """The pending requests of one producer."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._client = sender.client
        self._waiting: dict[str, _Waiting] = {}
        self._bodies = sender.config.budget.bound(*REPLIES)
        self.dropped = 0
        """unexpected replies"""
        self._client.handlers[PUSH_REPLY] = self._on_reply

    def request(self, message: Message, timeout_ms: int | None = None) -> Steps[Message]:
        """Send a request; yield the reply. Raises ReplyTimeoutError, and as `send`."""
        timeout = self._sender.config.send_timeout_ms if timeout_ms is None else timeout_ms
        network = self._client.network
        deadline = network.now() + timeout * MS
        correlation = str(uuid.uuid4())
        request = message.with_properties(
            {
                CORRELATION_ID: correlation,
                REPLY_TO_CLIENT: self._client.client_id,
                TTL: str(timeout),
            }
        )
        # before the send: the reply may overtake the response
        waiting = self._waiting[correlation] = _Waiting()
        try:
            yield from self._sender.find_queues(message.topic, timeout)
            # any broker may have to push the reply: it must know this client
            yield from self._client.greet_all(max((deadline - network.now()) // MS, 1))
            left = max((deadline - network.now()) // MS, 1)
            stored = yield from self._sender.send(request, SendMode.ASYNC, left)
            if waiting.reply is None:
                yield self._await(waiting, stored, timeout, deadline)
            assert waiting.reply is not None
            return waiting.reply
        finally:
            self._waiting.pop(correlation, None)
            if waiting.reply is not None:
                self._bodies.held -= len(waiting.reply.body)

    def _await(self, waiting: _Waiting, stored: SendResult, timeout: int, deadline: int) -> Await:
        def begin(waiter: Resumable) -> None:
            waiting.waiter = waiter

        def forget() -> None:
            waiting.waiter = None

        def late() -> ReplyTimeoutError:
            error = ReplyTimeoutError(
                f"no reply to the request to {stored.queue.topic} within {timeout} ms",
                "the request was stored; check whether its consumer replies",
            )
            error.attempts, error.hook_errors = stored.attempts, stored.hook_errors
            return error

        return Await(begin, forget, deadline, late)

    def _on_reply(self, channel: Channel, command: RemotingCommand, body: bytes) -> None:
        """Handle a reply that a broker pushes (326)."""
        fields = command.ext_fields
        properties = decode_properties(fields.get("properties", ""))
        waiting = self._waiting.get(properties.get(CORRELATION_ID, ""))
        # as Java: the broker can do nothing about a reply that is late or a duplicate
        if waiting is None or waiting.reply is not None:
            self.dropped += 1
            channel.respond(command, self._client.response_of(_SUCCESS))
            return
        # after an error here, the broker responds with an error to the consumer that replied
        whole = self._opened(channel, body, integer_of(fields.get("sysFlag", "0")) or 0)
        if whole is None:
            remark = "process reply message fail"
            channel.respond(command, self._client.response_of(_ERROR, remark))
            return
        channel.respond(command, self._client.response_of(_SUCCESS))
        now = self._client.network.epoch() // MS
        topic = unwrap_namespace(self._sender.config.namespace, fields.get("topic", ""))
        number = integer_of(fields.get("flag", "0")) or 0
        properties[ARRIVE_TIME] = str(now)
        waiting.reply = message_of_properties(topic, whole, properties, number)
        self._bodies.held += len(whole)
        if waiting.waiter is not None:
            waiting.waiter.resume(None)

    def _opened(self, channel: Channel, body: bytes, sys_flag: int) -> bytes | None:
        """Return the decompressed body of a reply; None if it is damaged or too large."""
        kind, room = compression_of(sys_flag), self._bodies.room
        is_too_much = len(body) > room
        if kind is not None:
            # bounded by what may still be held: a small body can decompress to gigabytes
            whole = decompress(body, kind, room)
            is_too_much = whole.truncated
            if whole.problem is not None:
                return None
            body = whole.data
        if is_too_much:
            self._bodies.end(f"of {channel.address}")
            return None
        return body
