"""Rows of a sample in which any column may have any value: logs may come from anywhere."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from .made_rows import SampleRows, sample

TEXTS = (
    *("", "\n", "a\nb", "\0", "=", "%RETRY%", "%DLQ%g", "a b c", "\ud800", "x" * 500, "[::1]:9"),
    *("127.0.0.1:1", "9" * 30, "²", "10.0.0.1:10911", "-1", "{}", "%", "a%b%c", "@", "c@1", "="),
    *("9" * 5000, "-" + "9" * 5000, "10.0.0.1:" + "9" * 5000, "٣", "1_0", "+1"),
)
NUMBERS = (None, 0, -1, 1, 2, 5, 14, 16, (1 << 63) - 1, -(1 << 63), 10**18)


def hostile(name: str, seed: int) -> SampleRows:
    """The rows of a sample with other values in some columns of each."""
    chance = random.Random(seed)
    rows = sample(name)
    picked = chance.sample(list(rows.exchanges), min(len(rows.exchanges), 120))
    return SampleRows(_changed(picked, chance), _changed(rows.connections, chance), [])


def _changed(rows: Iterable[Any], chance: random.Random) -> list[Any]:
    return [_with_others(row, chance) for row in rows]


def _with_others(row: Any, chance: random.Random) -> Any:
    values = {name: getattr(row, name) for name in row.__struct_fields__}
    for name in chance.sample(list(values), chance.choice([0, 1, 2, 5])):
        type_, old = str(type(row).__annotations__[name]), values[name]
        if "list" in type_:
            facts = [f"{one.partition('=')[0]}={chance.choice(TEXTS)}" for one in old]
            values[name] = [*facts, chance.choice(TEXTS)]
        elif "str" in type_:
            values[name] = chance.choice(TEXTS)
        else:
            values[name] = chance.choice(NUMBERS if "None" in type_ else NUMBERS[1:])
    return type(row)(**values)
