"""A broker or a topic is closed for sending or consuming, by its permission bits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.routes import RoutedBroker
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import READ, WRITE, answered_route
from ...context import Context
from ...keys import ROUTE, is_own_topic, keep, keep_least, keep_most, whole
from ...names import listed, only
from ...problem import (
    MOST_EVIDENCE,
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    shown,
    time_of,
)
from ...refusals import CALL_REFUSALS, Refusals, whole_of_sends
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from .acl_signature import reason_of

MAX_ROUTED: Final = 10_000
"""maximum brokers of topics that are kept"""
_SENDING: Final = "sending"
_REASONS: Final = (
    (
        "sending transaction message is forbidden",
        "transactions",
        "accepts no transactional messages",
    ),
    ("sending message is forbidden", _SENDING, "is read-only"),
    ("Sending message to topic[", "system", "accepts no messages to a system topic"),
    ("for lite pull consumer is forbidden", "lite", "does not allow lite pulls"),
    ("pulling message is forbidden", "pulling", "may not be read"),
    ("pop message is forbidden", "pulling", "may not be read"),
    ("peeking message is forbidden", "pulling", "may not be read"),
    ("subscription group no permission", "group", "does not let the group consume"),
    ("can not consume by broadcast way", "broadcast", "does not let the group broadcast"),
    ("is forbidden for topic[", "group", "does not let the group consume"),
    ("recall failed, operation is forbidden", "recall", "does not allow recalls"),
)
"""part of a remark, its kind, and its meaning for the broker or topic

AbstractSendMessageProcessor, SendMessageProcessor, PullMessageProcessor, PopMessageProcessor.
"""
_SAID: Final = {kind: said for _, kind, said in _REASONS}


def kind_of(remark: str | None) -> str | None:
    """Return the missing permission in a remark; None for other remarks."""
    return next((kind for part, kind, _ in _REASONS if remark and part in remark), None)


class _Refused(Refusals):
    per_broker = True

    def title(self, context: Context) -> str:
        broker = context.refuser(self.key)
        topic = only(self.topics)
        of = f" of topic {topic}" if topic else ""
        return f"{broker} refused {self.what}{of}: it {_SAID.get(self.kind, 'forbids that')}"

    @property
    def kind(self) -> str:
        """The missing permission."""
        return next(iter(self.named("kind")), "")

    def take(self, row: ExchangeRecord) -> None:
        self.note_name("kind", kind_of(row.remark))

    def details(self, context: Context) -> list[str]:
        return [*super().details(context), *self.again_lines(context)]


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.refused: dict[str, _Refused] = {}
        self.closed: dict[tuple[str, int], Tally] = {}
        """broker name and its bits -> routes with them"""
        self.topics: dict[tuple[str, int], set[str]] = {}
        self.open_again: dict[tuple[str, str], int] = {}
        """broker and topic -> time of its latest route with both bits"""
        self.changed: dict[str, int] = {}
        """topic -> first time that an administrator changed its settings"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code == ROUTE:
            self._take_route(row)
            return
        if row.request_code == CHANGE:
            keep_least(self.changed, row.topic or "", time_of(row), MAX_ROUTED)
            return
        kind = kind_of(row.remark) or ""
        if kind not in self.refused:
            self.refused[kind] = _Refused(kind)
            self.refused[kind].lasts = self.lasts
        self.refused[kind].add_exchange(row)

    def cases(self, context: Context) -> Iterable[Case]:
        reported: set[tuple[str | None, int]] = set()
        for kind, refused in sorted(self.refused.items()):
            for case in refused.cases(context):
                bit = _BITS.get(kind)
                if bit is not None and (said := self._routes_of(case.subject.broker, bit)):
                    case.title += f" (permission {said[0]} in its route)"
                    case.details += said[1]
                    case.evidence = _with(case.evidence, said[2])
                    reported.add((case.subject.broker, bit))
                yield case
        for (broker, perm), tally in sorted(self.closed.items()):
            missing = [bit for bit in (WRITE, READ) if not perm & bit]
            # The refusals of this broker already say so, with the route as evidence.
            if all((broker, bit) in reported for bit in missing):
                continue
            yield self._routed(broker, perm, tally, context)

    def _routed(self, broker: str, perm: int, tally: Tally, context: Context) -> Case:
        topics = self.topics[broker, perm]
        what = f"topic {next(iter(topics))}" if len(topics) == 1 else f"{len(topics):,} topics"
        closed, effect = _EFFECTS[perm & (READ | WRITE)]
        alone = [self._only_broker(topic, broker, context) for topic in topics]
        # Producers keep only writable queues: without any, they report that there is no route.
        if all(alone) and perm & (READ | WRITE) == READ:
            effect = 'producers get "No route info of this topic"; consumers are not affected'
        case = tally.case(
            f"{broker} is {closed} for {what} (permission {perm} in the route): {effect}",
            Subject(broker=broker, topic=only(topics)),
        )
        again = self._again(broker, topics, tally.last)
        case.details = [f"topics: {listed(topics)}", *again]
        # Closed after an administrator's change: probably on purpose.
        wanted = all(self.changed.get(topic, tally.first) < tally.first for topic in topics)
        if wanted:
            case.details.append(
                "an administrator changed the topic before (UPDATE_AND_CREATE_TOPIC)"
            )
        case.severity = ProblemSeverity.WARNING
        if any(alone) and not perm & WRITE:
            if not again and not wanted:
                case.severity = ProblemSeverity.ERROR
            case.details.append("no other broker of the topic accepts messages")
        return case

    def _only_broker(self, topic: str, broker: str, context: Context) -> bool:
        others = [routed for routed in context.brokers_of(topic) if routed.name != broker]
        return not any((broker.perm or 0) & WRITE and broker.write_queues for broker in others)

    def _again(self, broker: str, topics: set[str], last: int) -> list[str]:
        again = [self.open_again.get((broker, topic), 0) for topic in topics]
        return ["a later route shows it open again"] if again and min(again) > last else []

    def _routes_of(
        self, broker: str | None, bit: int
    ) -> tuple[str, list[str], list[Evidence]] | None:
        """Return the permission of a broker that lacks the bit in routes, with evidence."""
        for (name, perm), tally in sorted(self.closed.items()):
            if name == broker and not perm & bit:
                topics = self.topics[name, perm]
                again = self._again(name, topics, tally.last)
                routes = f"{counted(tally.count, 'route')} with permission {perm}: {listed(topics)}"
                return str(perm), [routes, *again], tally.evidence
        return None

    def _take_route(self, row: ExchangeRecord) -> None:
        topic = row.topic or ""
        for routed in answered_route(row).brokers:
            # Without queues, a broker has none of the messages, whatever its permission.
            if routed.perm is None or not _has_queues(routed):
                continue
            place = routed.name, topic
            if routed.perm & READ and routed.perm & WRITE:
                keep_most(self.open_again, place, row.response_time or 0, MAX_ROUTED)
                continue
            key = routed.name, routed.perm
            if key not in self.closed:
                if len(self.closed) >= MAX_ROUTED:
                    continue
                self.closed[key], self.topics[key] = Tally(), set()
            what = f"route of {topic}: {routed.name} has permission {routed.perm}"
            self.closed[key].add(shown(row, f"{what} ({_EFFECTS[routed.perm & 6][0]})"))
            keep(self.topics[key], topic, MAX_ROUTED)


CHANGE: Final = int(RequestCode.UPDATE_AND_CREATE_TOPIC)
_BITS: Final = {_SENDING: WRITE, "pulling": READ}
_EFFECTS: Final = {
    READ: ("read-only", "producers skip it, consumers are not affected"),
    WRITE: ("write-only", "consumers get none of its messages"),
    0: ("closed", "neither producers nor consumers use it"),
}
"""permission bits -> state of the broker, effect"""


def _with(evidence: list[Evidence], routes: list[Evidence]) -> list[Evidence]:
    """Return evidence with a position for a route with the same content."""
    return sorted([*evidence[: MOST_EVIDENCE - 1], *routes[:1]])


def _has_queues(broker: RoutedBroker) -> bool:
    return broker.read_queues > 0 or broker.write_queues > 0


def _refused(row: ExchangeRecord) -> str | None:
    if kind_of(row.remark) is None or reason_of(row.remark) is not None:
        return None
    return whole(row)


def _refused_call(row: ExchangeRecord) -> str | None:
    return None if _refused(row) is None else whole_of_sends(row)


def _route(row: ExchangeRecord) -> str | None:
    # An incomplete route may lack the brokers that are open.
    return None if is_own_topic(row.topic) or row.missing_bytes else whole(row)


RULE = DiagnosisRule(
    id="no-permission",
    severity=ProblemSeverity.ERROR,
    title="A broker or topic is closed for sending or for consuming",
    searched=(
        "the broker sending message is forbidden",
        "Sending message to topic is forbidden",
        "pulling message is forbidden",
        "NO_PERMISSION",
        "CODE: 16",
        "sending transaction message is forbidden",
        "peeking message is forbidden",
        "can not consume by broadcast way",
        "subscription group no permission",
    ),
    proof=(
        "Response code 16 (NO_PERMISSION) with a remark that says what is forbidden; or a route in"
        " which a broker lacks permission bit 4 (read) or 2 (write)."
    ),
    explanation=(
        "Each topic on each broker has permission bits: 4 to consume, 2 to send. The broker's own"
        " bits (brokerPermission) limit those of all its topics. Producers skip a broker without"
        " the write bit once they have the new route. Until then, a current broker refuses only"
        " their sends to ordered topics, and still stores other messages."
    ),
    advice=(
        "Restore the permission: brokerPermission (default 6) of the broker with mqadmin"
        " updateBrokerConfig, or that of the topic with mqadmin updateTopicPerm -p 6. mqadmin"
        " wipeWritePerm removes the write bit at the NameServers, addWritePerm restores it. (A"
        " broker that will be shut down is made read-only on purpose: wait until its messages are"
        " consumed.)"
    ),
    grpc=COVERED,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_refused, responses={ResponseCode.NO_PERMISSION}),
        Exchanges(key=_refused_call, responses=CALL_REFUSALS),
        Exchanges(key=_route, requests={ROUTE}, responses={ResponseCode.SUCCESS}),
        Exchanges(key=whole, requests={CHANGE}, responses={ResponseCode.SUCCESS}),
    ),
    references=(
        "apache/rocketmq#4109",
        "apache/rocketmq#6706",
        "apache/rocketmq#7149",
        "apache/rocketmq#6466",
    ),
    consequence_of={"no-master"},
    lasts=None,
)
