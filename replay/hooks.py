"""Hooks: what a user may do before and after each attempt, and to every request.

Rules: hooks run where the send runs; what one raises is logged and does not stop the send, as in
Java. They see a message and may change its request's ext fields before it is signed.
RocketMQ: SendMessageHook, SendMessageContext, RPCHook.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

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
    """how the answer is waited for"""
    attempt: Attempt | None = None
    """what became of it; None before"""
    result: SendResult | None = None
    """the result; None before, and where it failed"""
    error: Exception | None = None
    """why it failed; None before, and where it did not"""
    state: dict[str, object] = field(default_factory=dict)
    """the hook's own, from before to after"""


class SendHook(Protocol):
    """Is told of each attempt."""

    def before_send(self, context: SendContext) -> None:
        """Handle a request that is about to be written."""

    def after_send(self, context: SendContext) -> None:
        """Handle the end of a request, which is known."""


class RpcHook(Protocol):
    """May add ext fields to every request."""

    def before_request(self, address: str, code: int, fields: dict[str, str]) -> None:
        """Handle a request with this code that is about to be written; `fields` may be changed."""


def guarded(call: Callable[[SendContext], None], context: SendContext) -> None:
    """Call a hook; log what it raises."""
    try:
        call(context)
    except Exception:
        _log.warning("a send hook failed", exc_info=True)
