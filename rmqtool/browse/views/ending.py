"""Ends the browser on SIGTERM, SIGHUP, and when its terminal is gone.

Textual keeps reading a closed terminal, which is always readable, and would use a whole CPU.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Final

from dissectors.temporary import remove_all

from ...ui.status import ExitStatus

if TYPE_CHECKING:
    from textual.app import App

_LOOK_SECONDS: Final = 1.0
"""seconds between checks for the terminal"""
_END_SECONDS: Final = 3.0
"""seconds for an orderly exit after the terminal is gone"""


def end_with_terminal(browser: App[None]) -> None:
    """End the browser in order on a signal or when its terminal is gone."""
    loop = asyncio.get_running_loop()

    def end() -> None:
        browser.exit(return_code=ExitStatus.TERMINATED)

    def watch() -> None:
        # If SIGHUP is ignored (`nohup`), nothing else signals that the terminal is gone.
        while os.isatty(0):
            time.sleep(_LOOK_SECONDS)
        if not loop.is_closed():
            loop.call_soon_threadsafe(end)
        # Textual's threads can deadlock now, so an orderly exit may never come.
        time.sleep(_END_SECONDS)
        remove_all()
        os._exit(ExitStatus.TERMINATED)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, end)
    threading.Thread(target=watch, name="rmqtool-terminal", daemon=True).start()
