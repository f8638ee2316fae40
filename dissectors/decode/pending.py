"""What is not settled while a capture goes on: requests that wait, connections that have not ended.

Rules: time is that of the capture. While packets come, it is theirs: what has not been read yet may
have the response. While none come, it goes on by the steady clock of this machine. A row of a
request that waits is provisional: the exchange gives the final one when it is settled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from ..conversations.conversation import Conversation, Pdu
from ..conversations.handshake import LINGER
from ..rows.conversation_record import ConversationRecord
from ..rows.outcome import LONG_POLLS
from ..rows.record import ExchangeRecord
from .exchange import Exchange, ExchangeMatcher, names_of

TICK: Final = 500_000_000
"""ns of the steady clock between two looks at what became of time alone"""
QUIET: Final = 1_000_000_000
"""ns without a packet of a connection after which no hole in it is waited for any more"""
RECENT: Final = 3_600_000_000_000
"""ns from the last packet to now, at the most, where a capture goes on: clocks differ"""
CONNECTING: Final = 3_000_000_000
"""ns that a SYN alone is given to be answered"""
LONG_POLL: Final = 30_000_000_000
"""ns after which clients give up a long poll (consumerTimeoutMillisWhenSuspend)"""
MAX_REQUESTS: Final = 4096
"""requests that wait of which provisional rows are made: some 6 MiB"""
MAX_CONNECTIONS: Final = 4096
"""connections of which provisional rows are made"""


class CaptureClock:
    """What time it is by the clock of a capture that goes on."""

    def __init__(self, steady: Callable[[], int] = time.monotonic_ns) -> None:
        self.now = 0
        """ns since the epoch; 0: no packet was seen yet"""
        self._steady = steady
        self._last = 0
        self._read = 0
        self._tick = 0

    def note(self, ts: int) -> None:
        """Note the time of the last packet that was read."""
        self._last, self._read = ts, self._steady()
        self.now = max(self.now, ts)

    def note_idle(self) -> None:
        """Note that no packet waits to be read."""
        if self.now:
            self.now = max(self.now, self._last + self._steady() - self._read)

    def is_recent(self) -> bool:
        """Return whether the last packet was captured lately, by the clock of this machine."""
        return abs(time.time_ns() - self._last) < RECENT

    def ticked(self) -> bool:
        """Return whether it is time to look again at what became of time alone."""
        steady = self._steady()
        if not self.now or steady - self._tick < TICK:
            return False
        self._tick = steady
        return True


class Pending(NamedTuple):
    """What is not settled at a moment."""

    now: int
    """ns since the epoch, by the clock of the capture; 0: nothing was seen yet"""
    requests: list[ExchangeRecord]
    """requests without response, as rows that say `unanswered`"""
    connections: list[ConversationRecord]
    """connections that may go on, as if they ended now"""


class Overdue:
    """Finds requests that wait for too long, or on a connection that has ended: each once."""

    def __init__(self, after: int) -> None:
        """`after`: ns that a request may wait; a long poll may wait for `LONG_POLL` at least."""
        self._after = after
        self._given: dict[Pdu, None] = {}
        self.stayed: list[Pdu] = []
        """requests that were found, and settled without response by the last call of `settle`"""

    def found(self, matcher: ExchangeMatcher, now: int) -> list[Exchange]:
        """Return the requests that became overdue since the last call."""
        found = []
        for pdu in matcher.waiting_since(now - min(self._after, LINGER)):
            if pdu not in self._given and self._is_overdue(pdu, now):
                self._given[pdu] = None
                found.append(Exchange(pdu, None))
        return found

    def settle(self, exchanges: list[Exchange]) -> None:
        """Take exchanges that are settled: their requests wait no more."""
        self.stayed = []
        if not self._given:
            return
        for one in exchanges:
            request = one.request
            if request is not None and request in self._given:
                del self._given[request]
                if one.response is None:
                    self.stayed.append(request)

    def _is_overdue(self, pdu: Pdu, now: int) -> bool:
        conversation = pdu.direction.conversation
        if pdu.direction.peer.finished and now - conversation.closing_ts >= LINGER:
            return True
        name = names_of(Exchange(pdu, None))[0]
        after = max(self._after, LONG_POLL) if name in LONG_POLLS else self._after
        return now - pdu.ts >= after


def spread(waiting: list[Pdu]) -> list[Pdu]:
    """Return requests of all times, as many as rows are made of."""
    if len(waiting) <= MAX_REQUESTS:
        return waiting
    waiting.sort(key=_ts_of)
    return waiting[:: -(-len(waiting) // MAX_REQUESTS)]


def _ts_of(pdu: Pdu) -> int:
    return pdu.ts


def latest(conversations: list[Conversation]) -> list[Conversation]:
    """Return the conversations with the latest packets, as many as rows are made of."""
    if len(conversations) > MAX_CONNECTIONS:
        conversations.sort(key=_last_ts_of, reverse=True)
        del conversations[MAX_CONNECTIONS:]
    return conversations


def _last_ts_of(conversation: Conversation) -> int:
    return conversation.last_ts
