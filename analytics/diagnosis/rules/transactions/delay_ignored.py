"""Messages with a delay are delivered at once, or far too late."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.foreign import natural_of
from dissectors.grpc.names import OK
from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.names import FIRST_KEY, SERVER_VERSION, STORED_MS, TIMER, fact_in
from dissectors.remoting.row_facts.values import number_in, number_of
from dissectors.rows.outcome import RECEIVE_CALLS
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import has_room, keep
from ...names import MAX_NAMED, listed, only, subject_of, was
from ...problem import MS, Case, Evidence, Impact, ProblemSeverity, Tally, duration, shown
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold

LATE_ID: Final = "delivered-late"
LATE_MS: Final = 2_000
"""ms after the due time: the timer itself has steps of 1 s (timerPrecisionMs)"""
MAX_MESSAGES: Final = 20_000
_SHUT_DOWN: Final = 60_000_000_000
"""maximum ns of a broker's shutdown, from its unregistration"""


TIMERS_SINCE: Final = 5
"""major release"""
_OLD_ADVICE: Final = (
    "Use setDelayTimeLevel (18 levels by default, messageDelayLevel): brokers of 4.x know no other"
    " delay. Or update the brokers to 5.0 or later."
)
_NEW_ADVICE: Final = (
    "Send delayed messages one by one: brokers of 5.x ignore the delays of messages in a batch."
)


class Timed(NamedTuple):
    """The delay of the first message in a pull."""

    asked: int
    """delay in ms that its producer set"""
    took: int
    """ms from its creation to its delivery to the queue"""
    late: int | None
    """ms after the due time; None: the broker did not delay it"""


def timed_in(row: ExchangeRecord) -> Timed | None:
    """Return the delays in a pull; None if its first message has none."""
    parts = (fact_in(row.facts, TIMER) or "").split(" ")
    if len(parts) != 3:
        return None
    asked, took = number_of(parts[0]), number_of(parts[1])
    return Timed(asked, took, number_of(parts[2])) if asked and took is not None else None


class _Delivery(NamedTuple):
    """The first delivery of a message."""

    timed: Timed
    stored_ms: int | None
    address: str
    evidence: Evidence

    def with_outage(self, context: Context) -> Timed:
        """Return the delays up to the delivery if its broker had been shut down meanwhile."""
        if self.stored_ms is None or self.timed.late is None:
            return self.timed
        stored, delivered = self.stored_ms * MS, self.evidence.time
        left = context.left.get(context.broker(self.address), set())
        # It may be in its queue, but no client gets it until the broker is back.
        if not any(stored - _SHUT_DOWN <= time <= delivered for time in left):
            return self.timed
        more = (delivered - stored) // MS
        return Timed(self.timed.asked, self.timed.took + more, self.timed.late + more)


class _Fold(Fold):
    """Messages of one topic, by their place in the queue."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._messages: dict[tuple[str, int, int], _Delivery] = {}
        self._groups: set[str] = set()
        self._releases: set[str] = set()

    def add_exchange(self, row: ExchangeRecord) -> None:
        timed = timed_in(row)
        if timed is None or row.queue_id is None or row.queue_offset is None:
            return
        key = row.unique_key or fact_in(row.facts, FIRST_KEY)  # of a call and of the pop behind it
        place = key or row.server_address, row.queue_id, row.queue_offset
        if has_room(self._messages, place, MAX_MESSAGES):
            evidence = shown(row, f"the first message asked for {duration(timed.asked * MS)}")
            before = self._messages.get(place)
            if before is None or evidence.time < before.evidence.time:
                stored = number_in(row.facts, STORED_MS)
                self._messages[place] = _Delivery(timed, stored, row.server_address, evidence)
        for kept, name in (
            (self._groups, row.group),
            (self._releases, fact_in(row.facts, SERVER_VERSION)),
        ):
            if name:
                keep(kept, name, MAX_NAMED)

    def cases(self, context: Context) -> Iterable[Case]:
        every = sorted(
            (
                (delivery.with_outage(context), delivery.evidence, delivery.address)
                for delivery in self._messages.values()
            ),
            key=lambda item: (item[1].time, item[1].what, item[0]),
        )
        ignored = [
            delivery
            for delivery in every
            # Half, not all of it: the clocks of client and broker differ.
            if delivery[0].late is None and delivery[0].took < delivery[0].asked / 2
        ]
        late = [
            delivery
            for delivery in every
            if delivery[0].late is not None and delivery[0].late >= LATE_MS
        ]
        if ignored:
            of = f" of {listed(self._releases)}" if self._releases else ""
            case = self._case(ignored, f"the broker{of} ignored the delay", context)
            if self._releases:
                new = all(map(_knows_timers, self._releases))
                case.advice = _NEW_ADVICE if new else _OLD_ADVICE
            case.impact = {Impact.EARLY: len(ignored)}
            yield case
        if late:
            # Not `late`: brokers round the due time down to a second.
            most = max(timed.took - timed.asked for timed, _, _ in late)
            case = self._case(late, f"up to {duration(most * MS)} late", context)
            case.rule = LATE_ID
            case.impact = {Impact.LATE: len(late)}
            yield case

    def _case(self, delayed: list[tuple[Timed, Evidence, str]], how: str, context: Context) -> Case:
        tally = Tally.of(evidence for _, evidence, _ in delayed)
        asked = sorted({timed.asked for timed, _, _ in delayed})
        took = [timed.took for timed, _, _ in delayed]
        addresses = {address for _, _, address in delayed}
        servers = {context.server(address) for address in addresses}
        wanted = duration(asked[0] * MS)
        if len(asked) > 1:
            wanted = f"{wanted} to {duration(asked[-1] * MS)}"
        spent = duration(min(took) * MS)
        if max(took) > min(took):
            spent = f"{spent} to {duration(max(took) * MS)}"
        case = tally.case(
            f"{counted(len(delayed), 'message')} of {self.key} on {listed(servers)} asked for a"
            f" delay of {wanted} and {was(len(delayed))} delivered after {spent}: {how}",
            subject_of(addresses, context, self.key, only(self._groups)),
        )
        case.details = [f"groups: {listed(self._groups)}"]
        return case


def _knows_timers(release: str) -> bool:
    """Return whether brokers of a release deliver by timer."""
    return (natural_of(release.partition(".")[0]) or 0) >= TIMERS_SINCE


def _key(row: ExchangeRecord) -> str | None:
    return row.topic if fact_in(row.facts, TIMER) is not None else None


def _key_of_call(row: ExchangeRecord) -> str | None:
    return _key(row) if row.request_name in RECEIVE_CALLS else None


RULE = DiagnosisRule(
    id="delay-ignored",
    severity=ProblemSeverity.ERROR,
    title="A broker delivers delayed messages immediately",
    searched=(
        "setDelayTimeMs does not work",
        "TIMER_DELAY_MS ignored",
        "setDeliverTimeMs delivered immediately",
        "delayed message consumed immediately",
    ),
    proof=(
        "A pulled message has a timer property (TIMER_DELAY_MS, TIMER_DELAY_SEC, TIMER_DELIVER_MS),"
        " but not the one of a broker that delayed it (TIMER_OUT_MS). It was stored in its queue in"
        " less than half of the requested delay. With gRPC: a received message was stored before"
        " its delivery time."
    ),
    explanation=(
        "setDelayTimeMs, setDelayTimeSec, and setDeliverTimeMs of a 5.x client only set a property."
        " A 4.x broker does not know it and stores the message in its topic immediately. A 5.x"
        " broker ignores it for messages in a batch. (With timerWheelEnable=false, it refuses the"
        " send.)"
    ),
    advice=(
        "Use setDelayTimeLevel with a 4.x broker (18 levels by default, messageDelayLevel), or"
        " update the broker to 5.0 or later. With a 5.x broker, send delayed messages one by one."
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_key, requests=FETCHES, responses={ResponseCode.SUCCESS}, with_facts=True),
        Exchanges(key=_key_of_call, responses={OK}, with_facts=True),
    ),
    references=("apache/rocketmq#5207",),
    limits=(
        "Only the first message of each pull is checked. A client's clock that is behind the"
        " broker's by half of the delay looks the same."
    ),
    needs={Need.PULLS},
    lasts=None,
)
