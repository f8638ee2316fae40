"""Check that the process may open more files, before operations that cannot fail cleanly.

If asyncio cannot open its files, it leaves a half-initialized loop, which Python reports with a
traceback.
"""

from __future__ import annotations

import os
from typing import Final

LOOP_FILES: Final = 3
"""files of an asyncio loop: a selector and a socket pair for wake-ups"""


def require_files(count: int = LOOP_FILES) -> None:
    """Raise OSError if the process cannot open `count` more files."""
    opened: list[int] = []
    try:
        while len(opened) < count:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise OSError(error.errno, error.strerror) from None
    finally:
        for number in opened:
            os.close(number)
