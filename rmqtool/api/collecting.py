"""How often Python looks for circles of objects while rows are read."""

from __future__ import annotations

import gc
from typing import Final

_COLLECT_AFTER: Final = 50_000
"""objects after which it looks: rows have no circles, and thousands of them wait"""


def collect_seldom() -> None:
    """Let Python look for circles seldom from here on."""
    gc.set_threshold(_COLLECT_AFTER)
