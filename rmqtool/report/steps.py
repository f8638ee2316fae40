"""Progress of a report on standard error: what is being done, how far, for how long.

A thread renews the line, because Spark is waited for in single calls that take seconds. Nothing is
shown where standard error is no terminal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TextIO

from ..ui.console import UNLIMITED, cut, terminal_of
from ..ui.figures import duration

INTERVAL = 0.2
"""Seconds between two lines."""
PATIENCE = 0.4
"""Seconds before the first."""


class StepLine:
    """The step that a report is at; a context manager, within which a line is shown."""

    def __init__(self, stream: TextIO, wanted: bool, now: Callable[[], float] = monotonic) -> None:
        terminal = terminal_of(stream)
        self._stream = stream
        self._shown = wanted and terminal.is_terminal
        self._width = (80 if terminal.width >= UNLIMITED else terminal.width) - 1
        self._now = now
        self._start = now()
        self._step = ""
        self._detail: Callable[[], str] = str
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._visible = False

    def __enter__(self) -> StepLine:
        if self._shown:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        if self._visible:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._visible = False

    def at(self, step: str, detail: Callable[[], str] = str) -> None:
        """Say what is being done; `detail` is asked how far it is, from another thread."""
        self._step, self._detail = step, detail

    def line(self) -> str:
        """Return the line as it is now."""
        detail = ""
        with suppress(Exception):  # Spark may just be ending
            detail = self._detail()
        elapsed = duration(int((self._now() - self._start) * 1_000_000))
        return ", ".join(filter(None, [self._step, detail, elapsed]))

    def _run(self) -> None:
        if self._ended.wait(PATIENCE):
            return
        while True:
            self._stream.write(f"\r{cut(self.line(), self._width)}\x1b[K")
            self._stream.flush()
            self._visible = True
            if self._ended.wait(INTERVAL):
                return
