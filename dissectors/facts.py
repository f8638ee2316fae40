"""Facts as rows have them: texts ``name=value``, of which the first of a name counts."""

from __future__ import annotations

from collections.abc import Iterable


def value_in(facts: Iterable[str], name: str) -> str | None:
    """Return the value of the first fact of that name; None where there is none."""
    start = name + "="
    for one in facts:
        if one.startswith(start):
            return one[len(start) :]
    return None
