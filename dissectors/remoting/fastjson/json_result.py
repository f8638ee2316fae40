"""What a JSON text says: a value, and what is wrong with the text.

Apart from what reads it: that is compiled, and msgspec needs the annotations of its structs.
"""

from __future__ import annotations

import msgspec


class JsonResult(msgspec.Struct, frozen=True):
    """What a text says."""

    value: object
    """dict, list, `PairMap`, str, int, float, bool or None; what was read before a problem."""
    problem: str | None = None
    """What is wrong with the text, and at which character; None when nothing is."""
    references_kept: int = 0
    """References that still stand in the value, because they lead nowhere or to one around them."""
