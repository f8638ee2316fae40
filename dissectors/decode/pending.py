"""Pending requests and open connections of a running capture.

Rules: time is capture time. While packets arrive, it is theirs: unread packets may have the
response. While the capture is idle, it advances with this machine's monotonic clock. The row of a
pending request is provisional: the exchange produces the final one when settled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from ..conversations.conversation import LINGER, Conversation, Pdu
from ..rows.conversation_record import ConversationRecord
from ..rows.outcome import LONG_POLLS
from ..rows.record import ExchangeRecord
from .exchange import Exchange, ExchangeMatcher, names_of

TICK: Final = 500_000_000
"""ns of the monotonic clock between two timeout checks"""
QUIET: Final = 1_000_000_000
"""ns without a packet of a connection after which its holes are released"""
RECENT: Final = 3_600_000_000_000
"""maximum ns from the last packet to now for a running capture: clocks differ"""
SET_BACK: Final = 60_000_000_000
"""least ns from the current time back to a packet that show a clock set back: packets that are read
late are more recent"""
CONNECTING: Final = 3_000_000_000
"""ns that a lone SYN may wait for its response"""
LONG_POLL: Final = 30_000_000_000
"""ns after which clients end a long poll (consumerTimeoutMillisWhenSuspend)"""
MAX_REQUESTS: Final = 4096
"""maximum pending requests with provisional rows: about 6 MiB"""
MAX_CONNECTIONS: Final = 4096
"""maximum connections with provisional rows"""


class CaptureClock:
    """Current time of a running capture."""

    def __init__(self, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self.now = 0
        """ns since the epoch; 0: no packet yet"""
        self._steady = steady
        self._last = 0
        self._read = 0
        self._tick = 0

    def note(self, ts: int) -> None:
        """Record the time of the last packet read."""
        self._last, self._read = ts, self._steady()
        # Requests sent after the clock was set back have not waited since before.
        self.now = ts if self.now - ts >= SET_BACK else max(self.now, ts)

    def note_idle(self) -> None:
        """Record that no unread packet is waiting."""
        if self.now:
            self.now = max(self.now, self._last + self._steady() - self._read)

    def is_recent(self) -> bool:
        """Return whether the last packet was captured recently, by this machine's clock."""
        return abs(time.time_ns() - self._last) < RECENT

    def ticked(self) -> bool:
        """Return whether the next timeout check is due."""
        steady = self._steady()
        if not self.now or steady - self._tick < TICK:
            return False
        self._tick = steady
        return True


class Pending(NamedTuple):
    """Unsettled requests and connections at a moment."""

    now: int
    """ns since the epoch in capture time; 0: nothing seen yet"""
    requests: list[ExchangeRecord]
    """requests without response, as `unanswered` rows"""
    connections: list[ConversationRecord]
    """open connections, as if they ended now"""


class Overdue:
    """Finds overdue requests, and those on ended connections, once each."""

    def __init__(self, after: int) -> None:
        """`after` is the maximum wait in ns; a long poll may wait at least `LONG_POLL`."""
        self._after = after
        self._reported: dict[Pdu, None] = {}
        self.stayed: list[Pdu] = []
        """overdue requests that the last call of `settle` settled without response"""

    def found(self, matcher: ExchangeMatcher, now: int) -> list[Exchange]:
        """Return the requests that became overdue since the last call."""
        overdue = []
        # Requests on a connection that has ended are overdue earlier, after `LINGER`.
        for pdu in matcher.waiting_since(now - min(self._after, LINGER)):
            if pdu not in self._reported and self._is_overdue(pdu, now):
                self._reported[pdu] = None
                overdue.append(Exchange(pdu, None))
        return overdue

    def settle(self, exchanges: list[Exchange]) -> None:
        """Remove the requests of settled exchanges."""
        self.stayed = []
        if not self._reported:
            return
        for exchange in exchanges:
            request = exchange.request
            if request is not None and request in self._reported:
                del self._reported[request]
                if exchange.response is None:
                    self.stayed.append(request)

    def _is_overdue(self, pdu: Pdu, now: int) -> bool:
        conversation = pdu.direction.conversation
        if pdu.direction.peer.finished and now - conversation.closing_ts >= LINGER:
            return True
        name = names_of(Exchange(pdu, None))[0]
        after = max(self._after, LONG_POLL) if name in LONG_POLLS else self._after
        return now - pdu.ts >= after


def spread(waiting: list[Pdu]) -> list[Pdu]:
    """Return an even sample of the requests, up to the limit of provisional rows."""
    if len(waiting) <= MAX_REQUESTS:
        return waiting
    waiting.sort(key=_ts_of)
    return waiting[:: -(-len(waiting) // MAX_REQUESTS)]  # the quotient is rounded up


def _ts_of(pdu: Pdu) -> int:
    return pdu.ts


def latest(conversations: list[Conversation]) -> list[Conversation]:
    """Return the conversations with the latest packets, up to the limit of rows."""
    if len(conversations) > MAX_CONNECTIONS:
        conversations.sort(key=_last_ts_of, reverse=True)
        del conversations[MAX_CONNECTIONS:]
    return conversations


def _last_ts_of(conversation: Conversation) -> int:
    return conversation.last_ts
