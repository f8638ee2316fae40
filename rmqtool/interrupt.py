"""Ctrl-C while rows come as they happen: the first ends the reading, the second the program.

What was read is then finished as if the captures had ended there: requests that wait are given out
unanswered, the summary is shown, files are completed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_ends(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` at the first SIGINT; a further one is a KeyboardInterrupt again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def end(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
