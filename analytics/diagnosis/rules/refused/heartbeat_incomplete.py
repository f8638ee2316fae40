"""A broker does not know the subscriptions of a group: heartbeats of version 2 omit them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES
from dissectors.remoting.codes import ResponseCode
from dissectors.remoting.row_facts.heartbeats import consumers_in, subscriptions_in
from dissectors.remoting.row_facts.names import MAX_FACTS
from dissectors.rows.record import ExchangeRecord

from ...context import Context, Need
from ...keys import HEARTBEAT, Add, Flow, keep_least, whole
from ...names import listed, only
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    ProblemState,
    Subject,
    Tally,
    asked,
    clock,
    clock_after,
    duration,
    end_of,
    shown,
)
from ...rule import DiagnosisRule, Exchanges, Fold

LEAST: Final = 2
"""refused pulls after such a heartbeat: one may have overtaken it"""
MAX_PLACES: Final = 50_000
"""maximum groups and connections with heartbeats"""
MAX_PULLS: Final = 50_000
"""maximum refused pulls"""
_UNKNOWN: Final = int(ResponseCode.SUBSCRIPTION_NOT_EXIST)
_Place = tuple[str, str, str]
"""group, and `address:port` of the client and the broker: a group on one connection"""


class _Pull(NamedTuple):
    """A refused pull."""

    time: int
    topic: str
    evidence: Evidence


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._short: dict[_Place, Evidence] = {}
        """first heartbeat with the group but without its subscriptions"""
        self._whole: dict[_Place, int] = {}
        """time of the first heartbeat with its subscriptions"""
        self._refused: dict[_Place, list[_Pull]] = {}
        self._pulls = 0

    def adder_of(self, flow: Flow) -> Add:
        return self._add_beats if flow.request_code == HEARTBEAT else self._add_pulls

    def _add_beats(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            # A list that reached the limit may lack subscriptions that the heartbeat had.
            if row.response_time is None or len(row.facts) >= MAX_FACTS:
                continue
            subscribed = {subscription.group for subscription in subscriptions_in(row.facts)}
            for group in consumers_in(row.facts):
                place = group.name, row.client_address, row.server_address
                if group.name in subscribed:
                    keep_least(self._whole, place, row.response_time, MAX_PLACES)
                else:
                    evidence = asked(row, f"HEART_BEAT of {group.name} without subscriptions")
                    keep_least(self._short, place, evidence, MAX_PLACES)

    def _add_pulls(self, rows: Sequence[ExchangeRecord]) -> None:
        for row in rows:
            if self._pulls < MAX_PULLS:
                self._pulls += 1
                place = row.group or "", row.client_address, row.server_address
                pull = _Pull(end_of(row), row.topic or "", shown(row))
                self._refused.setdefault(place, []).append(pull)

    def cases(self, context: Context) -> Iterable[Case]:
        for place, first in sorted(self._short.items(), key=lambda item: item[0]):
            known_since = self._whole.get(place)
            if known_since is not None and known_since <= first.time:
                continue  # the broker knows them from this connection
            pulls = sorted(
                pull
                for pull in self._refused.get(place, [])
                if pull.time >= first.time and (known_since is None or pull.time <= known_since)
            )
            if len(pulls) >= LEAST:
                yield _case(place, first, pulls, known_since, context)


def _case(
    place: _Place, beat: Evidence, pulls: list[_Pull], named_again: int | None, context: Context
) -> Case:
    group, client, address = place
    broker = context.broker(address)
    client_name = context.client(client)
    topics = {pull.topic for pull in pulls}
    tally = Tally.of([beat, *(pull.evidence for pull in pulls)])
    until = pulls[-1].time if named_again is None else named_again
    case = tally.case(
        f"{broker} does not know the subscriptions of {group}: heartbeats of version 2 of"
        f" {client_name} omit them, and it refused {counted(len(pulls), 'pull')} of"
        f" {listed(topics)} from {clock(pulls[0].time)} to {clock_after(pulls[0].time, until)} UTC"
        f" ({duration(until - pulls[0].time)})",
        Subject(broker=broker, topic=only(topics), group=group, client=client_name),
    )
    case.count = len(pulls)
    case.first_time = pulls[0].time
    if named_again is not None:
        case.details.append(f"a heartbeat of {clock(named_again)} UTC names them again")
        case.state = ProblemState.OVER
    return case


RULE = DiagnosisRule(
    id="heartbeat-incomplete",
    severity=ProblemSeverity.ERROR,
    title="A broker does not know the subscriptions that heartbeats of version 2 omit",
    searched=(
        "useHeartbeatV2",
        "com.rocketmq.heartbeat.v2",
        "the consumer's subscription not exist after broker restart",
        "SUBSCRIPTION_NOT_EXIST",
        "get consumer id list failed",
    ),
    proof=(
        "The first heartbeats of a connection name a group without its subscriptions. Afterwards,"
        " the broker refuses two or more pulls of that group with code 24 (SUBSCRIPTION_NOT_EXIST)."
    ),
    explanation=(
        "With heartbeats of version 2, a client sends its subscriptions once and then omits them"
        " until they change. A broker that restarted, or a new one at the same address, does not"
        " know them: it responds to the short heartbeats with SUCCESS and refuses the pulls. The"
        " group gets no messages from this broker until a rebalance makes the client send a full"
        " heartbeat."
    ),
    advice=(
        "Turn heartbeats of version 2 off in the clients (useHeartbeatV2, or"
        " -Dcom.rocketmq.heartbeat.v2; default false). Restarting the consumers fixes it"
        " immediately."
    ),
    grpc="Not covered: gRPC clients have no such heartbeats: their proxy keeps the subscriptions.",
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests={HEARTBEAT}, with_facts=True, of_flow=True),
        Exchanges(key=whole, requests=FETCHES, responses={_UNKNOWN}, of_flow=True),
    ),
    limits=(
        "If the first heartbeats of a connection were not captured, the rule uses the captured"
        " ones."
    ),
    needs={Need.HEARTBEATS},
    consequence_of={"broker-gone", "no-master"},
)
