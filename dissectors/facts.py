"""Facts of rows: texts ``name=value``; the first of a name counts."""

from __future__ import annotations

from collections.abc import Iterable


def value_in(facts: Iterable[str], name: str) -> str | None:
    """Return the value of the first fact of that name, or None."""
    start = name + "="
    for text in facts:
        if text.startswith(start):
            return text[len(start) :]
    return None
