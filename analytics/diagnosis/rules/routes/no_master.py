"""A broker has no master: the route names its slaves only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.remoting.row_facts.routes import MASTER_ID, RoutedBroker
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import REMEMBERED, AnsweredRoute, answered_route
from ...context import Context
from ...keys import whole
from ...need import Need
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
    place_of,
    shown,
)
from ...refusals import Refusals, counted, listed
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold
from ...spells import HOUR, SpellTally
from ...topics import is_own_topic
from ..refused.no_permission import WRITE
from ..refused.sendback_failed import NO_MASTER

MAX_BROKERS: Final = 5000
MAX_SLAVES: Final = 16
MAX_TIMES: Final = 1000
"""routes with a master of which the time is kept"""
_ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
_SUCCESS: Final = int(ResponseCode.SUCCESS)

_BACK_ADVICE: Final = (
    "Look in the master's log why it stopped. enableSlaveActingMaster (5.x, default false) lets a"
    " slave do some of its work meanwhile; a topic with queues on two brokers keeps sends working."
    " (A planned restart needs no action.)"
)
_CHANGED_ADVICE: Final = (
    "Check in the controller's log and the old master's log why the master changed. Messages that"
    " only the old master had may be missing. (A switch on purpose needs no action.)"
)


class _Broker:
    """What routes say of one broker."""

    __slots__ = ("closed", "masters", "proofs", "slaves", "tellers", "without")

    def __init__(self) -> None:
        self.without = SpellTally()
        self.slaves: set[str] = set()
        """addresses that had another id than 0"""
        self.masters: dict[str, set[int]] = {}
        """address with id 0 -> times of its routes"""
        self.tellers: dict[str, set[str]] = {}
        """master -> NameServers that named it"""
        self.proofs: dict[str, Evidence] = {}
        """master -> the first route that shows it"""
        self.closed: dict[str, set[int]] = {}
        """the same, where the topic could not be written: perhaps a slave that acts as master"""

    def note_proof(self, address: str, proof: Evidence) -> None:
        """Keep the first route that shows a master."""
        known = self.proofs.get(address)
        if known is None:
            if len(self.proofs) < MAX_SLAVES:
                self.proofs[address] = proof
        elif place_of(proof) < place_of(known):
            self.proofs[address] = proof

    def absences(self) -> list[Tally]:
        """Return routes without a master, parted where routes with one came in between."""
        known = self.times()
        found: list[Tally] = []
        for tally in self.without.spells():
            if found and not any(found[-1].last < time < tally.first for time in known):
                found[-1].merge(tally)
            else:
                found.append(tally)
        return found

    def times(self) -> list[int]:
        """Return the times of routes with a master, sorted."""
        masters = [*self.masters.values()]
        masters += [times for address, times in self.closed.items() if address not in self.slaves]
        return sorted(time for times in masters for time in times)


class _Told(NamedTuple):
    """What routes that say the same add, later than all that is kept of them: their time."""

    since: int
    times: list[set[int]]


class _SentBack(Refusals):
    per_broker = True

    def title(self, context: Context) -> str:
        broker = context.broker(self.key)
        return f"{broker} has no master: it did not take back {self.what}"


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.brokers: dict[str, _Broker] = {}
        self.sent_back = _SentBack(key)
        self._same: dict[tuple[AnsweredRoute, str, bool], _Told] = {}
        """route, NameServer, whether the topic is RocketMQ's own -> what it said before"""

    def add_exchange(self, row: ExchangeRecord) -> None:
        if row.request_code != _ROUTE:
            self.sent_back.add_exchange(row)
            return
        time, route = row.response_time or 0, answered_route(row)
        place = route, row.responder, is_own_topic(row.topic)
        same = self._same.get(place)
        if same is not None and time > same.since:
            for times in same.times:
                if len(times) < MAX_TIMES:
                    times.add(time)
            return
        every = [self._take(row, route, one, time) for one in route.brokers if one.ids]
        told = [one for one in every if one is not None]
        if len(told) == len(every):
            if len(self._same) >= REMEMBERED:
                self._same.clear()
            since = max((one.since for one in told), default=time)
            self._same[place] = _Told(since, [times for one in told for times in one.times])

    def _take(
        self, row: ExchangeRecord, route: AnsweredRoute, one: RoutedBroker, time: int
    ) -> _Told | None:
        """Take what a route says of one broker; return what a later one that is the same adds.

        None: that is not known by its time alone.
        """
        broker = self._broker(one.name)
        if broker is None:
            return None
        addresses = {address for name, address in route.named if name == one.name}
        found = addresses - route.slaves.keys()
        _keep(broker.slaves, addresses - found)
        if MASTER_ID not in one.ids:
            what = f"route of {row.topic}: {one.name} with ids {', '.join(one.ids)}, no master"
            broker.without.at(end_of(row)).add(shown(row, what))
            return None
        closed = not (one.perm or 0) & WRITE and not is_own_topic(row.topic)
        masters = broker.closed if closed else broker.masters
        _note(masters, found, time)
        for address in sorted(found):
            if address in broker.tellers or len(broker.tellers) < MAX_SLAVES:
                _keep(broker.tellers.setdefault(address, set()), {row.responder})
            known = broker.proofs.get(address)
            if known is None or end_of(row) <= known.time:
                what = f"route of {row.topic}: {address} is the master of {one.name}"
                broker.note_proof(address, shown(row, what))
        proofs = [broker.proofs[address].time for address in found if address in broker.proofs]
        return _Told(max(proofs, default=time), [masters[one] for one in found if one in masters])

    def cases(self, context: Context) -> Iterable[Case]:
        refused = list(self.sent_back.cases(context))
        for name, broker in sorted(self.brokers.items()):
            without = broker.absences()
            if not without and (change := _change(name, broker)) is not None:
                yield change
            for tally in without:
                case = _case(name, broker, tally)
                near = [
                    one
                    for one in refused
                    if one.subject.broker == name
                    and one.first_time <= tally.last + HOUR
                    and one.last_time >= tally.first - HOUR
                ]
                for one in near:
                    refused.remove(one)
                if near:
                    count = sum(one.count for one in near)
                    case.details.append(
                        f"{counted(count, 'message')} sent back by consumers not taken"
                    )
                yield case
        yield from refused

    def _broker(self, name: str) -> _Broker | None:
        found = self.brokers.get(name)
        if found is None and len(self.brokers) < MAX_BROKERS:
            found = self.brokers[name] = _Broker()
        return found


def _keep(kept: set[str], more: set[str]) -> None:
    kept.update(sorted(more)[: max(0, MAX_SLAVES - len(kept))])


def _note(kept: dict[str, set[int]], addresses: set[str], time: int) -> None:
    for address in sorted(addresses):
        if address in kept or len(kept) < MAX_SLAVES:
            times = kept.setdefault(address, set())
            if len(times) < MAX_TIMES:
                times.add(time)


def _case(name: str, broker: _Broker, tally: Tally) -> Case:
    known = broker.times()
    back = next((time for time in known if time > tally.last), None)
    if back is None:
        begin = f"has no master since {clock(tally.first)} UTC"
    elif back - tally.last > HOUR:  # nobody asked meanwhile
        until = clock_after(tally.first, tally.last)
        begin = f"had no master from {clock(tally.first)} UTC at least to {until}"
    else:
        begin = f"had no master from {period(tally.first, back)} UTC"
    acting = set(broker.closed) & broker.slaves
    slaves = listed(broker.slaves)
    if acting:
        does = f"its slave {listed(acting)} acts as master"
    else:
        can, fail = ("can", "fail") if back is None else ("could", "failed")
        does = f"consumers {can} read from its slave {slaves}, sends to it {fail}"
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
    if row.missing_bytes or row.responder in answered_route(row).addresses:
        return None  # not all was captured; or a proxy, which names itself for every broker
    return whole(row)


def _change(name: str, broker: _Broker) -> Case | None:
    """Return that one address was the master first and another one later; None: it was not so."""
    ordered = sorted((min(times), max(times), address) for address, times in broker.masters.items())
    if len(ordered) != 2 or ordered[0][1] >= ordered[1][0]:
        return None
    (_, last, old), (first, _, new) = ordered
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


def _sent_back(row: ExchangeRecord) -> str | None:
    return whole(row) if NO_MASTER in (row.remark or "") else None


RULE = DiagnosisRule(
    id="no-master",
    severity=ProblemSeverity.ERROR,
    title="A broker has no master",
    searched=(
        NO_MASTER,
        "The broker does not exist",
        "slave cannot become master",
    ),
    proof=(
        "Routes (105) name a broker without an address of id 0; or a message sent back (36) is"
        " answered with `no master available along with`. Information only: routes show one address"
        " under id 0 and later another one."
    ),
    explanation=(
        "Brokers of one name are a master (id 0) and its slaves. Only the master takes messages."
        " The NameServer has lost the master: it died, was stopped, or cannot reach the NameServer."
        " Producers leave this broker out; consumers go on at a slave, which has what was copied"
        " before. Messages that only the master has come when it is back."
    ),
    advice=(
        "Start the master again, and look in its log why it stopped. Without a controller (or"
        " DLedger) no slave becomes master by itself. enableSlaveActingMaster (5.x, default false)"
        " lets a slave do some of its work. slaveReadEnable (default false) lets consumers read"
        " from a slave while the master lives."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(key=_route, requests=frozenset((_ROUTE,)), responses=frozenset((_SUCCESS,))),
        Exchanges(
            key=_sent_back,
            requests=frozenset((int(RequestCode.CONSUMER_SEND_MSG_BACK),)),
            responses=frozenset((int(ResponseCode.SYSTEM_ERROR),)),
        ),
    ),
    needs=frozenset((Need.ROUTES,)),
    consequence_of=frozenset(("broker-gone", "broker-name-twice")),
)
