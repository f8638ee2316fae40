"""Hooks: user code that runs before and after each attempt, and for every request.

Rules: hooks run where the send runs. Check hooks can veto an attempt, and RPC hooks can change the
ext fields of a request before it is signed: an error of either fails that request and no other. An
error of a send hook does not stop the send, as in Java; it is logged and kept with the result.
RocketMQ: CheckForbiddenHook, SendMessageHook, SendMessageContext, RPCHook.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from .errors import ClientError, HookError
from .message import Attempt, Message, MessageQueue, SendMode, SendResult

_log = logging.getLogger("rmqtool.replay")


@dataclass(slots=True)
class SendContext:
    """One attempt, as hooks see it; the same object before and after."""

    message: Message
    """the message; of a batch its first one"""
    group: str
    """producer group"""
    queue: MessageQueue
    """where it is to be stored"""
    address: str
    """`host:port` of the broker"""
    mode: SendMode
    """send mode"""
    attempt: Attempt | None = None
    """its outcome; None before"""
    result: SendResult | None = None
    """the result; None before, and where it failed"""
    error: Exception | None = None
    """why it failed; None before, and where it did not"""
    state: dict[str, object] = field(default_factory=dict)
    """the hook's own, from before to after"""


class CheckHook(Protocol):
    """May veto an attempt before its request is written."""

    def check_send(self, context: SendContext) -> None:
        """Raise ForbiddenError to veto the attempt; any other error ends the whole send."""


class SendHook(Protocol):
    """Is called for each attempt."""

    def before_send(self, context: SendContext) -> None:
        """Handle a request that is about to be written."""

    def after_send(self, context: SendContext) -> None:
        """Handle the known outcome of a request."""


class RpcHook(Protocol):
    """May add ext fields to every request."""

    def before_request(self, address: str, code: int, fields: dict[str, str]) -> None:
        """Handle a request with this code that is about to be written; `fields` may be changed."""


def hook_error(what: str, error: Exception) -> ClientError:
    """Return the error of a request whose hook raised `error`; log its traceback.

    A ClientError is the hook's own decision and stays as it is. `what` names the kind of hook.
    """
    if isinstance(error, ClientError):
        return error
    _log.warning("%s failed", what, exc_info=error)
    failed = HookError(f"{what} failed: {type(error).__name__}: {error}", "fix the hook")
    failed.__cause__ = error
    return failed


def guarded(call: Callable[[SendContext], None], context: SendContext) -> Exception | None:
    """Call a send hook; log and return the error that it raised."""
    try:
        call(context)
    except Exception as error:
        _log.warning("a send hook failed", exc_info=True)
        # its frames would live as long as the result that keeps it
        return error.with_traceback(None)
    return None
