"""Sail: a Spark Connect server in this process, in Rust, without Java.

Rules: only where it is asked for. It listens on the loopback interface, on a port that the system
chooses, for as long as the report takes; it asks nobody for a password. It keeps no frames, so it
is for small inputs, of which this process keeps what was computed.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from dissectors.endpoint import endpoint_text

from .master import CONNECT

if TYPE_CHECKING:
    from pysail.spark import SparkConnectServer

_LOG: Final = "RUST_LOG"


def take_interrupts_back() -> None:
    """Let Ctrl-C reach Python: Sail, once started, ends at it; to be called by the main thread."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is not None:
        signal.signal(signal.SIGINT, handler)


class SailServer:
    """A server that was started in this process; `stop` it."""

    def __init__(self, verbose: bool) -> None:
        """`verbose`: what it says is shown on standard error, else errors alone."""
        os.environ.setdefault(_LOG, "info" if verbose else "off")
        from pysail.spark import SparkConnectServer

        self._server: SparkConnectServer = SparkConnectServer("127.0.0.1", 0)
        self._server.start(background=True)
        address = self._server.listening_address
        assert address is not None
        self.url = CONNECT + endpoint_text(*address)
        """where it is"""

    def stop(self) -> None:
        """End it; never raise."""
        with suppress(Exception):
            self._server.stop()
