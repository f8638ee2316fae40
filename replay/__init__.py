"""The sending side: the public API for applications that send messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .acl import Credentials, credentials_of, read_credentials
    from .async_producer import AsyncProducer
    from .config import ProducerConfig, TlsSettings
    from .errors import ClientError, ForbiddenError, SendFailed, UnsentError
    from .fault import FaultSettings
    from .message import (
        Attempt,
        Message,
        MessageQueue,
        SendMode,
        SendResult,
        SendStatus,
        TransactionState,
    )
    from .producer import Producer
    from .send_queue import Flushed
    from .sending.attempt import record_of_attempt
    from .wire_capture import WireCapture

__all__ = [
    "AsyncProducer",
    "Attempt",
    "ClientError",
    "Credentials",
    "FaultSettings",
    "Flushed",
    "ForbiddenError",
    "Message",
    "MessageQueue",
    "Producer",
    "ProducerConfig",
    "SendFailed",
    "SendMode",
    "SendResult",
    "SendStatus",
    "TlsSettings",
    "TransactionState",
    "UnsentError",
    "WireCapture",
    "credentials_of",
    "read_credentials",
    "record_of_attempt",
]

_PLACES = {
    "acl": ("Credentials", "credentials_of", "read_credentials"),
    "async_producer": ("AsyncProducer",),
    "sending.attempt": ("record_of_attempt",),
    "config": ("ProducerConfig", "TlsSettings"),
    "errors": ("ClientError", "ForbiddenError", "SendFailed", "UnsentError"),
    "fault": ("FaultSettings",),
    "message": (
        *("Attempt", "Message", "MessageQueue", "SendMode", "SendResult", "SendStatus"),
        "TransactionState",
    ),
    "producer": ("Producer",),
    "send_queue": ("Flushed",),
    "wire_capture": ("WireCapture",),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name on first use: reports import only `replay.fault`."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value
