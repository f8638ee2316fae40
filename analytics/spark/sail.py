"""Sail: a Spark Connect server in this process, in Rust, without Java.

Rules: only where it is asked for. It listens on the loopback interface, on a port that the system
chooses, for as long as the report takes; it asks nobody for a password. It keeps no frames, so it
is for small inputs, of which this process keeps what was computed.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from dissectors.endpoint import endpoint_text

from .master import CONNECT

if TYPE_CHECKING:
    from pysail.spark import SparkConnectServer

_LOG: Final = "RUST_LOG"


_MOST_WAIT: Final = 2.0
"""Seconds in which Sail, once it listens, asks for interrupts."""
_ROOM: Final = 256
"""Bytes that what a system knows of a signal fits into; the address of its handler comes first."""


class _Interrupts:
    """Keeps Ctrl-C for Python: Sail asks for it, too, and would end at it.

    Rules: of the main thread, which signals go to; elsewhere it does nothing. An interrupt that
    comes meanwhile waits.
    """

    def __init__(self) -> None:
        self._before: int | None = None
        self._blocked: set[int | signal.Signals] | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self._before = _called_at_interrupts()
            self._blocked = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))

    def __exit__(self, *_: object) -> None:
        if self._blocked is None:
            return
        latest = time.monotonic() + _MOST_WAIT
        while _called_at_interrupts() == self._before and time.monotonic() < latest:
            time.sleep(0.001)
        handler = signal.getsignal(signal.SIGINT)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)


def _called_at_interrupts() -> int:
    """Return the address of what the system calls at Ctrl-C."""
    action = ctypes.create_string_buffer(_ROOM)
    ctypes.CDLL(None).sigaction(int(signal.SIGINT), None, action)
    return ctypes.c_void_p.from_buffer(action).value or 0


class SailServer:
    """A server that was started in this process; `stop` it.

    Where the main thread starts it, Ctrl-C is Python's as before.
    """

    def __init__(self, verbose: bool) -> None:
        """`verbose`: what it says is shown on standard error, else errors alone."""
        os.environ.setdefault(_LOG, "info" if verbose else "off")
        from pysail.spark import SparkConnectServer

        self._server: SparkConnectServer = SparkConnectServer("127.0.0.1", 0)
        with _Interrupts():
            self._server.start(background=True)
        address = self._server.listening_address
        assert address is not None
        self.url = CONNECT + endpoint_text(*address)
        """where it is"""

    def stop(self) -> None:
        """End it; never raise."""
        with suppress(Exception):
            self._server.stop()
