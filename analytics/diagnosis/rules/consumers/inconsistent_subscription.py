"""Members of one consumer group subscribe to different topics or expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from dissectors.grpc.names import TELEMETRY
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.heartbeats import (
    AnnouncedSubscription,
    consumers_in,
    subscriptions_in,
)
from dissectors.remoting.row_facts.names import MAX_FACTS
from dissectors.remoting.topic_names import RETRY_PREFIX
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord

from ...context import CLUSTERING, Context, Need
from ...keys import HEARTBEAT, WHOLE, has_room, keep, keep_most, state_in, whole, with_commands
from ...names import only, times
from ...problem import (
    MOST_EVIDENCE,
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    asked,
    duration,
    first_line,
    shown,
    time_of,
)
from ...rule import COVERED, DiagnosisRule, Exchanges, Fold
from ...spells import joined

PARSE_FAILED: Final = int(ResponseCode.SUBSCRIPTION_PARSE_FAILED)
NOT_EXIST: Final = int(ResponseCode.SUBSCRIPTION_NOT_EXIST)
NOT_LATEST: Final = int(ResponseCode.SUBSCRIPTION_NOT_LATEST)
TAG: Final = "TAG"
"""ExpressionType.TAG"""
OR: Final = "||"
PUSH: Final = "CONSUME_PASSIVELY"
"""ConsumeType of push consumers: the broker filters by the group's latest heartbeat"""
STOPS: Final = int(RequestCode.UNREGISTER_CLIENT)
BEATS_NS: Final = 30_000_000_000
"""heartbeatBrokerInterval: a client is alive this long after a heartbeat, unless its end is
captured"""
LASTING_NS: Final = 40_000_000_000
"""a heartbeat every 30 s (heartbeatBrokerInterval) corrects conflicts of a start"""
MAX_CLIENTS: Final = 4096
MAX_CONNECTIONS: Final = 100_000
MAX_FORMS: Final = 16
"""maximum consecutive subscriptions of one client"""
MAX_SERVERS: Final = 256
"""maximum brokers that get a client's heartbeats"""
MOST_NAMED: Final = 3
MOST_PULLS: Final = 2
_Form = tuple[str, ...]


class _Seen:
    """The period in which a client announced one form of its subscription."""

    __slots__ = ("endpoint", "evidence", "first", "last", "servers")

    def __init__(self, evidence: Evidence, endpoint: str) -> None:
        self.first = self.last = evidence.time
        self.evidence = evidence
        self.endpoint = endpoint
        """source of the last one"""
        self.servers: set[str] = set()
        """`address:port` of the brokers to which it was announced; empty: they are not known"""

    def add(self, evidence: Evidence, endpoint: str) -> None:
        self.first = min(self.first, evidence.time)
        if (evidence.time, evidence) > (self.last, self.evidence):
            self.evidence, self.endpoint = evidence, endpoint
        self.last = max(self.last, evidence.time)


class SubscriptionFold(Fold):
    """All groups. A heartbeat announces several of them, so none can be the key."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.groups: dict[str, dict[str, dict[_Form, _Seen]]] = {}
        """group -> client id -> subscription -> period"""
        self.clients = 0
        self.refused: dict[tuple[str, str, str, int], Tally] = {}
        """(group, topic, client address, response code) -> pulls"""
        self.stopped: dict[str, set[int]] = {}
        """client id -> times at which it unregistered, ns"""
        self.connected: dict[str, int] = {}
        """client `address:port` -> end of its connection, or its last packet, ns"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code == HEARTBEAT:
            self._take_heartbeat(row)
            return
        if row.request_name == TELEMETRY:
            self._take_settings(row)
            return
        if row.request_code == STOPS:
            if row.client_id is not None:
                self.take_stop(row.client_id, time_of(row))
            return
        where = (row.group or "", row.topic or "", row.client_address, row.response_code or 0)
        tally = state_in(self.refused, where, Tally, MAX_CLIENTS)
        if tally is None:
            return
        tally.add(shown(row))

    def take_stop(self, client: str, time: int) -> None:
        """Record that a client unregistered."""
        if has_room(self.stopped, client, MAX_CLIENTS):
            self.stopped.setdefault(client, set()).add(time)

    def add_connection(self, row: ConversationRecord) -> None:
        # Its last packet: a client that stops without unregistering does not live on for 30 s.
        self.take_end(row.client_address, row.end_time)

    def take_end(self, endpoint: str, time: int) -> None:
        """Record that a client's connection ended, or its last packet."""
        keep_most(self.connected, endpoint, time, MAX_CONNECTIONS)

    def _alive_until(self, client: str, seen: _Seen) -> int:
        """Return until when a client is certainly alive: the next heartbeat may be 30 s away."""
        ends = [seen.last + BEATS_NS, self.connected.get(seen.endpoint, seen.last)]
        ends += self.stopped.get(client, ())
        return min((end for end in ends if end >= seen.last), default=seen.last)

    def _take_heartbeat(self, row: ExchangeRecord) -> None:
        self.take_announced(
            row.client_id,
            row.facts,
            row.client_address,
            row.server_address,
            lambda what: asked(row, what),
        )

    def _take_settings(self, row: ExchangeRecord) -> None:
        """Add the settings of a gRPC consumer."""
        client = row.client_id
        if client is not None and row.group is not None and len(row.facts) < MAX_FACTS:
            evidence = partial(asked, row)
            # Without the server: proxies of one cluster know each other's settings.
            self._take_forms(
                client, row.group, CLUSTERING, row.facts, row.client_address, "", evidence
            )

    def take_announced(
        self,
        client: str | None,
        facts: Sequence[str],
        endpoint: str,
        server: str,
        evidence: Callable[[str], Evidence],
    ) -> None:
        """Add the facts of a heartbeat; `evidence` receives its description.

        `endpoint` and `server` are the `address:port` of client and broker.
        """
        # A list that reached the limit may lack subscriptions, and would seem to differ.
        if client is None or len(facts) >= MAX_FACTS:
            return
        for group in consumers_in(facts):
            # Pull consumers send their expression with each pull, so their heartbeats may differ.
            if group.type == PUSH:
                self._take_forms(client, group.name, group.model, facts, endpoint, server, evidence)

    def _take_forms(
        self,
        client: str,
        group: str,
        model: str,
        facts: Sequence[str],
        endpoint: str,
        server: str,
        evidence: Callable[[str], Evidence],
    ) -> None:
        # A proxy repeats the settings in its response.
        form = sorted(
            {
                f"{subscription.topic} {subscription.type} {_expression(subscription)}"
                for subscription in subscriptions_in(facts)
                # Each client adds the retry topic of its group by itself.
                if subscription.group == group and RETRY_PREFIX not in subscription.topic
            }
        )
        # A short heartbeat of version 2 has no subscriptions.
        if not form:
            return
        clients = self.groups.setdefault(group, {})
        forms = clients.get(client)
        if forms is None:
            if self.clients >= MAX_CLIENTS:
                return
            self.clients += 1
            forms = clients[client] = {}
        key = (model, *form)
        item = evidence(first_line(f"{client} subscribes {subscribed_text(key)}"))
        seen = forms.get(key)
        if seen is not None:
            seen.add(item, endpoint)
        elif len(forms) < MAX_FORMS:
            seen = forms[key] = _Seen(item, endpoint)
        if seen is not None and server:
            keep(seen.servers, server, MAX_SERVERS)

    def cases(self, context: Context) -> Iterable[Case]:
        reported: set[str] = set()
        for group, apart in self.conflicts(context):
            reported.add(group)
            yield self._of_conflict(group, apart)
        yield from self._refusals(reported, context)

    def conflicts(self, context: Context) -> Iterator[tuple[str, dict[str, tuple[_Form, _Seen]]]]:
        """Yield groups with conflicting subscriptions, with the members and their subscriptions."""
        for group, clients in sorted(self.groups.items()):
            # Only the latest subscription of a client counts: it may add topics one by one.
            latest = {
                client: max(forms.items(), key=lambda item: (item[1].last, item[0]))
                for client, forms in clients.items()
            }
            servers = {
                client: set().union(*(seen.servers for seen in forms.values()))
                for client, forms in clients.items()
            }
            apart = self._conflict(latest, servers, context)
            if apart:
                yield group, apart

    def _of_conflict(self, group: str, apart: dict[str, tuple[_Form, _Seen]]) -> Case:
        common = set.intersection(*(set(form) for form, _ in apart.values()))
        tally = Tally()
        heartbeats = []
        subscribed = []
        for client, (form, seen) in sorted(apart.items()):
            tally.add(seen.evidence)
            heartbeats.append(seen.evidence)
            own = [part for part in form if part not in common]
            subscribed.append(
                first_line(f"{client} {subscribed_text(own) if own else 'only the common topics'}")
            )
        pulls = joined(
            refused
            for (of, _, _, code), refused in self.refused.items()
            if of == group and code != PARSE_FAILED
        )
        tally.merge(pulls)
        tally.count = len(apart)
        more = f" and {len(subscribed) - MOST_NAMED} more" if len(subscribed) > MOST_NAMED else ""
        topics = {
            part.split(" ")[0]
            for form, _ in apart.values()
            for part in form
            if part not in common and " " in part
        }
        case = tally.case(
            f"members of {group} subscribe differently: {'; '.join(subscribed[:MOST_NAMED])}{more}",
            Subject(topic=only(topics), group=group),
        )
        # The heartbeats prove it, the refused pulls show the effect.
        heartbeats = heartbeats[: MOST_EVIDENCE - MOST_PULLS]
        case.evidence = heartbeats + pulls.evidence[: MOST_EVIDENCE - len(heartbeats)]
        if pulls.count:
            case.details.append(
                f"pulls of the group were refused {times(pulls.count)}, because its subscription"
                " had just been replaced"
            )
        return case

    def _conflict(
        self,
        latest: dict[str, tuple[_Form, _Seen]],
        servers: Mapping[str, set[str]],
        context: Context,
    ) -> dict[str, tuple[_Form, _Seen]]:
        """Return the clients with different subscriptions that were alive at the same time.

        `servers`: the brokers of each client.
        """
        conflicting: dict[str, tuple[_Form, _Seen]] = {}
        ordered = sorted(latest.items(), key=lambda item: (item[1][1].first, item[0]))
        for number, (client, (form, seen)) in enumerate(ordered):
            until = self._alive_until(client, seen)
            for other, (form_of_other, seen_of_other) in ordered[number + 1 :]:
                # A rolling update replaces a member by one that subscribes differently: only both
                # at once conflict.
                if (
                    form != form_of_other
                    and seen_of_other.first <= until
                    and not _are_apart(servers[client], servers[other], context)
                ):
                    conflicting[client] = (form, seen)
                    conflicting[other] = (form_of_other, seen_of_other)
            if len(conflicting) > MAX_FORMS:
                break
        return conflicting

    def _refusals(self, reported: set[str], context: Context) -> Iterable[Case]:
        for (group, topic, endpoint, code), tally in sorted(self.refused.items()):
            client = context.client(endpoint)
            subject = Subject(topic=topic or None, group=group or None, client=client)
            if code == PARSE_FAILED:
                yield tally.case(
                    f"the broker cannot parse the filter expression of {client} of {group} for"
                    f" {topic}: pulls were refused {times(tally.count)}",
                    subject,
                )
            # Right after a start, the broker may lack the heartbeat: the next one corrects it.
            elif tally.last - tally.first >= LASTING_NS and group not in reported:
                lasted = duration(tally.last - tally.first)
                case = tally.case(
                    f"the broker refuses pulls from {client} for {lasted}: it knows no such"
                    f" subscription of {group} to {topic} ({tally.count:,} times)",
                    subject,
                )
                case.doubt("no differing heartbeats of the group were captured")
                yield case


def _are_apart(one: set[str], other: set[str], context: Context) -> bool:
    """Return whether two clients have no broker in common, as groups of the same name in clusters.

    Each member of a group sends heartbeats to all brokers of the group's retry topic. Proxies of
    one cluster know each other's members.
    """
    known = bool(one and other) and all(map(context.is_broker, one | other))
    return known and one.isdisjoint(other)


def _expression(subscription: AnnouncedSubscription) -> str:
    """Normalize an expression, regardless of the order of tags."""
    if subscription.type != TAG or OR not in subscription.expression:
        return subscription.expression
    return f" {OR} ".join(sorted({tag.strip() for tag in subscription.expression.split(OR)}))


def subscribed_text(form: Iterable[str]) -> str:
    """Format subscriptions for people: ``Orders (tags A || B)``."""
    parts = []
    for part in form:
        topic, _, rest = part.partition(" ")
        kind, _, expression = rest.partition(" ")
        if not rest:
            parts.append(part.lower())
        elif expression == "*":
            parts.append(f"{topic} (all)")
        else:
            parts.append(f"{topic} ({'tags ' if kind == TAG else 'SQL '}{expression})")
    return ", ".join(parts)


def _of_settings(row: ExchangeRecord) -> str | None:
    return WHOLE if row.request_name == TELEMETRY else None


RULE = DiagnosisRule(
    id="inconsistent-subscription",
    severity=ProblemSeverity.ERROR,
    title="Members of one consumer group subscribe to different topics or tags",
    searched=(
        "the consumer's subscription not exist",
        "the consumer's subscription not latest",
        "SUBSCRIPTION_NOT_LATEST",
        "SUBSCRIPTION_NOT_EXIST",
        "subscription inconsistent, messages lost",
        "find the consumer's subscription failed",
    ),
    proof=(
        "Heartbeats (34) of two push consumers of one group that run at the same time differ in"
        " topics, expressions, or message model; with gRPC, their settings (Telemetry). Or pulls"
        " get code 23, or get 24 or 25 for longer than a heartbeat needs to fix it."
    ),
    explanation=(
        "Messages are late, or are not delivered. A broker keeps one subscription for a group. Each"
        " heartbeat removes the topics that it lacks: pulls of other members get 24 until their own"
        " next heartbeat. Of the tags for one topic, the newest win: the broker filters all members"
        " by them, without an error. (25: the broker still has older ones.) The queues of all"
        " topics are divided among all members, including those that do not subscribe to a topic."
    ),
    advice=(
        "Use one group for one set of topics and tags: the same code in all members. Give another"
        " consumer its own group. During a deployment that changes the subscription, old and new"
        " members differ as long as both run; use a new group, or stop the old members first."
    ),
    grpc=COVERED,
    fold=SubscriptionFold,
    exchanges=(
        Exchanges(key=whole, requests={HEARTBEAT, STOPS}),
        Exchanges(key=_of_settings, with_facts=True),
        Exchanges(key=whole, requests=FETCHES, responses={PARSE_FAILED, NOT_EXIST, NOT_LATEST}),
    ),
    connections=with_commands,
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
        "A 24 or 25 that a heartbeat fixes is normal, for example after a start, and not reported."
        " Pull consumers send their expression with each pull and are not compared."
    ),
    needs={Need.HEARTBEATS},
    lasts=None,
)
