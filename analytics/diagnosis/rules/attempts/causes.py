"""Problems that lead to what rules about attempts tell, by their ids."""

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
"""the broker has too much to do"""
NO_ANSWER: Final = frozenset(
    (
        "broker-gone",
        "broker-hung",
        "packets-unacknowledged",
        "broker-slow",
        "connection-cut",
        "send-timeout",
    )
)
"""the broker answers late or never"""
