"""Ids of problems that can cause those of the attempt rules."""

from __future__ import annotations

from typing import Final

BUSY: Final = frozenset(
    (
        "send-queue-timeout",
        "page-cache-busy",
        "page-cache-synchronized",
        "broker-rejects-request",
        "thread-pool-overload",
    )
)
"""the broker is overloaded"""
NO_RESPONSE: Final = frozenset(
    (
        "broker-gone",
        "broker-hung",
        "packets-unacknowledged",
        "broker-slow",
        "connection-cut",
        "send-timeout",
    )
)
"""the broker responds late or never"""
