"""Parts of Spark SQL text: literals, lists, sums, and comparisons that both engines read alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

CONNECTION: Final = (
    "if(conversation is null, null, named_struct('source', source, 'conversation', conversation))"
)
"""What a TCP connection is counted by; null: unknown."""


def total_of(number: str) -> str:
    """Return, as SQL, the sum of times or sizes as a floating-point number.

    It is exact up to 2^53, so it does not depend on the order of the rows. A sum in 64 bits
    overflows where a capture's clock was wrong by decades.
    """
    return f"sum(cast({number} as double))"


def ratio_of(total: str, number: str) -> str:
    """Return, as SQL, a total by `total_of` divided by another or a count; null where that is 0."""
    return f"{total} / nullif({number}, 0)"


def place_of(*columns: str) -> str:
    """Return, as SQL, a struct of columns whose `min` is the first row by them, nulls first.

    Engines order nulls within structs differently, so a flag stands before each column.
    """
    fields = (f"'_{name}', {name} is not null, '{name}', {name}" for name in columns)
    return f"named_struct({', '.join(fields)})"


def names_of(column: str, most: int) -> str:
    """Return, as SQL, the different values of a column in order, at most `most`."""
    return f"slice(array_sort(collect_set({column})), 1, {most})"


def text(value: str) -> str:
    """Return a text as an SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def texts(values: Iterable[str]) -> str:
    """Return texts as an SQL list, in order."""
    return f"({', '.join(text(value) for value in sorted(values))})"


def numbers(values: Iterable[int]) -> str:
    """Return numbers as an SQL list, in order."""
    return f"({', '.join(str(int(value)) for value in sorted(values))})"


def quoted(names: Sequence[str]) -> str:
    """Return names of columns as an SQL list without parentheses."""
    return ", ".join(f"`{name}`" for name in names)
