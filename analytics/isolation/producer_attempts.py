"""Attempts of one producer as columns, for the replay of the fault strategy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Coded:
    """A dictionary-encoded column: codes, and the texts they stand for."""

    names: tuple[str, ...]
    codes: NDArray[np.int32]
    """index into `names`; -1: null"""

    @classmethod
    def of(cls, values: Sequence[str | None]) -> Coded:
        """Return the encoded column of some texts."""
        places: dict[str, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in values]
        return cls(tuple(places), np.array(codes, dtype=np.int32))

    def __getitem__(self, index: int) -> str | None:
        code = self.codes[index]
        return None if code < 0 else self.names[code]

    def at(self, places: NDArray[np.int64] | slice) -> Coded:
        """Return the rows at some positions."""
        return Coded(self.names, self.codes[places])

    def with_names(self, names: Sequence[str]) -> Coded:
        """Return the column with codes of other names, which include those of its rows."""
        places = {name: place for place, name in enumerate(names)}
        # The last place is for code -1, null: NumPy counts negative indexes from the end.
        codes = np.array([*(places.get(name, -1) for name in self.names), -1], dtype=np.int32)
        return Coded(tuple(names), codes[self.codes])

    def text(self, index: int) -> str:
        """Return the text of a row, or an empty one."""
        return self[index] or ""

    def among(self, names: Collection[str]) -> NDArray[np.bool_]:
        """Return in which rows one of these texts is."""
        chosen = [name in names for name in self.names]
        found: NDArray[np.bool_] = np.array([*chosen, False])[self.codes]  # -1 is the last
        return found

    def compact(self) -> Coded:
        """Return the column without the texts that are in no row."""
        used, codes = np.unique(self.codes, return_inverse=True)
        absent = int(len(used) > 0 and used[0] < 0)
        names = tuple(self.names[code] for code in used[absent:].tolist())
        return Coded(names, (codes - absent).astype(np.int32))


def routes_of(topic: Coded, broker: Coded) -> dict[str, set[str]]:
    """Return topic -> brokers of some attempts; an empty topic is an unknown one."""
    brokers_by_topic: dict[str, set[str]] = {}
    topics = topic.codes.astype(np.int64) + 1  # a product may not fit into 32 bits
    for pair in np.unique(topics * len(broker.names) + broker.codes):
        number, code = divmod(int(pair), len(broker.names))
        name = topic.names[number - 1] if number else ""
        brokers_by_topic.setdefault(name, set()).add(broker.names[code])
    return brokers_by_topic


@dataclass(frozen=True)
class ProducerAttempts:
    """Attempts of one producer, by `begin`; all columns have the same length."""

    topic: Coded
    broker: Coded
    last_broker: Coded
    """broker of the previous attempt; null: a first attempt"""
    outcome: Coded
    cause: Coded
    begin: NDArray[np.int64]
    """µs since the epoch"""
    end: NDArray[np.int64]
    """µs since the epoch, -1: unknown"""
    unseen: tuple[tuple[int, int], ...] = ()
    """periods in which only its failed connects were seen, µs"""
    known_routes: Mapping[str, frozenset[str]] | None = None
    """brokers of topics by all attempts of the producer, if these are a part of them"""

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def brokers_of_topics(self) -> Mapping[str, frozenset[str]]:
        """Return the brokers that each topic was sent to: the visible part of the route."""
        if self.known_routes is not None:
            return self.known_routes
        routes = routes_of(self.topic, self.broker)
        return {topic: frozenset(brokers) for topic, brokers in routes.items()}

    @cached_property
    def routes(self) -> tuple[tuple[frozenset[str], ...], NDArray[np.int64]]:
        """Return the distinct routes and each topic's route index; index 0 is the unknown topic."""
        brokers = [
            self.brokers_of_topics.get(name, frozenset()) for name in ("", *self.topic.names)
        ]
        different = tuple(dict.fromkeys(brokers))
        return different, np.array([different.index(route) for route in brokers], dtype=np.int64)
