"""The sends of one producer as numbers, for the replay of its fault strategy.

Rules: only four numbers per send are kept, to save memory; the rest is computed with numpy, which
is loaded only when a producer is judged.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import sub
from typing import TYPE_CHECKING, Final

from dissectors.remoting.ids.message_ids import KEY_LENGTHS
from dissectors.rows.record import ExchangeRecord

from ...sends import attempts
from ...sends.attempts import DEFAULT_TIMEOUT_US, ObservedAttempt
from ..context import Context
from ..keys import key_times, message_keys, request_times, response_times
from ..messages import ObservedMessage

if TYPE_CHECKING:
    from replay.fault import FaultSettings

    from ...isolation.producer_attempts import ProducerAttempts

_NEAR: Final = DEFAULT_TIMEOUT_US * 1000
"""maximum ns between the creation of a message and its first send"""


@dataclass(slots=True)
class ProducerSends:
    """The sends of one producer, and its identity."""

    maker: str
    """a UNIQ_KEY of the producer"""
    endpoint: str
    """its first `address:port`"""
    group: str | None
    language: str | None
    version: int | None
    kinds: dict[tuple[str, str, str | None], int] = field(default_factory=dict)
    """(outcome, address, topic) -> kind number"""
    marks: array[int] = field(default_factory=lambda: array("q"))
    """per send: the hash of its UNIQ_KEY"""
    begins: array[int] = field(default_factory=lambda: array("q"))
    """per send: µs of the message creation, or of the request if that is not near"""
    ends: array[int] = field(default_factory=lambda: array("q"))
    """per send: µs of the response, or -1"""
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """per send: its kind number"""
    longest: int = 0
    """maximum latency of a send in µs"""

    def add(self, rows: Sequence[ExchangeRecord], kind: tuple[str, str, str | None]) -> None:
        """Add sends of one kind that have a key and a request time."""
        asked = [time or 0 for time in request_times(rows)]
        begins = [
            (time if created is None or not 0 <= time - created <= _NEAR else created) // 1000
            for time, created in zip(asked, key_times(rows), strict=True)
        ]
        times = asked if kind[0] == attempts.ONEWAY else response_times(rows)
        ends = [-1 if time is None else time // 1000 for time in times]
        self.longest = max(self.longest, *map(sub, ends, begins))
        # A hash takes 8 bytes; of millions, hardly two are equal, and then one send is left out.
        self.marks.extend(map(hash, message_keys(rows)))
        self.begins.extend(begins)
        self.ends.extend(ends)
        self.numbers.extend([self.kinds.setdefault(kind, len(self.kinds))] * len(rows))

    def may_isolate(self, settings: FaultSettings) -> bool:
        """Return whether a send was refused, or slow enough for the strategy to avoid a broker."""
        if any(outcome == attempts.REFUSED for outcome, _, _ in self.kinds):
            return True
        return settings.duration_of(self.longest // 1000) > 0

    def attempts(
        self,
        messages: Sequence[ObservedMessage],
        context: Context,
    ) -> ProducerAttempts:
        """Return all attempts by time: those of stitched messages, and the others."""
        import numpy as np

        from ...isolation.producer_attempts import Coded, ProducerAttempts

        marks, begins, ends, numbers = (
            np.array(one, dtype=np.int64)
            for one in (self.marks, self.begins, self.ends, self.numbers)
        )
        places: dict[str | None, int] = {}
        of_kind = [places.setdefault(topic, len(places)) for *_, topic in self.kinds]
        looked_at = [message for message in messages if message.last.send.topic in places]
        their_marks = np.array([hash(message.key) for message in looked_at], dtype=np.int64)
        their_topics = [places[message.last.send.topic] for message in looked_at]
        of_theirs = their_marks * len(places) + np.array(their_topics, dtype=np.int64)
        of_sends = marks * len(places) + np.array(of_kind, dtype=np.int64)[numbers]
        others = np.flatnonzero(~np.isin(of_sends, of_theirs))
        tried = [attempt for message in messages for attempt in message.attempts]
        begin = np.append(
            begins[others], np.array([attempt.begin for attempt in tried], dtype=np.int64)
        )
        end = np.append(
            ends[others],
            np.array(
                [-1 if attempt.end is None else attempt.end for attempt in tried], dtype=np.int64
            ),
        )
        kinds = [
            (topic, context.broker(address), None, outcome, None)
            for outcome, address, topic in self.kinds
        ]
        outcomes = [outcomes for message in messages for outcomes in _outcomes_of(message.attempts)]
        columns: list[Coded] = []
        for of_kinds, of_tried in zip(_columns(kinds), _columns(outcomes), strict=True):
            names = sorted({one for one in (*of_kinds, *of_tried) if one is not None})
            code: dict[str | None, int] = {name: place for place, name in enumerate(names)}
            code[None] = -1
            many = np.array([code[column] for column in of_kinds], dtype=np.int64)[numbers[others]]
            few = np.array([code[column] for column in of_tried], dtype=np.int64)
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
        )


_Outcomes = tuple[str | None, str, str | None, str, str | None]
"""topic, broker, previous broker, outcome, and cause as in the strategy's report"""


def _outcomes_of(tried: Sequence[ObservedAttempt]) -> Iterable[_Outcomes]:
    before: str | None = None
    for attempt in tried:
        send = attempt.send
        cause = send.response_name if attempt.outcome == attempts.REFUSED else attempt.outcome
        yield send.topic, send.broker, before, attempt.outcome, cause
        before = send.broker


def _columns(rows: Sequence[_Outcomes]) -> Sequence[Sequence[str | None]]:
    return list(zip(*rows, strict=True)) if rows else [()] * 5


def process_digits(key: str) -> str:
    """Return the process digits of a UNIQ_KEY, or an empty string."""
    return key[-24:-12] if len(key) in KEY_LENGTHS else ""
