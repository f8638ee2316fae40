"""Result of decoding a JSON text: a value, and the problem of the text.

Separate from its compiled reader, because msgspec needs the annotations of its structs.
"""

from __future__ import annotations

import msgspec


class JsonResult(msgspec.Struct, frozen=True):
    """A decoded JSON text."""

    value: object
    """dict, list, `PairMap`, str, int, float, bool or None; the part read before a problem."""
    problem: str | None = None
    """The problem and its character position, or None."""
