"""The diagnosis of a moving window: older rows are dropped, problems are kept.

Rules: an engine judges for a window. During its last part the next engine receives the same rows,
and then takes over. So memory does not depend on the duration of the watch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from analytics.diagnosis.engine import Engine
from dissectors.decode.pending import Pending
from dissectors.decode.pipeline import Decode
from dissectors.findings import Finding
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.times import SECOND

from ..summary.watch import ProblemEvent, Watch

SHARED: Final = 5
"""the last fifth of a window is also seen by the engine of the next one, to learn names from it"""
MOST_SHARED: Final = 300 * SECOND
LONGEST_PAUSE: Final = 15.0
"""longest interval between checks in seconds, when checks are slow"""


class WindowedDiagnosis:
    """The problems that are open now, judged by the rows of one window."""

    def __init__(self, new_engine: Callable[[], Engine], window: int, clock: Callable[[], int]):
        """`window` in ns; `clock` gives the time of the capture, ns since the epoch."""
        self.turns = 0
        """how often rows were forgotten"""
        self._new_engine = new_engine
        self._window = window
        self._shared = min(window // SHARED, MOST_SHARED)
        self._clock = clock
        self.engine = new_engine()
        self._next: Engine | None = None
        self._begin = 0
        self._pending: Callable[[], Pending] = lambda: Pending(0, [], [])
        # `begin` replaces `_pending`, so it is looked up at each check.
        self.watch = Watch(
            self.engine, lambda: self._pending(), lambda: clock() / SECOND, LONGEST_PAUSE
        )
        """tracks which problems are new and which are known"""

    def begin(self, decode: Decode, shift: int = 0) -> None:
        """Start judging the rows of `decode`; `shift`: ns by which the clock jumped before it."""
        self._pending = decode.pending
        if shift:
            self._turn(self._new_engine(), shift)

    def add(
        self,
        rows: Sequence[ExchangeRecord],
        connections: Sequence[ConversationRecord],
        findings: Sequence[Finding],
    ) -> None:
        """Add decoded rows."""
        for engine in (self.engine, self._next):
            if engine is not None:
                engine.add_exchanges(rows)
                engine.add_connections(connections)
                engine.add_findings(findings)

    def look(self) -> list[ProblemEvent]:
        """Check for problems if due, drop old rows, and return new events."""
        now = self._clock()
        if not now:
            return []
        self._begin = self._begin or now
        if self._next is None and now - self._begin >= self._window - self._shared:
            self._next = self._new_engine()
        events = self.watch.look()
        if self._next is not None and now - self._begin >= self._window:
            self._turn(self._next, 0)
            self._begin = now - self._shared  # the new engine has seen rows for so long
        return events

    def _turn(self, engine: Engine, shift: int) -> None:
        self.turns += 1
        self.engine, self._next, self._begin = engine, None, 0
        self.watch.turn(engine, self._pending, self._window, shift)
        _return_memory()


def _return_memory() -> None:
    """Return freed memory to the system."""
    # glibc keeps more with each large block that is freed, so the process would seem to grow.
    with suppress(OSError, TypeError, AttributeError):  # another C library, another system
        ctypes.CDLL(None).malloc_trim(0)
