"""Hide optional libraries from `ctypes.util.find_library`; Python imports this when it starts.

scapy finds libpcap this way. `tests.tools` puts this folder on PYTHONPATH.
"""

from __future__ import annotations

import ctypes.util

_HIDDEN = ("pcap",)
_find = ctypes.util.find_library


def find_library(name: str) -> str | None:
    """Return the file of a library, as ctypes does; None for a hidden one."""
    return None if name in _HIDDEN else _find(name)


ctypes.util.find_library = find_library
