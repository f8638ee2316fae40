"""A producer keeps sending to a broker that failed: its fault strategy is off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from dissectors.quantities import counted, plain_duration
from dissectors.remoting.codes import ResponseCode

from ....sends.attempts import ONEWAY, REFUSED, STORED, UNKNOWN
from ...context import Context, Need
from ...names import counted_names, only, times
from ...problem import Case, Confidence, Evidence, ProblemSeverity, ProblemState, Subject, Tally
from ...producers import (
    PRODUCER_SENDS,
    JudgedProducer,
    ProducerFold,
    host_of_client,
    host_of_producer,
)
from ...rule import ISOLATES_PROXIES, DiagnosisRule
from ...spells import HOUR, spells
from .attempt_words import NO_RESPONSE, evidence_of, how

if TYPE_CHECKING:
    from ....isolation.strategy_replay import Window

STILL_USED: Final = "isolated-broker-still-used"
ISOLATED: Final = "broker-isolated"
AVOIDED: Final = "permanent-avoidance"

LEAST_SENDS: Final = 10
"""fewer sends to isolated brokers are no pattern"""
LEAST_WITH_FAILURE: Final = 3
"""sends that are a pattern if one of them failed again"""
_FAULTS: Final = frozenset(
    (
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.GO_AWAY,
    )
)
"""responses that indicate a fault of the broker, not of the request"""


class _Fold(ProducerFold):
    def cases(self, context: Context) -> Iterable[Case]:
        """Return the cases of the producers of a host, for three rules."""
        for judged in self.producers(context):
            # Loads numpy: only for a producer that was judged.
            from ....isolation.strategy_replay import OFF, ON

            if judged.verdict.state == OFF and _of_the_broker(judged):
                yield from _still_used(judged, context)
            elif judged.verdict.state == ON:
                yield from _isolated(judged, context)
            yield from _abandoned(judged, context)


def _of_the_broker(judged: JudgedProducer) -> bool:
    """Return whether a broker was at fault, and not the requests that it refused."""
    for window in judged.replay.windows:
        attempt = judged.telling.get(int(judged.attempts.begin[window.attempt]))
        # A slow or failed attempt is the fault of the broker; a refusal may be that of the request.
        if attempt is None or attempt.outcome != REFUSED:
            return True
        if attempt.send.response_code in _FAULTS:
            return True
    return False


def _still_used(judged: JudgedProducer, context: Context) -> Iterable[Case]:
    from ....isolation.strategy_replay import BROKEN

    replay, producer = judged.replay, judged.attempts
    tally = Tally()
    failed = 0
    brokers: Counter[str] = Counter()
    for index in replay.violations.because(BROKEN).tolist():
        begin = int(producer.begin[index])
        broker = producer.broker.text(index)
        brokers[broker] += 1
        attempt = judged.telling.get(begin)
        what = f"send to {broker} while it should be avoided"
        if attempt is not None:
            failed += attempt.outcome not in _GOOD
            tally.add(evidence_of(attempt, f"{what}: {how(attempt)}"))
        else:
            tally.add(Evidence("", None, begin * 1000, 0, what))
    if replay.broken < LEAST_SENDS and not (failed and replay.broken >= LEAST_WITH_FAILURE):
        return
    for window in replay.windows:
        cause = judged.telling.get(int(producer.begin[window.attempt]))
        if cause is not None:
            tally.add(evidence_of(cause, f"{how(cause)}: isolates {window.broker}"), count=0)
    met = replay.avoided + replay.broken
    where = only(brokers) or counted_names(brokers)
    case = tally.case(
        f"the fault strategy of {_producer(judged, context)} is off: {replay.broken:,} of {met:,}"
        f" sends went to {where} after it had failed or been slow; sendLatencyFaultEnable=true"
        " would have avoided it",
        Subject(broker=only(brokers), group=judged.group, client=context.client(judged.endpoint)),
    )
    # Sends kept as numbers only have no packet to show.
    case.evidence = [seen for seen in case.evidence if seen.capture]
    case.rule = STILL_USED
    case.details = [
        f"{_windows(replay.windows)}, if the strategy had been on",
        judged.verdict.reason,
    ]
    if failed:
        case.details.append(f"{failed:,} of these sends failed")
    case.doubt("the program may select queues itself, which looks the same")
    yield case


_GOOD: Final = frozenset((STORED, ONEWAY, UNKNOWN))
"""outcomes that are no failure, as far as known"""


def _isolated(judged: JudgedProducer, context: Context) -> Iterable[Case]:
    from ....isolation.strategy_replay import UNSEEN

    if judged.replay.counts[UNSEEN]:
        return  # it kept trying to connect to a broker that the strategy avoids
    by_broker: dict[str, list[Window]] = {}
    for window in judged.replay.windows:
        by_broker.setdefault(window.broker, []).append(window)
    parted = (
        (broker, spell)
        for broker, windows in sorted(by_broker.items())
        for spell in spells(windows, _span, HOUR)
    )
    for broker, windows in parted:
        tally = Tally()
        for window in windows:
            attempt = judged.telling.get(int(judged.attempts.begin[window.attempt]))
            length = plain_duration(window.end - window.start)
            what = f"isolates {broker} for {length}: {window.cause}"
            if attempt is not None:
                seen = evidence_of(attempt, what)
                later = window.start - seen.time // 1000
                if later >= 1000:  # a send without a response has no packet at its timeout
                    begins = f", beginning {plain_duration(later)} later"
                    what = f"isolates {broker} for {length}{begins}: {window.cause}"
                    seen = evidence_of(attempt, what)
                tally.add(seen, last=window.end * 1000)
            else:
                tally.add(Evidence("", None, window.start * 1000, 0, what), last=window.end * 1000)
        longest = max(window.end - window.start for window in windows)
        case = tally.case(
            f"{_producer(judged, context)} isolated {broker} {times(len(windows))}, for up to"
            f" {plain_duration(longest)}, and sent elsewhere; sendLatencyFaultEnable is probably"
            " on",
            Subject(broker=broker, group=judged.group, client=context.client(judged.endpoint)),
        )
        case.evidence = [seen for seen in case.evidence if seen.capture]
        case.first_time = min(window.start for window in windows) * 1000
        case.rule = ISOLATED
        if context.last_time is not None:
            on = case.last_time > context.last_time
            case.state = ProblemState.GOING_ON if on else ProblemState.OVER
        causes = Counter(window.cause for window in windows)
        case.details = [f"causes: {counted_names(causes)}", judged.verdict.reason]
        case.doubt("instead, the broker may have left the route, which makes every client avoid it")
        yield case


def _span(window: Window) -> tuple[int, int]:
    return window.start * 1000, window.end * 1000


def _abandoned(judged: JudgedProducer, context: Context) -> Iterable[Case]:
    from ....isolation.strategy_replay import absence_of, elsewhere_since

    sent = judged.attempts
    # The last window of each broker, as windows are sorted by time.
    last_of = {window.broker: window for window in judged.replay.windows}
    for broker, window in sorted(last_of.items()):
        used = int(sent.begin[sent.broker.among((broker,))].max())
        elsewhere = int(elsewhere_since(sent, window).sum())
        absence = absence_of(window, used, judged.last, elsewhere)
        if absence is None or not absence.abandoned:
            continue
        topics = [
            topic
            for topic, brokers in sent.brokers_of_topics.items()
            if broker in brokers and topic
        ]
        routed = [
            topic
            for topic in topics
            if any(each.name == broker for each in context.brokers_of(topic))
        ]
        # Without any captured route, it is unknown whether the broker left one.
        if context.routes and not routed:
            continue  # it left the route: every client avoids it
        attempt = judged.telling.get(int(sent.begin[window.attempt]))
        length = plain_duration(window.end - window.start)
        what = f"isolates {broker} for {length}: {window.cause}"
        evidence = [] if attempt is None else [evidence_of(attempt, what)]
        case = Case(
            f"{_producer(judged, context)} has not used {broker} for"
            f" {plain_duration(absence.absent_us)} since its isolation window of"
            f" {plain_duration(window.end - window.start)} ended, and made"
            f" {counted(absence.elsewhere, 'send')} elsewhere",
            Subject(broker=broker, group=judged.group, client=context.client(judged.endpoint)),
            absence.elsewhere,
            window.start * 1000,
            judged.last * 1000,
            evidence,
            Confidence.LIKELY if routed else Confidence.POSSIBLE,
            "the program may select queues itself, which looks the same"
            if routed
            else "the broker may have left the route, which was not captured",
            rule=AVOIDED,
        )
        yield case


def _producer(judged: JudgedProducer, context: Context) -> str:
    return f"producer group {judged.group or '-'} ({context.client(judged.endpoint)})"


def _windows(windows: list[Window]) -> str:
    longest = max(window.end - window.start for window in windows)
    brokers = sorted({window.broker for window in windows})
    return (
        f"{', '.join(brokers[:3])} would have been avoided {times(len(windows))}, for up to"
        f" {plain_duration(longest)}"
    )


RULE = DiagnosisRule(
    id=STILL_USED,
    severity=ProblemSeverity.WARNING,
    title="A producer keeps sending to a broker that failed: its fault strategy is off",
    searched=(
        "sendLatencyFaultEnable not working",
        "latencyFaultTolerance",
        "producer keeps sending to dead broker",
    ),
    proof=(
        "According to the fault strategy of the client's version, the captured attempts isolate a"
        " broker. Many sends still go there although another broker of the topic is available."
    ),
    explanation=(
        "A producer uses the queues of a topic in turn. Without the strategy, it forgets a failure"
        " after the send, so the next message may go to the same broker and wait again. With it,"
        " the producer avoids a broker that failed or was slow. Since 5.1.4, it does so for 10 s"
        " after a failure, and for at least 2 s after a send that took 550 ms or longer. Earlier"
        " versions: 600 s after a failure, at least 30 s after a slow send."
    ),
    advice=(
        "Call producer.setSendLatencyFaultEnable(true) (default false), or set"
        " -Dcom.rocketmq.sendLatencyEnable=true (since 5.1.4). Since 5.2.0, also call"
        " setStartDetectorEnable(true), which detects that a broker recovered. Sends to a chosen"
        " queue or with a selector never use the strategy."
    ),
    grpc=ISOLATES_PROXIES,
    fold=_Fold,
    exchanges=PRODUCER_SENDS,
    connections=host_of_client,
    messages=host_of_producer,
    joined_messages=True,
    references=(
        "apache/rocketmq#2358",
        "apache/rocketmq#1576",
        "apache/rocketmq#2204",
        "apache/rocketmq#1302",
        "apache/rocketmq#4139",
        "apache/rocketmq#6272",
    ),
    limits=(
        "Needs numpy (rmqtool[report]). Nothing is reported without a failure or slow response, or"
        " if too few sends could have reached an isolated broker."
    ),
    needs={Need.SENDS},
    consequence_of=NO_RESPONSE | {"disk-full", "go-away"},
    lasts=None,
)
