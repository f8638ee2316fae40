"""Members of one consumer group subscribe different topics or expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.heartbeats import (
    AnnouncedSubscription,
    consumers_in,
    subscriptions_in,
)
from dissectors.remoting.row_facts.names import CLIENT, MAX_FACTS, fact_in
from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...context import Context
from ...keys import WHOLE, whole
from ...need import Need
from ...problem import (
    MOST_EVIDENCE,
    Case,
    Confidence,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    first_line,
    place_of,
    shown,
    time_of,
)
from ...refusals import only, times
from ...rule import DiagnosisRule, Exchanges, Fold

HEARTBEAT: Final = int(RequestCode.HEART_BEAT)
PARSE_FAILED: Final = int(ResponseCode.SUBSCRIPTION_PARSE_FAILED)
NOT_EXIST: Final = int(ResponseCode.SUBSCRIPTION_NOT_EXIST)
NOT_LATEST: Final = int(ResponseCode.SUBSCRIPTION_NOT_LATEST)
TAG: Final = "TAG"
"""ExpressionType.TAG"""
OR: Final = "||"
PUSH: Final = "CONSUME_PASSIVELY"
"""ConsumeType of push consumers: the broker filters by what the group's last heartbeat said"""
STOPS: Final = int(RequestCode.UNREGISTER_CLIENT)
BEATS_NS: Final = 30_000_000_000
"""heartbeatBrokerInterval: a client that was heard lives so long, unless it is seen to end"""
LASTING_NS: Final = 40_000_000_000
"""a heartbeat every 30 s (heartbeatBrokerInterval) sets right what a start left wrong"""
MAX_CLIENTS: Final = 4096
MAX_CONNECTIONS: Final = 100_000
MAX_FORMS: Final = 16
"""subscriptions of one client one after the other"""
MOST_NAMED: Final = 3
MOST_PULLS: Final = 2
_Form = tuple[str, ...]


class _Seen:
    """When a client announced one form of its subscription."""

    __slots__ = ("endpoint", "evidence", "first", "last")

    def __init__(self, one: Evidence, endpoint: str) -> None:
        self.first = self.last = one.time
        self.evidence = one
        self.endpoint = endpoint
        """where the last one came from"""

    def add(self, one: Evidence, endpoint: str) -> None:
        self.first = min(self.first, one.time)
        if (one.time, place_of(one)) > (self.last, place_of(self.evidence)):
            self.evidence, self.endpoint = one, endpoint
        self.last = max(self.last, one.time)


class SubscriptionFold(Fold):
    """All groups. A heartbeat announces several of them, so that none can be the key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.groups: dict[str, dict[str, dict[_Form, _Seen]]] = {}
        """group -> client id -> what it subscribes -> when"""
        self.clients = 0
        self.refused: dict[tuple[str, str, str, int], Tally] = {}
        """(group, topic, address of the client, response code) -> pulls"""
        self.stopped: dict[str, set[int]] = {}
        """client id -> times at which it said that it stops, ns"""
        self.connected: dict[str, int] = {}
        """`address:port` of a client -> when its connection ended, or was seen last, ns"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code == HEARTBEAT:
            self._take_heartbeat(row)
            return
        if row.request_code == STOPS:
            client = fact_in(row.facts, CLIENT)
            if client is not None:
                self.take_stop(client, time_of(row))
            return
        where = (row.group or "", row.topic or "", row.requester, row.response_code or 0)
        tally = self.refused.get(where)
        if tally is None:
            if len(self.refused) >= MAX_CLIENTS:
                return
            tally = self.refused[where] = Tally()
        tally.add(shown(row))

    def take_stop(self, client: str, time: int) -> None:
        """Take it that a client said that it stops."""
        if client in self.stopped or len(self.stopped) < MAX_CLIENTS:
            self.stopped.setdefault(client, set()).add(time)

    def add_connection(self, row: ConversationRecord) -> None:
        self.take_end(row.client, row.end_time)

    def take_end(self, endpoint: str, time: int) -> None:
        """Take it that a connection of a client ended, or was seen last."""
        known = self.connected
        if endpoint in known or len(known) < MAX_CONNECTIONS:
            known[endpoint] = max(known.get(endpoint, 0), time)

    def _alive_until(self, client: str, seen: _Seen) -> int:
        """Return how long a client lives for certain: the next heartbeat may be 30 s away."""
        ends = [seen.last + BEATS_NS, self.connected.get(seen.endpoint, seen.last)]
        ends += self.stopped.get(client, ())
        return min((one for one in ends if one >= seen.last), default=seen.last)

    def _take_heartbeat(self, row: ExchangeRecord) -> None:
        self.take_announced(row.facts, row.requester, lambda what: asked(row, what))

    def take_announced(
        self, facts: Sequence[str], endpoint: str, evidence: Callable[[str], Evidence]
    ) -> None:
        """Take the facts of a heartbeat; `evidence` is told what it shows."""
        client = fact_in(facts, CLIENT)
        if client is None or len(facts) >= MAX_FACTS:
            return
        subscribed = subscriptions_in(facts)
        for group in consumers_in(facts):
            if group.type != PUSH:
                continue
            form = sorted(
                f"{one.topic} {one.type} {_expression(one)}"
                for one in subscribed
                if one.group == group.name and RETRY_PREFIX not in one.topic
            )
            # A short heartbeat of version 2 says nothing of subscriptions.
            if not form:
                continue
            clients = self.groups.setdefault(group.name, {})
            forms = clients.get(client)
            if forms is None:
                if self.clients >= MAX_CLIENTS:
                    continue
                self.clients += 1
                forms = clients[client] = {}
            key = (group.model, *form)
            one = evidence(first_line(f"{client} subscribes {subscribed_text(key)}"))
            seen = forms.get(key)
            if seen is not None:
                seen.add(one, endpoint)
            elif len(forms) < MAX_FORMS:
                forms[key] = _Seen(one, endpoint)

    def cases(self, context: Context) -> Iterable[Case]:
        told: set[str] = set()
        for group, apart in self.conflicts():
            told.add(group)
            yield self._of_conflict(group, apart)
        yield from self._refusals(told, context)

    def conflicts(self) -> Iterator[tuple[str, dict[str, tuple[_Form, _Seen]]]]:
        """Yield groups of which members subscribe differently: those members, and what."""
        for group, clients in sorted(self.groups.items()):
            # What a client said last counts: it may subscribe one topic after the other.
            latest = {
                client: max(forms.items(), key=lambda item: (item[1].last, item[0]))
                for client, forms in clients.items()
            }
            apart = self._conflict(latest)
            if apart:
                yield group, apart

    def _of_conflict(self, group: str, apart: dict[str, tuple[_Form, _Seen]]) -> Case:
        common = set.intersection(*(set(form) for form, _ in apart.values()))
        tally = Tally()
        heartbeats = []
        said = []
        for client, (form, seen) in sorted(apart.items()):
            tally.add(seen.evidence)
            heartbeats.append(seen.evidence)
            own = [part for part in form if part not in common]
            said.append(
                first_line(f"{client} {subscribed_text(own) if own else 'only what all have'}")
            )
        pulls = Tally()
        for (of, _, _, code), refused in sorted(self.refused.items()):
            if of == group and code != PARSE_FAILED:
                pulls.merge(refused)
        tally.merge(pulls)
        tally.count = len(apart)
        more = f" and {len(said) - MOST_NAMED} more" if len(said) > MOST_NAMED else ""
        topics = {
            part.split(" ")[0]
            for form, _ in apart.values()
            for part in form
            if part not in common and " " in part
        }
        case = tally.case(
            f"members of {group} subscribe differently: {'; '.join(said[:MOST_NAMED])}{more}",
            Subject(topic=only(topics), group=group),
        )
        # The heartbeats prove it, the refused pulls show what it does.
        heartbeats = heartbeats[: MOST_EVIDENCE - MOST_PULLS]
        case.evidence = heartbeats + pulls.evidence[: MOST_EVIDENCE - len(heartbeats)]
        if pulls.count:
            case.details.append(
                f"pulls of the group were refused {times(pulls.count)}, as its subscription had"
                " just been replaced"
            )
        return case

    def _conflict(self, latest: dict[str, tuple[_Form, _Seen]]) -> dict[str, tuple[_Form, _Seen]]:
        """Return the clients that subscribe differently and lived at the same time."""
        found: dict[str, tuple[_Form, _Seen]] = {}
        ordered = sorted(latest.items(), key=lambda item: (item[1][1].first, item[0]))
        for number, (client, (form, seen)) in enumerate(ordered):
            until = self._alive_until(client, seen)
            for other, (form_of_other, seen_of_other) in ordered[number + 1 :]:
                if form != form_of_other and seen_of_other.first <= until:
                    found[client] = (form, seen)
                    found[other] = (form_of_other, seen_of_other)
            if len(found) > MAX_FORMS:
                break
        return found

    def _refusals(self, told: set[str], context: Context) -> Iterable[Case]:
        for (group, topic, endpoint, code), tally in sorted(self.refused.items()):
            client = context.client(endpoint)
            subject = Subject(topic=topic or None, group=group or None, client=client)
            if code == PARSE_FAILED:
                yield tally.case(
                    f"the broker cannot read the expression by which {client} of {group} filters"
                    f" {topic}: pulls were refused {times(tally.count)}",
                    subject,
                )
            elif tally.last - tally.first >= LASTING_NS and group not in told:
                seconds = (tally.last - tally.first) / 1_000_000_000
                case = tally.case(
                    f"the broker refuses pulls of {client} for {seconds:.0f} s: it knows no such"
                    f" subscription of {group} to {topic} ({tally.count:,} times)",
                    subject,
                )
                case.confidence = Confidence.LIKELY
                case.reason = "no heartbeats of the group that differ were captured"
                yield case


def _expression(one: AnnouncedSubscription) -> str:
    """Return an expression so that the order of tags makes no difference."""
    if one.type != TAG or OR not in one.expression:
        return one.expression
    return f" {OR} ".join(sorted({tag.strip() for tag in one.expression.split(OR)}))


def subscribed_text(form: Iterable[str]) -> str:
    """Return subscriptions as people write them: ``Orders (tags A || B)``."""
    said = []
    for part in form:
        topic, _, rest = part.partition(" ")
        kind, _, expression = rest.partition(" ")
        if not rest:
            said.append(part.lower())
        elif expression == "*":
            said.append(f"{topic} (all)")
        else:
            said.append(f"{topic} ({'tags ' if kind == TAG else 'SQL '}{expression})")
    return ", ".join(said)


def _of_clients(row: ConversationRecord) -> str | None:
    return WHOLE if row.commands else None


RULE = DiagnosisRule(
    id="inconsistent-subscription",
    severity=ProblemSeverity.ERROR,
    title="Members of one consumer group subscribe different topics or tags",
    searched=(
        "the consumer's subscription not exist",
        "the consumer's subscription not latest",
        "SUBSCRIPTION_NOT_LATEST",
        "SUBSCRIPTION_NOT_EXIST",
        "subscription inconsistent, messages lost",
    ),
    proof=(
        "Heartbeats (34) of two push consumers of one group that are alive together and whose"
        " topics, expressions or message models differ. Or pulls answered 24 or 25 for longer than"
        " a heartbeat could take to set it right, or 23."
    ),
    explanation=(
        "A broker keeps one subscription for a group: that of the last heartbeat. Members that"
        " differ replace each other's. Their pulls are refused with 24 or 25 until their own next"
        " heartbeat, and the broker filters by the other member's tags. The queues of all topics"
        " are divided among all members, including those that do not subscribe a topic. So messages"
        " come late, or to nobody."
    ),
    advice=(
        "Use one group for one set of topics and tags: the same code in all members. Give another"
        " consumer another group. During a deployment that changes the subscription, old and new"
        " members differ as long as both run; use a new group or stop the old ones first."
    ),
    grpc="Subscriptions are sent over the telemetry stream, which has no rows.",
    fold=SubscriptionFold,
    exchanges=(
        Exchanges(key=whole, requests=frozenset((HEARTBEAT, STOPS))),
        Exchanges(
            key=whole,
            requests=FETCHES,
            responses=frozenset((PARSE_FAILED, NOT_EXIST, NOT_LATEST)),
        ),
    ),
    connections=_of_clients,
    references=(
        "apache/rocketmq#588",
        "apache/rocketmq#443",
        "apache/rocketmq#1873",
        "apache/rocketmq#2089",
        "apache/rocketmq#5473",
        "alibaba/rocketmq#212",
        "apache/rocketmq-client-go#592",
    ),
    limits=(
        "A 24 or 25 that a heartbeat sets right is normal, as after a start, and not told. Pull"
        " consumers send their expression with each pull and are not compared."
    ),
    needs=frozenset((Need.HEARTBEATS,)),
    lasts=None,
)
