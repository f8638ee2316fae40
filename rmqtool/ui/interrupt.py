"""Signals that end a run, once, however many arrive.

Rules: while a run ends on a signal, further ones wait. The first Ctrl-C of a live run only ends
reading: the run finishes as if the captures had ended there. The second ends the program. Code that
cannot be interrupted delays a signal. Work with uninterruptible waits runs in a separate thread.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Final, Generic, TypeVar

from .status import Terminated

Value = TypeVar("Value")
# `timeout`, service managers, and terminals send a signal twice within milliseconds.
_TOGETHER_SECONDS: Final = 0.25
"""seconds within which repeated signals count as one"""
_ENDING_SECONDS: Final = 10.0
"""seconds in which a run that is ending gets no further signal"""
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep
"""path prefixes of the standard library"""
_INSTALLED: Final = "-packages" + os.sep
"""part of the file names of installed packages, which may be in the same folder"""
_DELICATE: Final = (
    # The locks of the importer would stay taken, and exceptions in its callbacks are lost.
    "<frozen importlib",
    # A half-created transport cannot be closed. The wait for events is in another module.
    _LIBRARY + "asyncio" + os.sep,
    # Rows are written whole, so that the array can be closed.
    os.path.join(os.path.dirname(__file__), "json_array.py"),
)
"""path prefixes of code that is not interrupted"""
_WAITS: Final = _LIBRARY + "selectors.py"
"""path of the module in which asyncio waits for events"""
_AGAIN_SECONDS: Final = 0.005
"""seconds before a signal during such code is checked again"""
_MOST_DELAY: Final = 2.0
"""seconds after which a signal is no longer delayed"""
_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")


class _Ending:
    """Time of the last signal; the delayed signal, and its time."""

    since: float | None = None
    waiting: int | None = None
    asked: float = 0.0


def install_handlers() -> None:
    """Let SIGINT, SIGTERM, and SIGHUP end the run in order; ignored signals stay ignored."""
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def restore_handlers() -> None:
    """Let a signal end the process at once, one that waits too: the run is over. Do nothing if it
    ends on one already.
    """
    if _Ending.since is not None:
        return
    waiting = _Ending.waiting
    _wait_no_longer()
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)
    if waiting is not None:
        signal.raise_signal(waiting)


def _end(number: int, frame: FrameType | None) -> None:
    now = monotonic()
    if _Ending.since is not None and now - _Ending.since < _ENDING_SECONDS:
        return
    if _is_delicate(frame) and _end_later(number, now):
        return
    _Ending.since = now
    _wait_no_longer()
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated


def _is_delicate(frame: FrameType | None) -> bool:
    """Return whether the current code must not be interrupted.

    Frames are looked at from the innermost one to the first that is not of Python's own modules.
    """
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_DELICATE):
            return True
        if name == _WAITS or not name.startswith(_LIBRARY) or _INSTALLED in name:
            return False
        frame = frame.f_back
    return False


def _end_later(number: int, now: float) -> bool:
    """Delay a signal for a moment; return False without timers, or if it was delayed too
    long.
    """
    if not hasattr(signal, "setitimer"):
        return False
    if _Ending.waiting is None:
        _Ending.asked = now
    elif now - _Ending.asked > _MOST_DELAY:
        return False
    _Ending.waiting = number
    signal.signal(signal.SIGALRM, _again)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)
    return True


def _again(_: int, frame: FrameType | None) -> None:
    if _Ending.waiting is not None:
        _end(_Ending.waiting, frame)


def _wait_no_longer() -> None:
    """Stop the timer of a delayed signal."""
    # After Python's end, SIGALRM would end the process with its own status.
    if _Ending.waiting is not None:
        _Ending.waiting = None
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def first_ends(
    stop: Callable[[], None], signals: Sequence[signal.Signals] = (signal.SIGINT,)
) -> Iterator[None]:
    """Call `stop` at the first of these signals; further ones have their previous effect."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in signals}
    stopped: float | None = None

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        now = monotonic()
        if stopped is None:
            stopped = now
            stop()
        elif now - stopped >= _TOGETHER_SECONDS:
            former = before[signal.Signals(number)]
            if not callable(former):
                raise KeyboardInterrupt
            former(number, frame)

    for number in signals:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


class Apart(Generic[Value]):
    """Work in a separate thread: a signal ends the wait for it."""

    def __init__(self, work: Callable[[], Value]) -> None:
        self._work = work
        self._values: list[Value] = []
        self._error: BaseException | None = None
        # Not `join`: one that a signal interrupts marks the thread as ended.
        self._done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def is_done(self) -> bool:
        """Whether the work has ended."""
        return self._done.is_set()

    def result(self) -> Value:
        """Wait for the work; return its result or raise its error."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._values[0]

    def wait(self, seconds: float) -> bool:
        """Wait for the work with a timeout; return whether it has ended."""
        return self._done.wait(seconds)

    def _run(self) -> None:
        try:
            self._values.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()
