"""Messages with a delay are delivered at once, or long after they were due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.foreign import natural_of
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.names import SERVER_VERSION, STORED_MS, TIMER, fact_in
from dissectors.remoting.row_facts.values import number_in, number_of
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...need import Need
from ...problem import Case, Evidence, ProblemSeverity, Subject, Tally, seconds, shown
from ...refusals import MAX_NAMED, counted, listed, only
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold

LATE_ID: Final = "delivered-late"
LATE_MS: Final = 2_000
"""ms after it was due: the timer itself has steps of 1 s (timerPrecisionMs)"""
MAX_MESSAGES: Final = 20_000
_MS: Final = 1_000_000
_SHUT_DOWN: Final = 60_000_000_000
"""ns that a broker may take to shut down, from when it leaves the routes"""


TIMERS_SINCE: Final = 5
"""major release"""
_OLD_ADVICE: Final = (
    "Use setDelayTimeLevel (18 levels by default, messageDelayLevel): brokers of 4.x know no other"
    " delay. Or update the brokers to 5.0 or later."
)


class Timed(NamedTuple):
    """What a pull says of the first message in it."""

    asked: int
    """ms of delay that its producer asked for"""
    took: int
    """ms from its creation to its delivery to the queue"""
    late: int | None
    """ms after it was due; None: the broker did not delay it"""


def timed_in(row: ExchangeRecord) -> Timed | None:
    """Return the delays in a pull; None: its first message has none."""
    parts = (fact_in(row.facts, TIMER) or "").split(" ")
    if len(parts) != 3:
        return None
    asked, took = number_of(parts[0]), number_of(parts[1])
    return Timed(asked, took, number_of(parts[2])) if asked and took is not None else None


class _Delivery(NamedTuple):
    """The first time that a message was delivered."""

    timed: Timed
    stored_ms: int | None
    address: str
    evidence: Evidence

    def with_outage(self, context: Context) -> Timed:
        """Return the delays, until the delivery where its broker had been shut down meanwhile."""
        if self.stored_ms is None or self.timed.late is None:
            return self.timed
        stored, delivered = self.stored_ms * _MS, self.evidence.time
        left = context.left.get(context.broker(self.address), set())
        if not any(stored - _SHUT_DOWN <= time <= delivered for time in left):
            return self.timed
        more = (delivered - stored) // _MS
        return Timed(self.timed.asked, self.timed.took + more, self.timed.late + more)


class _Fold(Fold):
    """Messages of one topic, each by the place in its queue."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._messages: dict[tuple[str, int, int], _Delivery] = {}
        self._addresses: set[str] = set()
        self._groups: set[str] = set()
        self._releases: set[str] = set()

    def add_exchange(self, row: ExchangeRecord) -> None:
        timed = timed_in(row)
        if timed is None or row.queue_id is None or row.queue_offset is None:
            return
        place = row.responder, row.queue_id, row.queue_offset
        if place in self._messages or len(self._messages) < MAX_MESSAGES:
            evidence = shown(row, f"the first message asked for {seconds(timed.asked * _MS)}")
            before = self._messages.get(place)
            if before is None or evidence.time < before.evidence.time:
                stored = number_in(row.facts, STORED_MS)
                self._messages[place] = _Delivery(timed, stored, row.responder, evidence)
        for kept, name in (
            (self._addresses, row.responder),
            (self._groups, row.group),
            (self._releases, fact_in(row.facts, SERVER_VERSION)),
        ):
            if name and len(kept) < MAX_NAMED:
                kept.add(name)

    def cases(self, context: Context) -> Iterable[Case]:
        every = sorted(
            ((one.with_outage(context), one.evidence) for one in self._messages.values()),
            key=lambda one: (one[1].time, one[1].what, one[0]),
        )
        ignored = [one for one in every if one[0].late is None and one[0].took < one[0].asked / 2]
        late = [one for one in every if one[0].late is not None and one[0].late >= LATE_MS]
        if ignored:
            of = f" of {listed(self._releases)}" if self._releases else ""
            case = self._case(ignored, f"the broker{of} ignored the delay", context)
            case.advice = None if all(map(_knows_timers, self._releases)) else _OLD_ADVICE
            yield case
        if late:
            most = max(timed.late or 0 for timed, _ in late)
            case = self._case(late, f"up to {seconds(most * _MS)} after they were due", context)
            case.rule = LATE_ID
            yield case

    def _case(self, found: list[tuple[Timed, Evidence]], how: str, context: Context) -> Case:
        tally = Tally.of(evidence for _, evidence in found)
        asked = sorted({timed.asked for timed, _ in found})
        took = [timed.took for timed, _ in found]
        brokers = {context.broker(one) for one in self._addresses}
        wanted = seconds(asked[0] * _MS)
        if len(asked) > 1:
            wanted = f"{wanted} to {seconds(asked[-1] * _MS)}"
        spent = seconds(min(took) * _MS)
        if max(took) > min(took):
            spent = f"{spent} to {seconds(max(took) * _MS)}"
        was = "was" if len(found) == 1 else "were"
        case = tally.case(
            f"{counted(len(found), 'message')} of {self.key} on {listed(brokers)} asked for a delay"
            f" of {wanted} and {was} delivered after {spent}: {how}",
            Subject(topic=self.key, broker=only(brokers), group=only(self._groups)),
        )
        case.details = [f"groups: {listed(self._groups)}"]
        return case


def _knows_timers(release: str) -> bool:
    """Return whether a broker of a release delivers by timer."""
    return (natural_of(release.partition(".")[0]) or 0) >= TIMERS_SINCE


def _key(row: ExchangeRecord) -> str | None:
    return row.topic if fact_in(row.facts, TIMER) is not None else None


RULE = DiagnosisRule(
    id="delay-ignored",
    severity=ProblemSeverity.ERROR,
    title="A broker delivers messages with a delay at once",
    searched=(
        "setDelayTimeMs does not work",
        "TIMER_DELAY_MS ignored",
        "setDeliverTimeMs delivered immediately",
        "delayed message consumed immediately",
    ),
    proof=(
        "A message in a response to a pull has a timer property (TIMER_DELAY_MS, TIMER_DELAY_SEC,"
        " TIMER_DELIVER_MS), but not that of a broker that delayed it (TIMER_OUT_MS). It was stored"
        " in its queue in less than half of the time that it asked for."
    ),
    explanation=(
        "setDelayTimeMs, setDelayTimeSec and setDeliverTimeMs of a client of 5.x only set a"
        " property. A broker of 4.x does not know it, and one of 5.x with timerWheelEnable=false"
        " refuses or ignores it: the message is stored in its topic at once."
    ),
    advice=(
        "Set timerWheelEnable=true (default true) in broker.conf. With a broker of 4.x, use"
        " setDelayTimeLevel (18 levels by default, messageDelayLevel), or update it to 5.0."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(
            key=_key,
            requests=FETCHES,
            responses=frozenset((int(ResponseCode.SUCCESS),)),
            with_facts=True,
        ),
    ),
    references=("apache/rocketmq#5207",),
    limits=(
        "The first message of each pull is looked at only. A client's clock that is behind the"
        " broker's looks the same where it differs by half of the delay."
    ),
    needs=frozenset((Need.PULLS,)),
    lasts=None,
)
