"""A broker has no master: the route has only its slaves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.quantities import counted
from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.routes import MASTER_ID, RoutedBroker
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import REMEMBERED, WRITE, AnsweredRoute, answered_route
from ...context import Context, Need
from ...keys import ROUTE, SUCCESS, has_room, is_own_topic, keep_least, state_in, whole, with_remark
from ...names import called
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    clock,
    clock_after,
    end_of,
    period,
    shown,
)
from ...refusals import Refusals
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold
from ...spells import HOUR, SpellTally, Times
from ..refused.sendback_failed import NO_MASTER

MAX_BROKERS: Final = 5000
MAX_SLAVES: Final = 16

_BACK_ADVICE: Final = (
    "Find out from the master's log why it stopped. enableSlaveActingMaster, with"
    " supportActingMaster on the NameServers (5.x, both default false), lets a slave do some of its"
    " work meanwhile; a topic with queues on two brokers keeps sends"
    " working. (A planned restart needs no action.)"
)
_CHANGED_ADVICE: Final = (
    "Check in the controller's log and the old master's log why the master changed. Messages that"
    " only the old master had may be missing. (An intended switch needs no action.)"
)


class _Broker:
    """Routes of one broker."""

    __slots__ = ("closed", "masters", "proofs", "slaves", "tellers", "without")

    def __init__(self) -> None:
        self.without = SpellTally()
        self.slaves: set[str] = set()
        """addresses with an id other than 0"""
        self.masters: dict[str, Times] = {}
        """address with id 0 -> times of its routes"""
        self.tellers: dict[str, set[str]] = {}
        """master -> NameServers that listed it"""
        self.proofs: dict[str, Evidence] = {}
        """master -> the first route with it"""
        self.closed: dict[str, Times] = {}
        """the same for routes in which the topic is not writable: perhaps a slave acting as master
        """

    def absences(self) -> list[Tally]:
        """Return routes without a master, split at routes with one."""
        known = self.times()
        absences: list[Tally] = []
        for tally in self.without.spells():
            if absences and not any(absences[-1].last < time < tally.first for time in known):
                absences[-1].merge(tally)
            else:
                absences.append(tally)
        return absences

    def times(self) -> list[int]:
        """Return the times of routes with a master, sorted."""
        masters = [*self.masters.values()]
        masters += [times for address, times in self.closed.items() if address not in self.slaves]
        return sorted(time for times in masters for time in times)


class _RouteState(NamedTuple):
    """The state that further equal routes update: only their time is new."""

    since: int
    times: list[Times]


class _SentBack(Refusals):
    per_broker = True

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        return f"{broker} has no master: it did not accept {self.what}"


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.brokers: dict[str, _Broker] = {}
        self.sent_back = _SentBack(key)
        self._same: dict[tuple[AnsweredRoute, str, bool], _RouteState] = {}
        """route, NameServer, whether it is a system topic -> state of the earlier equal route"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code != ROUTE:
            self.sent_back.add_exchange(row)
            return
        time, route = row.response_time or 0, answered_route(row)
        place = route, row.server_address, is_own_topic(row.topic)
        same = self._same.get(place)
        # An earlier route may be the first one of a master, which is its evidence.
        if same is not None and time > same.since:
            for times in same.times:
                times.add(time)
            return
        every = [self._take(row, route, broker, time) for broker in route.brokers if broker.ids]
        states = [state for state in every if state is not None]
        if len(states) == len(every):
            if len(self._same) >= REMEMBERED:
                self._same.clear()
            since = max((state.since for state in states), default=time)
            self._same[place] = _RouteState(
                since, [times for state in states for times in state.times]
            )

    def _take(
        self, row: ExchangeRecord, route: AnsweredRoute, routed: RoutedBroker, time: int
    ) -> _RouteState | None:
        """Add a route of one broker; return the state that later equal routes update.

        None if their time alone is not enough.
        """
        broker = state_in(self.brokers, routed.name, _Broker, MAX_BROKERS)
        if broker is None:
            return None
        addresses = {address for name, address in route.named if name == routed.name}
        as_master = addresses - route.slaves.keys()
        _keep(broker.slaves, addresses - as_master)
        # Each of these routes is evidence: no shortcut for further equal ones.
        if MASTER_ID not in routed.ids:
            what = (
                f"route of {row.topic}: {routed.name} with ids {', '.join(routed.ids)}, no master"
            )
            broker.without.at(end_of(row)).add(shown(row, what))
            return None
        # A NameServer presents an acting slave as id 0, but without write permission.
        closed = not (routed.perm or 0) & WRITE and not is_own_topic(row.topic)
        masters = broker.closed if closed else broker.masters
        _note(masters, as_master, time)
        for address in sorted(as_master):
            if has_room(broker.tellers, address, MAX_SLAVES):
                _keep(broker.tellers.setdefault(address, set()), {row.server_address})
            known = broker.proofs.get(address)
            if known is None or end_of(row) <= known.time:
                what = f"route of {row.topic}: {address} is the master of {routed.name}"
                keep_least(broker.proofs, address, shown(row, what), MAX_SLAVES)
        proofs = [broker.proofs[address].time for address in as_master if address in broker.proofs]
        return _RouteState(
            max(proofs, default=time),
            [masters[address] for address in as_master if address in masters],
        )

    def cases(self, context: Context) -> Iterable[Case]:
        refused = list(self.sent_back.cases(context))
        for name, broker in sorted(self.brokers.items()):
            without = broker.absences()
            if not without and (change := _change(name, broker)) is not None:
                yield change
            for tally in without:
                case = _case(name, broker, tally)
                near = [
                    refusal
                    for refusal in refused
                    if refusal.subject.broker == name
                    and refusal.first_time <= tally.last + HOUR
                    and refusal.last_time >= tally.first - HOUR
                ]
                for refusal in near:
                    # Refusals in a time without a master are part of that problem.
                    refused.remove(refusal)
                if near:
                    count = sum(refusal.count for refusal in near)
                    case.details.append(
                        f"{counted(count, 'message')} returned by consumers were refused"
                    )
                yield case
        yield from refused


def _keep(kept: set[str], more: set[str]) -> None:
    kept.update(sorted(more)[: max(0, MAX_SLAVES - len(kept))])


def _note(kept: dict[str, Times], addresses: set[str], time: int) -> None:
    for address in sorted(addresses):
        if has_room(kept, address, MAX_SLAVES):
            kept.setdefault(address, Times()).add(time)


def _case(name: str, broker: _Broker, tally: Tally) -> Case:
    known = broker.times()
    back = next((time for time in known if time > tally.last), None)
    if back is None:
        begin = f"has no master since {clock(tally.first)} UTC"
    elif back - tally.last > HOUR:  # no request in between
        until = clock_after(tally.first, tally.last)
        begin = f"had no master from {clock(tally.first)} UTC until at least {until}"
    else:
        begin = f"had no master from {period(tally.first, back)} UTC"
    acting = set(broker.closed) & broker.slaves
    if acting:
        verb = "acts as master" if len(acting) == 1 else "act as masters"
        does = f"its {called('slave', acting)} {verb}"
    else:
        can, fail = ("can", "fail") if back is None else ("could", "failed")
        slaves = called("slave", broker.slaves)
        does = f"consumers {can} read from its {slaves}; sends to {name} {fail}"
    case = tally.case(
        f"{name} {begin}: {does}",
        Subject(broker=name),
    )
    if back is not None:
        case.advice = _BACK_ADVICE
    case.details = [f"routes without a master: {tally.count:,}"]
    before = [time for time in known if time < tally.first]
    if before:
        case.details.append(f"a route of {clock(before[-1])} UTC still had its master")
    return case


def _route(row: ExchangeRecord) -> str | None:
    if row.missing_bytes or row.server_address in answered_route(row).addresses:
        return None  # incomplete capture; or a proxy, which gives its own address for every broker
    return whole(row)


def _change(name: str, broker: _Broker) -> Case | None:
    """Return the change of the master from one address to another, or None."""
    ordered = sorted((min(times), max(times), address) for address, times in broker.masters.items())
    # Periods that overlap are two brokers of one name (`broker-name-twice`).
    if len(ordered) != 2 or ordered[0][1] >= ordered[1][0]:
        return None
    (_, last, old), (first, _, new) = ordered
    # One NameServer lists both only if both are of one cluster.
    if broker.tellers.get(old, set()).isdisjoint(broker.tellers.get(new, ())):
        return None  # NameServers of two clusters, each with a broker of that name
    tally = Tally.of(broker.proofs[address] for address in (old, new))
    case = tally.case(
        f"{name} changed its master from {old} to {new} between {clock(last)} and"
        f" {clock_after(last, first)} UTC",
        Subject(broker=name),
    )
    case.count = 1
    case.severity = ProblemSeverity.INFO
    case.advice = _CHANGED_ADVICE
    return case


RULE = DiagnosisRule(
    id="no-master",
    severity=ProblemSeverity.ERROR,
    title="A broker has no master",
    searched=(
        NO_MASTER,
        "The broker does not exist",
        "slave cannot become master",
        "The broker[X] not exist",
        "master node does not exist",
        "CODE: 10003",
        "the broker [X] does not exist",
        "broker: X address not found",
        "The broker service address not found",
    ),
    proof=(
        "Routes (105) name a broker without an address of id 0; or the response to a returned"
        " message (36) has the remark `no master available along with`. Reported as info: routes"
        " show one address under id 0 and later another one."
    ),
    explanation=(
        "Brokers with one name are a master (id 0) and its slaves. Only the master accepts"
        " messages. Routes have no master if it died, was stopped, or cannot reach the NameServer."
        " Producers then skip this broker; consumers continue to read from a slave what was"
        " replicated before. Messages that only the master has are delivered when it is back."
    ),
    advice=(
        "Start the master again, and check its log to find out why it stopped. Without a controller"
        " (or DLedger), no slave becomes master automatically. enableSlaveActingMaster, with"
        " supportActingMaster on the NameServers (5.x, both default false), lets a slave take over"
        " some functions. slaveReadEnable (default false)"
        " lets consumers read from a slave while the master is alive."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_route, requests={ROUTE}, responses={SUCCESS}),
        Exchanges(
            key=with_remark(NO_MASTER, key=whole),
            requests={RequestCode.CONSUMER_SEND_MSG_BACK},
            responses={ResponseCode.SYSTEM_ERROR},
        ),
    ),
    needs={Need.ROUTES},
    consequence_of={"broker-gone", "broker-name-twice"},
)
