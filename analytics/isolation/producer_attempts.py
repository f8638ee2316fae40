"""Attempts of one producer as columns: what the fault strategy is replayed over."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of few different texts: their numbers, and what these stand for."""

    names: tuple[str, ...]
    codes: NDArray[np.int64]
    """index into `names`; -1: none"""

    @classmethod
    def of(cls, values: Sequence[str | None]) -> Coded:
        """Return the column of these texts."""
        places: dict[str, int] = {}
        codes = [-1 if one is None else places.setdefault(one, len(places)) for one in values]
        return cls(tuple(places), np.array(codes, dtype=np.int64))

    def __getitem__(self, index: int) -> str | None:
        code = self.codes[index]
        return None if code < 0 else self.names[code]

    def at(self, places: NDArray[np.int64]) -> Coded:
        """Return the rows at these places."""
        return Coded(self.names, self.codes[places])

    def text(self, index: int) -> str:
        """Return the text in a row, empty where there is none."""
        return self[index] or ""

    def among(self, names: Collection[str]) -> NDArray[np.bool_]:
        """Return in which rows one of these texts is."""
        codes = [place for place, name in enumerate(self.names) if name in names]
        return np.isin(self.codes, codes)


@dataclass(frozen=True)
class ProducerAttempts:
    """Attempts of one producer, by `begin`; all columns have one length."""

    topic: Coded
    broker: Coded
    last_broker: Coded
    """broker of the attempt before; none: a first attempt"""
    outcome: Coded
    cause: Coded
    begin: NDArray[np.int64]
    """µs since the epoch"""
    end: NDArray[np.int64]
    """µs since the epoch, -1: not known"""
    unseen: tuple[tuple[int, int], ...] = ()
    """from when to when it made attempts of which only failed connects were seen; µs"""

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def brokers_of_topics(self) -> dict[str, frozenset[str]]:
        """The brokers that it sent each topic to: as much of the route as is seen."""
        found: dict[str, set[str]] = {}
        for pair in np.unique((self.topic.codes + 1) * len(self.broker.names) + self.broker.codes):
            topic, broker = divmod(int(pair), len(self.broker.names))
            name = self.topic.names[topic - 1] if topic else ""
            found.setdefault(name, set()).add(self.broker.names[broker])
        return {topic: frozenset(brokers) for topic, brokers in found.items()}

    @cached_property
    def routes(self) -> tuple[tuple[frozenset[str], ...], NDArray[np.int64]]:
        """The different routes, and for each topic, behind that of an unknown one, which it has."""
        brokers = [
            self.brokers_of_topics.get(name, frozenset()) for name in ("", *self.topic.names)
        ]
        different = tuple(dict.fromkeys(brokers))
        return different, np.array([different.index(one) for one in brokers], dtype=np.int64)
