"""A problem: what a rule found, as the one form for terminal, JSON, page and live display.

Rules: a fold gives a `Case`, which holds what was seen; the engine joins it with the description of
its rule to a `Problem`. Times are ns since the epoch; written as JSON they are ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

import msgspec

from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.times import text_of_time

_SECOND: Final = 1_000_000_000
MOST_EVIDENCE: Final = 8
"""exchanges and connections named as proof of one problem"""


class ProblemSeverity(StrEnum):
    """How much a problem matters; it is ordered by that, not as a text."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    def __lt__(self, other: str) -> bool:
        return _GRADES.index(self) < _GRADES.index(other)

    def __le__(self, other: str) -> bool:
        return _GRADES.index(self) <= _GRADES.index(other)

    def __gt__(self, other: str) -> bool:
        return _GRADES.index(self) > _GRADES.index(other)

    def __ge__(self, other: str) -> bool:
        return _GRADES.index(self) >= _GRADES.index(other)


_GRADES: Final = ("info", "warning", "error")


class ProblemState(StrEnum):
    """Whether a problem is over at the end of the capture."""

    OVER = "ended"
    GOING_ON = "ongoing"


OVER: Final = 30_000_000_000
"""ns without a new sign after which a problem is over, unless its signs come more rarely"""


class Confidence(StrEnum):
    """How sure a verdict is; anything less than certain has a reason."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


LOWER: Final = {
    Confidence.CERTAIN: Confidence.LIKELY,
    Confidence.LIKELY: Confidence.POSSIBLE,
    Confidence.POSSIBLE: Confidence.POSSIBLE,
}
"""Confidence of a verdict that rests on what is absent, where the capture is not whole."""


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a problem is about, as far as parts apply."""

    broker: str | None = None
    """broker name, else address"""
    topic: str | None = None
    group: str | None = None
    client: str | None = None
    """client id, else address"""
    queue: int | None = None
    server: str | None = None
    """address of a NameServer, or of what is neither that nor a broker"""
    message: str | None = None
    """UNIQ_KEY, else offset message id"""


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exchange or connection that proves a problem."""

    capture: str
    packet: int | None
    """packet number in the capture (`frame.number`); None: the row has none"""
    time: int
    """ns since the epoch"""
    conversation: int
    """TCP connection, as in the decoded log"""
    what: str
    """what is seen there, one line"""


ANY_TIME: Final = 1 << 62
"""ns: as many as anybody may ask for"""
MOST_SPANS: Final = 16
"""times in which a problem went on; of one that has more only the first and the last count"""


@dataclass(slots=True)
class Case:
    """What a fold found: one problem of its rule."""

    title: str
    """one plain sentence with the real names"""
    subject: Subject
    count: int
    """how often it was seen"""
    first_time: int
    last_time: int
    evidence: list[Evidence]
    confidence: Confidence = Confidence.CERTAIN
    reason: str | None = None
    """why the confidence is less than certain"""
    severity: ProblemSeverity | None = None
    """None: that of the rule"""
    advice: str | None = None
    """None: that of the rule"""
    details: list[str] = field(default_factory=list)
    """further sentences for `-v`: figures, versions, what follows"""
    state: ProblemState | None = None
    """at the end of the capture, where what was seen shows it"""
    rule: str | None = None
    """id of another rule that this is a case of, by the same state; None: that of the fold"""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """times in which it went on, ns since the epoch; none: from its first time to its last"""
    part: str = ""
    """cases of one subject with different parts have different causes, and are not joined"""
    leads_within: int = ANY_TIME
    """ns within which others may follow from it, where their rules would allow more"""


class Problem(msgspec.Struct, kw_only=True):
    """A case with the description of its rule: one line of `diagnose -T jsonl`."""

    rule: str
    severity: ProblemSeverity
    confidence: Confidence
    reason: str | None
    title: str
    subject: Subject
    count: int
    first_time: int
    last_time: int
    state: ProblemState | None = None
    """at the end of the capture; None: nobody can tell, as of a setting"""
    evidence: list[Evidence]
    filter: str
    """Wireshark display filter that shows the evidence"""
    details: list[str]
    explanation: str
    advice: str
    references: list[str]
    incident: int = 0
    """number of the incident; problems of one incident have one cause"""
    consequence_of: str | None = None
    """rule of the problem in this incident that led to it; None: it is the cause"""
    spans: list[tuple[int, int]] = []
    """as in `Case`"""
    part: str = ""
    """as in `Case`"""
    leads_within: int = ANY_TIME
    """as in `Case`"""


NOT_WRITTEN: Final = ("spans", "part", "leads_within")
"""what a line of JSON does not have of a problem"""


class Tally:
    """Counts what was seen and keeps the earliest of it as evidence.

    The result does not depend on the order in which rows come.
    """

    __slots__ = ("count", "evidence", "first", "last")

    def __init__(self) -> None:
        self.count = 0
        self.first = 0
        """ns since the epoch"""
        self.last = 0
        self.evidence: list[Evidence] = []

    @classmethod
    def of(cls, found: Iterable[Evidence]) -> Self:
        """Return the tally of these occurrences."""
        tally = cls()
        for one in found:
            tally.add(one)
        return tally

    def add(self, one: Evidence, count: int = 1, last: int | None = None) -> None:
        """Count an occurrence that ended at `last`, by default its own time."""
        ended = one.time if last is None else last
        if not self.count or one.time < self.first:
            self.first = one.time
        if not self.count or ended > self.last:
            self.last = ended
        self.count += count
        evidence = self.evidence
        if len(evidence) < MOST_EVIDENCE:
            evidence.append(one)
            evidence.sort(key=place_of)
        elif place_of(one) < place_of(evidence[-1]):
            evidence[-1] = one
            evidence.sort(key=place_of)

    def add_late(self, time: int) -> bool:
        """Count an occurrence that is too late to be evidence; return whether it was.

        It spares the evidence of what is seen often.
        """
        evidence = self.evidence
        if len(evidence) < MOST_EVIDENCE or time <= evidence[-1].time:
            return False
        self.count += 1
        if time > self.last:
            self.last = time
        return True

    def add_all_late(self, first: int, last: int, count: int) -> bool:
        """Count so many occurrences between two times, as `add_late` counts one."""
        evidence = self.evidence
        if len(evidence) < MOST_EVIDENCE or first <= evidence[-1].time:
            return False
        self.count += count
        if last > self.last:
            self.last = last
        return True

    def merge(self, other: Tally) -> None:
        """Add what another tally counted."""
        if not other.count:
            return
        self.first = min(self.first, other.first) if self.count else other.first
        self.last = max(self.last, other.last) if self.count else other.last
        self.count += other.count
        self.evidence = sorted({*self.evidence, *other.evidence}, key=place_of)[:MOST_EVIDENCE]

    def case(self, title: str, subject: Subject) -> Case:
        """Return the case of all that was counted."""
        return Case(title, subject, self.count, self.first, self.last, list(self.evidence))


def place_of(one: Evidence) -> tuple[int, str, int, int, str]:
    """Return the key by which evidence is sorted: time, then place."""
    return one.time, one.capture, one.packet or 0, one.conversation, one.what


def time_of(row: ExchangeRecord) -> int:
    """Return when an exchange was asked, or where that was not seen answered; ns."""
    time = row.request_time if row.request_time is not None else row.response_time
    return time if time is not None else 0


def end_of(row: ExchangeRecord) -> int:
    """Return when an exchange was answered, else asked; ns."""
    time = row.response_time if row.response_time is not None else row.request_time
    return time if time is not None else 0


def span_of_exchange(row: ExchangeRecord) -> tuple[int, int]:
    """Return when an exchange was asked, and when it was answered; ns."""
    return time_of(row), end_of(row)


def shown(row: ExchangeRecord, what: str | None = None) -> Evidence:
    """Return an exchange as evidence, at its response where there is one.

    `what` None: request and answer with the beginning of the remark.
    """
    packet = row.response_packet if row.response_packet is not None else row.request_packet
    return Evidence(row.capture, packet, end_of(row), row.conversation, what or what_is_seen(row))


def asked(row: ExchangeRecord, what: str | None = None) -> Evidence:
    """Return an exchange as evidence, at its request."""
    packet = row.request_packet if row.request_packet is not None else row.response_packet
    return Evidence(row.capture, packet, time_of(row), row.conversation, what or what_is_seen(row))


def connected(row: ConversationRecord, what: str) -> Evidence:
    """Return a TCP connection as evidence, at its beginning."""
    return Evidence(row.capture, None, row.start_time, row.conversation, what)


_REMARK_SHOWN: Final = 160


def what_is_seen(row: ExchangeRecord) -> str:
    """Return a line that says what an exchange is: request, answer, remark."""
    name = row.request_name or "response"
    if row.response_name is None:
        ended = f", connection {row.end}" if row.end and row.end != "open" else ""
        return f"{name} {row.status}{ended}"
    code = f" ({row.response_code})" if row.response_code is not None else ""
    remark = f": {first_line(row.remark)}" if row.remark else ""
    return f"{name} -> {row.response_name}{code}{remark}"


def first_line(remark: str) -> str:
    """Return the beginning of a remark, on one line."""
    line = " ".join(remark.split())
    return line if len(line) <= _REMARK_SHOWN else line[: _REMARK_SHOWN - 1] + "…"


def filter_of(evidence: list[Evidence]) -> str:
    """Return a Wireshark display filter for the packets, or the connections where none is known.

    Packet numbers are those of the capture that the first evidence is in.
    """
    if not evidence:
        return ""
    here = [one for one in evidence if one.capture == evidence[0].capture]
    packets = sorted({one.packet for one in here if one.packet is not None})
    if packets:
        return f"frame.number in {{{', '.join(map(str, packets))}}}"
    streams = sorted({one.conversation for one in here})
    return f"tcp.stream in {{{', '.join(map(str, streams))}}}"


def as_json(problem: Problem) -> dict[str, object]:
    """Return a problem with its times as text, for JSON."""
    value: dict[str, object] = msgspec.to_builtins(problem)
    for name in NOT_WRITTEN:
        del value[name]
    for name in ("first_time", "last_time"):
        value[name] = text_of_time(getattr(problem, name))
    shown_evidence = msgspec.to_builtins(problem.evidence)
    for one, evidence in zip(shown_evidence, problem.evidence, strict=True):
        one["time"] = text_of_time(evidence.time)
    value["evidence"] = shown_evidence
    return value


def clock(time: int) -> str:
    """Return the time of day, as ``02:46:11``."""
    return text_of_time(time)[11:19]


def clock_after(begin: int, time: int) -> str:
    """Return the time of day, with its date where that is another than that of `begin`."""
    text = text_of_time(time)
    return clock(time) if text[:10] == text_of_time(begin)[:10] else f"{text[:10]} {text[11:19]}"


def period(begin: int, end: int) -> str:
    """Return two times of day, as ``02:46:11 to 02:47:05``, with a date where they differ in it."""
    return f"{clock(begin)} to {clock_after(begin, end)}"


def seconds(length: int) -> str:
    """Return a length of time in ns for people: ``13.6 s``, ``700 ms``."""
    if length < _SECOND:
        return f"{length / 1_000_000:.0f} ms"
    return f"{length / _SECOND:.1f} s"
