"""Open files: whether the process may open some more, asked before what cannot end well without.

asyncio leaves a loop behind that is half made where its files cannot be opened, and Python reports
each such loop with a traceback.
"""

from __future__ import annotations

import os
from typing import Final

LOOP_FILES: Final = 3
"""files of an asyncio loop: its selector, and a pair of sockets that wakes it"""


def require_files(count: int = LOOP_FILES) -> None:
    """Raise OSError where the process may not open `count` more files."""
    opened: list[int] = []
    try:
        while len(opened) < count:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise OSError(error.errno, error.strerror) from None
    finally:
        for number in opened:
            os.close(number)
