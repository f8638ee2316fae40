"""The sends of one producer as numbers: what its fault strategy is replayed over.

Rules: of a send only four numbers are kept, so that memory is small; what is made of them is
computed where a producer is judged, by numpy, which is loaded then.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from dissectors.foreign import hex_bytes_of
from dissectors.remoting.ids.message_ids import KEY_LENGTHS
from dissectors.rows.record import ExchangeRecord

from ...sends import attempts
from ...sends.attempts import DEFAULT_TIMEOUT_US, ObservedAttempt
from ...sends.births import lead_of, mark_of
from ..context import Context
from ..keys import answer_times, ask_times, message_keys
from ..messages import ObservedMessage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from replay.fault import FaultSettings

    from ...isolation.producer_attempts import ProducerAttempts

_HASH_BITS: Final = (1 << 62) - 1


@dataclass(slots=True)
class ProducerSends:
    """The sends of one producer, and who it is."""

    maker: str
    """a UNIQ_KEY of it"""
    endpoint: str
    """the first of its `address:port`"""
    group: str | None
    language: str | None
    version: int | None
    kinds: dict[tuple[str, str, str | None], int] = field(default_factory=dict)
    """(outcome, address, topic) -> its number"""
    marks: array[int] = field(default_factory=lambda: array("q"))
    """of each send: `_mark_of` its key"""
    begins: array[int] = field(default_factory=lambda: array("q"))
    """of each send: µs of its request"""
    ends: array[int] = field(default_factory=lambda: array("q"))
    """of each send: µs of its answer, or -1"""
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """of each send: number of its kind"""
    _longest: int = 0
    """µs that a send took at most, of the first `_looked_at`"""
    _looked_at: int = 0

    def add(self, rows: Sequence[ExchangeRecord], kind: tuple[str, str, str | None]) -> None:
        """Take sends of one kind, which have a key and the time of their request."""
        begins = [(time or 0) // 1000 for time in ask_times(rows)]
        ends = begins
        if kind[0] != attempts.ONEWAY:
            ends = [-1 if time is None else time // 1000 for time in answer_times(rows)]
        self.marks.extend(_marks_of([key or "" for key in message_keys(rows)]))
        self.begins.extend(begins)
        self.ends.extend(ends)
        self.numbers.extend([self.kinds.setdefault(kind, len(self.kinds))] * len(rows))

    def may_isolate(self, settings: FaultSettings) -> bool:
        """Return whether one was refused, or took so long that the strategy avoids a broker."""
        if any(outcome == attempts.REFUSED for outcome, _, _ in self.kinds):
            return True
        new = slice(self._looked_at, len(self.marks))
        took = _longest_of(self.marks[new], self.begins[new], self.ends[new])
        self._longest = max(self._longest, took)
        self._looked_at = len(self.marks)
        return settings.duration_of(self._longest // 1000) > 0

    def attempts(
        self,
        messages: Sequence[ObservedMessage],
        unseen: Iterable[tuple[int, int]],
        context: Context,
    ) -> ProducerAttempts:
        """Return all attempts by time: those of the messages that were stitched, and the others."""
        import numpy as np

        from ...isolation.producer_attempts import Coded, ProducerAttempts

        marks, begins, ends, numbers = (
            np.array(one, dtype=np.int64)
            for one in (self.marks, self.begins, self.ends, self.numbers)
        )
        begins -= _leads(marks, begins)
        places: dict[str | None, int] = {}
        of_kind = [places.setdefault(topic, len(places)) for *_, topic in self.kinds]
        looked_at = [one for one in messages if one.last.send.topic in places]
        their_marks = np.array([_mark_of(one.key) for one in looked_at], dtype=np.int64)
        their_topics = [places[one.last.send.topic] for one in looked_at]
        of_theirs = their_marks * len(places) + np.array(their_topics, dtype=np.int64)
        of_sends = marks * len(places) + np.array(of_kind, dtype=np.int64)[numbers]
        others = np.flatnonzero(~np.isin(of_sends, of_theirs))
        tried = [one for message in messages for one in message.attempts]
        begin = np.append(begins[others], np.array([one.begin for one in tried], dtype=np.int64))
        end = np.append(
            ends[others],
            np.array([-1 if one.end is None else one.end for one in tried], dtype=np.int64),
        )
        kinds = [
            (topic, context.broker(address), None, outcome, None)
            for outcome, address, topic in self.kinds
        ]
        told = [told for message in messages for told in _told_of(message.attempts)]
        columns: list[Coded] = []
        for of_kinds, of_tried in zip(_columns(kinds), _columns(told), strict=True):
            names = sorted({one for one in (*of_kinds, *of_tried) if one is not None})
            code: dict[str | None, int] = {name: place for place, name in enumerate(names)}
            code[None] = -1
            many = np.array([code[one] for one in of_kinds], dtype=np.int64)[numbers[others]]
            few = np.array([code[one] for one in of_tried], dtype=np.int64)
            columns.append(Coded(tuple(names), np.append(many, few)))
        topic, broker, last_broker, outcome, cause = columns
        order = np.lexsort((topic.codes, broker.codes, end, begin))
        return ProducerAttempts(
            topic=topic.at(order),
            broker=broker.at(order),
            last_broker=last_broker.at(order),
            outcome=outcome.at(order),
            cause=cause.at(order),
            begin=begin[order],
            end=end[order],
            unseen=tuple(unseen),
        )


_Told = tuple[str | None, str, str | None, str, str | None]
"""topic, broker, broker of the attempt before, outcome, cause of the strategy's report"""


def _told_of(tried: Sequence[ObservedAttempt]) -> Iterable[_Told]:
    before: str | None = None
    for one in tried:
        send = one.send
        cause = send.response_name if one.outcome == attempts.REFUSED else one.outcome
        yield send.topic, send.broker, before, one.outcome, cause
        before = send.broker


def _columns(rows: Sequence[_Told]) -> Sequence[Sequence[str | None]]:
    return list(zip(*rows, strict=True)) if rows else [()] * 5


def process_digits(key: str) -> str:
    """Return the digits of a UNIQ_KEY that tell a process of its host; empty: it has none."""
    return key[-24:-12] if len(key) in KEY_LENGTHS else ""


def _mark_of(key: str) -> int:
    """Return what tells a message from others of its producer, and when it was born.

    A negative one does not say the birth.
    """
    mark = mark_of(key)
    return -1 - (hash(key) & _HASH_BITS) if mark is None else mark


def _marks_of(keys: Sequence[str]) -> Iterable[int]:
    """Return the marks of keys of one process, which are nearly always of one form."""
    if len(keys[0]) in KEY_LENGTHS:
        marks = _words_in([key[-12:] for key in keys])
        if marks is not None:
            return marks
    return list(map(_mark_of, keys))


def _longest_of(marks: array[int], begins: array[int], ends: array[int]) -> int:
    """Return the µs that a send took at most, from its birth on; 0 where there is none."""
    if "numpy" not in sys.modules:  # to load it takes longer than a small capture
        sends = zip(marks, begins, ends, strict=True)
        return max((end - _born_of(mark, begin) for mark, begin, end in sends), default=0)
    import numpy as np

    if not marks:
        return 0
    mark, begin, end = (np.array(one, dtype=np.int64) for one in (marks, begins, ends))
    return int((end - begin + _leads(mark, begin)).max())


def _leads(marks: NDArray[np.int64], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the µs from the birth of messages to their sends, as `_born_of` has them."""
    import numpy as np

    lead = lead_of(marks, begins)
    return np.where((marks >= 0) & (lead > 0) & (lead <= DEFAULT_TIMEOUT_US), lead, 0)


def _words_in(texts: Sequence[str]) -> array[int] | None:
    """Return the numbers that texts of twelve hexadecimal digits are; None: one is none."""
    digits = "0000" + "0000".join(texts)
    if len(digits) != 16 * len(texts) or not digits.isalnum():
        return None
    data = hex_bytes_of(digits)
    if data is None:
        return None
    words = array("q", data)
    if sys.byteorder == "little":
        words.byteswap()
    return words


def _born_of(mark: int, begin: int) -> int:
    """Return when a message got its UNIQ_KEY, as far as that is told and near; µs."""
    if mark < 0:
        return begin
    lead = lead_of(mark, begin)
    return begin - lead if 0 < lead <= DEFAULT_TIMEOUT_US else begin
