"""A problem found by a rule: one form for terminal, JSON, HTML, and live display.

Rules: a fold returns a `Case` with the observations; the engine combines it with the description of
its rule into a `Problem`. Times are ns since the epoch, in JSON ISO 8601 in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

import msgspec

from dissectors.quantities import counted, plain_duration
from dissectors.remoting.row_facts.names import STREAM_RESET, fact_in
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.times import text_of_time

MS: Final = 1_000_000
"""ns"""
MOST_EVIDENCE: Final = 8
"""maximum exchanges and connections listed as evidence of one problem"""


class ProblemSeverity(StrEnum):
    """Severity of a problem, ordered by gravity and not by name."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def grade(self) -> int:
        """Its place in the order of gravity."""
        return _GRADES.index(self)

    # Without these four, `str` would compare the names.
    def __lt__(self, other: str) -> bool:
        return self.grade < _GRADES.index(other)

    def __le__(self, other: str) -> bool:
        return self.grade <= _GRADES.index(other)

    def __gt__(self, other: str) -> bool:
        return self.grade > _GRADES.index(other)

    def __ge__(self, other: str) -> bool:
        return self.grade >= _GRADES.index(other)


_GRADES: Final = ("info", "warning", "error")


class ProblemState(StrEnum):
    """Whether a problem has ended by the end of the capture."""

    OVER = "ended"
    GOING_ON = "ongoing"


OVER: Final = 30_000_000_000
"""ns without a new sign after which a problem has ended, unless its signs are rarer"""


class Confidence(StrEnum):
    """Confidence in a verdict; anything less than certain has a reason."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"


LOWER: Final = {
    Confidence.CERTAIN: Confidence.LIKELY,
    Confidence.LIKELY: Confidence.POSSIBLE,
    Confidence.POSSIBLE: Confidence.POSSIBLE,
}
"""confidence of a verdict based on missing traffic if the capture is incomplete"""


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """The subject of a problem; only applicable parts are set."""

    broker: str | None = None
    """broker name, or address if unknown"""
    topic: str | None = None
    group: str | None = None
    client: str | None = None
    """client id, or address if unknown"""
    queue: int | None = None
    server: str | None = None
    """address of a NameServer, or of a server with an unknown role"""
    message: str | None = None
    """UNIQ_KEY, or offset message id"""


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exchange or connection as evidence of a problem."""

    capture: str
    packet: int | None
    """packet number in the capture (`frame.number`); None: unknown"""
    time: int
    """ns since the epoch"""
    conversation: int
    """TCP connection, as in the decoded log"""
    what: str
    """description in one line"""

    def __lt__(self, other: Evidence) -> bool:
        """Order evidence by time, so containers can be sorted even if a row occurs twice."""
        return place_of(self) < place_of(other)


class Impact(StrEnum):
    """Effects on messages, most severe first; the values are names in JSON."""

    LOST = "messages_lost"
    SENDS_FAILED = "sends_failed"
    NOT_CONSUMED = "messages_not_consumed"
    DEAD = "messages_dead_lettered"
    SKIPPED = "messages_skipped"
    INVISIBLE = "messages_invisible"
    ROLLED_BACK = "messages_rolled_back"
    NO_REPLY = "requests_without_reply"
    RETURN_REFUSED = "returns_refused"
    STORED_TWICE = "messages_stored_twice"
    MAYBE_STORED_TWICE = "messages_maybe_stored_twice"
    MAYBE_STORED = "messages_maybe_stored"
    NOT_DURABLE = "messages_not_durable"
    REDELIVERED = "messages_redelivered"
    EARLY = "messages_early"
    LATE = "messages_late"
    UNCONFIRMED = "messages_unconfirmed"
    RETRIED = "sends_retried"


_TEXTS: Final = {
    Impact.LOST: ("message{of} was lost", "messages{of} were lost"),
    Impact.SENDS_FAILED: ("send attempt failed", "send attempts failed"),
    Impact.NOT_CONSUMED: ("message{of} was not consumed", "messages{of} were not consumed"),
    Impact.DEAD: ("message{of} went to the DLQ", "messages{of} went to the DLQ"),
    Impact.SKIPPED: ("message was skipped{by}", "messages were skipped{by}"),
    Impact.INVISIBLE: (
        "transactional message is not visible to consumers",
        "transactional messages are not visible to consumers",
    ),
    Impact.ROLLED_BACK: (
        "transactional message was rolled back by the wrong client",
        "transactional messages were rolled back by the wrong client",
    ),
    Impact.NO_REPLY: ("request got no reply in time", "requests got no reply in time"),
    Impact.RETURN_REFUSED: (
        "message{of} could not be returned for redelivery",
        "messages{of} could not be returned for redelivery",
    ),
    Impact.STORED_TWICE: (
        "message is stored more than once",
        "messages are stored more than once",
    ),
    Impact.MAYBE_STORED_TWICE: ("message may be stored twice", "messages may be stored twice"),
    Impact.MAYBE_STORED: (
        "failed message may have been stored anyway",
        "failed messages may have been stored anyway",
    ),
    Impact.NOT_DURABLE: (
        "stored message may be lost if the broker fails",
        "stored messages may be lost if the broker fails",
    ),
    Impact.REDELIVERED: ("message may be redelivered{to}", "messages may be redelivered{to}"),
    Impact.EARLY: ("message was delivered too early", "messages were delivered too early"),
    Impact.LATE: ("message was delivered late", "messages were delivered late"),
    Impact.UNCONFIRMED: (
        "message was sent without confirmation",
        "messages were sent without confirmation",
    ),
    Impact.RETRIED: ("send succeeded on retry", "sends succeeded on retry"),
}
"""singular and plural texts; {of}, {by}, and {to} are the group if there is only one"""


ANY_TIME: Final = 1 << 62
"""ns: upper bound of any requested time"""
MOST_SPANS: Final = 16
"""maximum periods of a problem; beyond that only the first and last are kept"""


@dataclass(slots=True)
class Case:
    """One problem of a rule, as found by its fold."""

    title: str
    """one plain sentence with concrete names"""
    subject: Subject
    count: int
    """number of occurrences"""
    first_time: int
    last_time: int
    evidence: list[Evidence]
    confidence: Confidence = Confidence.CERTAIN
    reason: str | None = None
    """why the confidence is less than certain"""
    severity: ProblemSeverity | None = None
    """None: as in the rule"""
    advice: str | None = None
    """None: as in the rule"""
    details: list[str] = field(default_factory=list)
    """further sentences for `-v`: figures, versions, consequences"""
    state: ProblemState | None = None
    """at the end of the capture, if known"""
    rule: str | None = None
    """id of another rule reported by the same state; None: the rule of the fold"""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """periods of the problem, ns since the epoch; empty: from first to last"""
    part: str = ""
    """cases of one subject with different parts have different causes and are not merged"""
    leads_within: int = ANY_TIME
    """maximum ns to its consequences, if shorter than their rules allow"""
    impact: dict[Impact, int] = field(default_factory=dict)
    """effects on messages with counts, of which 0 is none; without any, as in the rule"""
    settled: bool = False
    """proved by what was captured, or by a broker's store: as certain despite capture gaps"""
    grpc: bool = False
    """its clients use gRPC: the rule's texts for them apply"""

    def cover(self, spans: list[tuple[int, int]]) -> None:
        """Set the periods of the problem, and their first and last time."""
        self.spans = spans
        self.first_time = min(first for first, _ in spans)
        self.last_time = max(last for _, last in spans)

    def doubt(self, reason: str, confidence: Confidence = Confidence.LIKELY) -> None:
        """Make the verdict less than certain."""
        self.confidence, self.reason = confidence, reason


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
    """at the end of the capture; None: unknown, as for a setting"""
    evidence: list[Evidence]
    filter: str
    """Wireshark display filter for the evidence"""
    details: list[str]
    explanation: str
    advice: str
    references: list[str]
    incident: int = 0
    """incident number; problems of one incident have one cause"""
    consequence_of: str | None = None
    """rule of the causing problem in this incident; None: this is the cause"""
    impact: dict[Impact, int] = {}
    """effect on messages -> number of messages"""
    spans: list[tuple[int, int]] = []
    """as in `Case`"""
    part: str = ""
    """as in `Case`"""
    leads_within: int = ANY_TIME
    """as in `Case`"""


NOT_WRITTEN: Final = ("spans", "part", "leads_within")
"""fields omitted from JSON lines"""


class Tally:
    """Count occurrences and keep the earliest as evidence.

    The result does not depend on the order of rows.
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
        """Return a tally of these occurrences."""
        tally = cls()
        for item in found:
            tally.add(item)
        return tally

    def add(self, item: Evidence, count: int = 1, last: int | None = None) -> None:
        """Count an occurrence that ended at `last`, by default at its own time."""
        ended = item.time if last is None else last
        if not self.count or item.time < self.first:
            self.first = item.time
        if not self.count or ended > self.last:
            self.last = ended
        self.count += count
        evidence = self.evidence
        # The earliest stay, not the first to arrive: rows come by flow, in any order.
        if len(evidence) < MOST_EVIDENCE:
            evidence.append(item)
            evidence.sort(key=place_of)
        elif place_of(item) < place_of(evidence[-1]):
            evidence[-1] = item
            evidence.sort(key=place_of)

    def add_late(self, time: int) -> bool:
        """Count an occurrence if it is too late to be evidence; return whether it was counted.

        This avoids building evidence for frequent events.
        """
        evidence = self.evidence
        if len(evidence) < MOST_EVIDENCE or time <= evidence[-1].time:
            return False
        self.count += 1
        if time > self.last:
            self.last = time
        return True

    def add_all_late(self, first: int, last: int, count: int) -> bool:
        """Count occurrences between two times, as `add_late` counts one."""
        evidence = self.evidence
        if len(evidence) < MOST_EVIDENCE or first <= evidence[-1].time:
            return False
        self.count += count
        if last > self.last:
            self.last = last
        return True

    def merge(self, other: Tally) -> None:
        """Merge another tally."""
        if not other.count:
            return
        self.first = min(self.first, other.first) if self.count else other.first
        self.last = max(self.last, other.last) if self.count else other.last
        self.count += other.count
        # A set: both may have the same row.
        self.evidence = sorted({*self.evidence, *other.evidence}, key=place_of)[:MOST_EVIDENCE]

    def case(self, title: str, subject: Subject) -> Case:
        """Return a case for all counted occurrences."""
        return Case(title, subject, self.count, self.first, self.last, list(self.evidence))


def place_of(evidence: Evidence) -> tuple[int, str, int, int, str]:
    """Return the sort key of evidence: time, then position."""
    return (
        evidence.time,
        evidence.capture,
        evidence.packet or 0,
        evidence.conversation,
        evidence.what,
    )


def time_of(row: ExchangeRecord) -> int:
    """Return the request time of an exchange, or its response time; ns."""
    time = row.request_time if row.request_time is not None else row.response_time
    return time if time is not None else 0


def end_of(row: ExchangeRecord) -> int:
    """Return the response time of an exchange, or its request time; ns."""
    time = row.response_time if row.response_time is not None else row.request_time
    return time if time is not None else 0


def span_of_exchange(row: ExchangeRecord) -> tuple[int, int]:
    """Return the request and response times of an exchange; ns."""
    return time_of(row), end_of(row)


def shown(row: ExchangeRecord, what: str | None = None) -> Evidence:
    """Return an exchange as evidence, at its response if captured.

    `what` None: request and response with the start of the remark.
    """
    packet = row.response_packet if row.response_packet is not None else row.request_packet
    return Evidence(row.capture, packet, end_of(row), row.conversation, what or description_of(row))


def asked(row: ExchangeRecord, what: str | None = None) -> Evidence:
    """Return an exchange as evidence, at its request."""
    packet = row.request_packet if row.request_packet is not None else row.response_packet
    return Evidence(
        row.capture, packet, time_of(row), row.conversation, what or description_of(row)
    )


def connected(row: ConversationRecord, what: str) -> Evidence:
    """Return a TCP connection as evidence, at its start."""
    return Evidence(row.capture, None, row.start_time, row.conversation, what)


_REMARK_SHOWN: Final = 160


def description_of(row: ExchangeRecord) -> str:
    """Return a description of an exchange in one line: request, response, remark."""
    name = row.request_name or "response"
    if row.response_name is None:
        return f"{name} {row.status}{_end_of(row)}"
    code = f" ({row.response_code})" if row.response_code is not None else ""
    remark = f": {first_line(row.remark)}" if row.remark else ""
    return f"{name} -> {row.response_name}{code}{remark}"


def _end_of(row: ExchangeRecord) -> str:
    reset = fact_in(row.facts, STREAM_RESET)
    if reset is not None:  # however the connection ends later
        why, _, side = reset.rpartition(" ")
        return f", reset by the {side} ({why})"
    return f", connection {row.end}" if row.end and row.end != "open" else ""


def first_line(remark: str) -> str:
    """Return the start of a remark, on one line."""
    line = " ".join(remark.split())
    return line if len(line) <= _REMARK_SHOWN else line[: _REMARK_SHOWN - 1] + "…"


def filter_of(evidence: list[Evidence]) -> str:
    """Return a Wireshark display filter for the packets, or for the connections if none is known.

    Packet numbers are those of the capture of the first evidence.
    """
    if not evidence:
        return ""
    here = [item for item in evidence if item.capture == evidence[0].capture]
    packets = sorted({item.packet for item in here if item.packet is not None})
    if packets:
        return f"frame.number in {{{', '.join(map(str, packets))}}}"
    streams = sorted({item.conversation for item in here})
    return f"tcp.stream in {{{', '.join(map(str, streams))}}}"


def as_json(problem: Problem) -> dict[str, object]:
    """Return a problem for JSON, with times as text."""
    value: dict[str, object] = msgspec.to_builtins(problem)
    for name in NOT_WRITTEN:
        del value[name]
    for name in ("first_time", "last_time"):
        value[name] = text_of_time(getattr(problem, name))
    shown_evidence = msgspec.to_builtins(problem.evidence)
    for item, evidence in zip(shown_evidence, problem.evidence, strict=True):
        item["time"] = text_of_time(evidence.time)
    value["evidence"] = shown_evidence
    return value


def occurrences_text(first: str, last: str, times: int, state: str | None) -> str:
    """Return when a problem occurred, how often, and its state.

    `last` is without the date if `first` has the same.
    """
    if state == ProblemState.GOING_ON:
        when = f"since {first}"  # its last time may be after the end of the capture
    else:
        when = first if first == last else f"{first} to {last}"
    often = f", {counted(times, 'occurrence')}" if times > 1 else ""
    return f"{when}{often}{f', {state}' if state is not None else ''}"


def clock(time: int) -> str:
    """Return the time of day, as ``02:46:11``."""
    return text_of_time(time)[11:19]


def clock_after(begin: int, time: int) -> str:
    """Return the time of day, with the date if it differs from that of `begin`."""
    text = text_of_time(time)
    return clock(time) if text[:10] == text_of_time(begin)[:10] else f"{text[:10]} {text[11:19]}"


def period(begin: int, end: int) -> str:
    """Return two times of day, as ``02:46:11 to 02:47:05``, with dates if they differ."""
    return f"{clock(begin)} to {clock_after(begin, end)}"


def duration(length: int) -> str:
    """Return a duration in ns as readable text: ``13.6 s``, ``700 ms``, ``5 min 2 s``."""
    return plain_duration(length // 1000)


def impact_text(impact: Impact, count: int, groups: Iterable[str | None]) -> str:
    """Return the impact on `count` messages of these groups as text."""
    different = set(groups)
    group = different.pop() if len(different) == 1 else None
    names = {word: f" {word} group {group}" if group else "" for word in ("of", "by", "to")}
    return f"{count:,} {_TEXTS[impact][count != 1].format(**names)}"
