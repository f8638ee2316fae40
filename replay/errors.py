"""Exceptions of client calls: one class per reason, each with the problem and a hint.

Rules: `retriable` says whether a send is retried with another broker; a failed send raises
`SendFailed` with every attempt and the last cause. No text contains a secret or a body.
RocketMQ: MQClientException, MQBrokerException, RemotingException and their subclasses,
RequestTimeoutException; ClientErrorCode for the codes that never travel.
"""

from __future__ import annotations

from typing import ClassVar

from dissectors.quantities import counted
from dissectors.remoting.code_names import response_name

from .message import Attempt


class ClientError(Exception):
    """Base class of client errors."""

    retriable: ClassVar[bool] = False
    """whether a send may go on with another broker"""
    code: int | None = None
    """response code, or Java's code for what never reached a broker; None where it has none"""

    def __init__(self, reason: str, hint: str = "", *, setting: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        """what is wrong"""
        self.hint = hint
        """how to fix it; empty if there is none"""
        self.setting = setting
        """field of the configuration whose value is wrong; empty if none is"""
        self.attempts: tuple[Attempt, ...] = ()
        """every try of the send, in order; empty if none was begun"""
        self.hook_errors: tuple[Exception, ...] = ()
        """errors raised by send hooks"""

    def __str__(self) -> str:
        text = f"{self.setting}: {self.reason}" if self.setting else self.reason
        return f"{text}\n{self.hint}" if self.hint else text


class ConfigError(ClientError, ValueError):
    """The configuration is invalid."""


class ClosedError(ClientError):
    """The producer is closed, or was never started."""


class UnsentError(ClosedError):
    """The producer was closed before sends had ended, and the block around it ended normally."""

    def __init__(self, count: int) -> None:
        sends = "1 send" if count == 1 else f"{count} sends"
        reason = f"the producer was closed before {sends} had ended"
        super().__init__(reason, "await the sends, or raise close_timeout_ms")
        self.count = count
        """sends that had not ended"""


class NameServerError(ClientError):
    """No NameServer gave a usable response."""

    code = 10004


class RouteError(ClientError):
    """The topic has no writable queue, or its broker has no address."""

    code = 10005


class UnknownBrokerError(RouteError):
    """The route names a broker that has no address."""

    retriable = True
    code = 10003


class InvalidMessageError(ClientError, ValueError):
    """A message, topic, or group is rejected before anything is sent."""

    def __init__(
        self, reason: str, hint: str = "", code: int | None = None, part: str = ""
    ) -> None:
        super().__init__(reason, hint)
        self.code = code
        self.part = part
        """field of `Message` whose value is wrong; empty if it is none, or several"""


class ForbiddenError(ClientError):
    """A check hook vetoed an attempt; nothing was sent. Raised by check hooks.

    A synchronous send is retried with another broker, as in Java after an MQClientException.
    """

    retriable = True


class HookError(ClientError):
    """A hook raised an error for a request; nothing was sent."""


class TransportError(ClientError):
    """The outcome at the broker is unknown: no connection, no response, or an invalid one."""

    retriable = True


class ConnectError(TransportError):
    """No connection could be opened."""

    code = 10001


class ConnectionLostError(TransportError):
    """The connection was closed before the response."""

    code = 10001


class SendTimeoutError(TransportError):
    """No response within the timeout."""

    code = 10002


class ProtocolError(TransportError):
    """The peer sent data that is not RocketMQ."""


class ResponseError(ClientError):
    """The broker's response is unusable."""

    retriable = True


class TooManyRequestsError(TransportError):
    """Too many requests were in flight for the whole timeout."""


class BrokerError(ClientError):
    """The broker returned an error code."""

    def __init__(self, code: int, remark: str | None = None, hint: str = "") -> None:
        text = f"{response_name(code)} ({code})"
        super().__init__(f"{text}: {remark}" if remark else text, hint)
        self.code = code
        self.remark = remark
        """the broker's remark"""


class ReplyTimeoutError(ClientError):
    """The request was sent, but no reply arrived within the timeout."""

    code = 10006


class SendFailed(ClientError):
    """A send failed: number of attempts, brokers, duration, and the last cause."""

    def __init__(
        self,
        topic: str,
        attempts: tuple[Attempt, ...],
        elapsed_ms: int,
        cause: ClientError | None = None,
        out_of_time: bool = False,
    ) -> None:
        brokers = ", ".join([attempt.queue.broker_name for attempt in attempts]) or "none"
        times = counted(len(attempts), "attempt")
        reason = f"sending to {topic} failed after {times}, {elapsed_ms} ms; brokers: {brokers}"
        if out_of_time:
            reason += "; the timeout passed before the next attempt"
        if cause is not None:
            reason += f"; last: {cause.reason}"
        super().__init__(reason, cause.hint if cause is not None else "")
        self.attempts = attempts
        self.elapsed_ms = elapsed_ms
        """from the call to the end"""
        self.cause = cause
        """why the last attempt failed; None if the time was over before the first"""
        self.out_of_time = out_of_time
        """whether the timeout passed before another allowed attempt"""
        self.code = cause.code if cause is not None else None

    @property
    def brokers(self) -> tuple[str, ...]:
        """Names of the brokers that were tried, in order."""
        return tuple([attempt.queue.broker_name for attempt in self.attempts])
