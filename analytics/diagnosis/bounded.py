"""Add to containers only up to a limit: what a capture contains must not fill the memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def state_in(states: dict[K, V], key: K, make: Callable[[], V], most: int) -> V | None:
    """Return the state of a key, which is made at first; None if there are `most` other keys."""
    state = states.get(key)
    if state is None and len(states) < most:
        state = states[key] = make()
    return state


def keep(kept: set[K], item: K, most: int) -> None:
    """Add an item to a set, unless the set is full."""
    if len(kept) < most:
        kept.add(item)
