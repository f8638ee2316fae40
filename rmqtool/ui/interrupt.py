"""Signals that end a run: once, however many come, so that nothing is left half.

Rules: `timeout`, service managers and terminals send a signal twice within milliseconds; these are
one. While a run ends on one, further ones wait. Ctrl-C while rows come as they happen ends the
reading at first: what was read is finished as if the captures had ended there, requests that wait
are given out unanswered, the summary is shown, files are completed. The second ends the program.
Work with waits that no signal ends runs in a thread of its own, which the main thread waits for.
Python's importer is never interrupted: its locks would stay taken, and each later import wait for
ever; what its callbacks raise is lost. Neither is asyncio's own code: a transport that is half made
cannot be closed. Only where it waits for events, a signal ends it. Rows of a JSON array are written
whole, so that it can be closed.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import Final, Generic, TypeVar

from .status import Terminated

Value = TypeVar("Value")
_TOGETHER_SECONDS: Final = 0.25
"""signals that come so soon after one are the same one"""
_ENDING_SECONDS: Final = 10.0
"""time in which a run that was told to end is not told again"""
_LIBRARY: Final = os.path.dirname(os.__file__) + os.sep
"""how the file names of Python's own modules begin"""
_INSTALLED: Final = "-packages" + os.sep
"""part of the file names of installed packages, which may be in the same folder"""
_DELICATE: Final = (
    "<frozen importlib",
    _LIBRARY + "asyncio" + os.sep,
    os.path.join(os.path.dirname(__file__), "json_array.py"),
)
"""how the file names of code that is not interrupted begin"""
_WAITS: Final = _LIBRARY + "selectors.py"
"""where asyncio waits for events"""
_AGAIN_SECONDS: Final = 0.005
"""after which a signal that came while such code ran is looked at again"""
_MOST_DELAY: Final = 2.0
"""seconds after which a signal waits no longer"""
_NAMES: Final = ("SIGINT", "SIGTERM", "SIGHUP")


class _Ending:
    """When this process was told to end; the signal that waits, and since when."""

    since: float | None = None
    waiting: int | None = None
    asked: float = 0.0


def install_handlers() -> None:
    """Let SIGINT, SIGTERM and SIGHUP end the run in order; those that are ignored stay so."""
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
    """Return whether the code that runs must not be interrupted.

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
    """Take a signal as if it came in a moment; return False where there are no timers, and where
    it has waited too long.
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
    """Stop the timer: where Python has ended, its signal would end the process with its own
    status.
    """
    if _Ending.waiting is not None:
        _Ending.waiting = None
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def first_ends(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first SIGINT; a further one does what it did before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    stopped: float | None = None

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        now = monotonic()
        if stopped is None:
            stopped = now
            stop()
        elif now - stopped >= _TOGETHER_SECONDS:
            if not callable(before):
                raise KeyboardInterrupt
            before(number, frame)

    signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Apart(Generic[Value]):
    """Work in a thread of its own: a signal ends the wait for it, whatever it is at.

    An event says that it is done: a `join` that is interrupted takes the thread for ended.
    """

    def __init__(self, work: Callable[[], Value]) -> None:
        self._work = work
        self._values: list[Value] = []
        self._error: BaseException | None = None
        self._done = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def is_done(self) -> bool:
        """Whether the work has ended."""
        return self._done.is_set()

    def result(self) -> Value:
        """Wait for the work; return what it returned or raise what it raised."""
        self._done.wait()
        if self._error is not None:
            raise self._error
        return self._values[0]

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the work, for a time at most; return whether it has ended."""
        return self._done.wait(seconds)

    def _run(self) -> None:
        try:
            self._values.append(self._work())
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()
