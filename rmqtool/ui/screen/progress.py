"""Progress on standard error, for whoever waits at a terminal: a line that renews itself.

Nothing is shown for what takes less than two seconds, for a standard error that is no terminal, and
while rows run over the same screen. The clock is an argument, so tests need not wait.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import TextIO

from ..console import UNLIMITED, cut, terminal_of
from ..figures import count, duration, size

PATIENCE = 2.0
"""Seconds before the first line."""
INTERVAL = 0.2
"""Seconds between two lines."""


class Progress:
    """How far a run is."""

    def __init__(
        self,
        stream: TextIO,
        wanted: bool,
        noun: str,
        now: Callable[[], float] = monotonic,
    ) -> None:
        """`wanted`: it may be shown at all; `noun` is what is counted, in the plural."""
        terminal = terminal_of(stream)
        self._stream = stream
        self._shown = wanted and terminal.is_terminal
        self._width = (80 if terminal.width >= UNLIMITED else terminal.width) - 1
        self._noun = noun
        self._now = now
        self._start = now()
        self._next = self._start + PATIENCE
        self._visible = False

    def update(self, read: int, total: int | None, found: int) -> None:
        """Say that `read` bytes of `total` are read and `found` rows were found."""
        if not self._shown:
            return
        now = self._now()
        if now < self._next:
            return
        self._next = now + INTERVAL
        line = self._line(read, total, found, now - self._start)
        self._stream.write(f"\r{cut(line, self._width)}\x1b[K")
        self._stream.flush()
        self._visible = True

    def clear(self) -> None:
        """Remove the line, so that something else can be written."""
        if self._visible:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._visible = False

    def _line(self, read: int, total: int | None, found: int, seconds: float) -> str:
        rate = read / seconds if seconds > 0 else 0.0
        found_text = f"{count(found)} {self._noun}"
        if total is None or total < read:
            return f"{size(read)} read, {size(int(rate))}/s, {found_text}"
        percent = 100 * read // total if total else 100
        left = duration(int((total - read) / rate * 1_000_000)) if rate and read < total else "0s"
        done = f"{percent:3d}% of {size(total)}"
        return f"{done}, {size(int(rate))}/s, {found_text}, {left} left"
