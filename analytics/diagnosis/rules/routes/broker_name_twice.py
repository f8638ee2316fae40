"""Two brokers at different addresses register under one name and one id.

Rules: a NameServer keeps one address for a name and id, that of the last registration. Two brokers
live at once where both register over connections that overlap in time; they have one id where a
route that is asked for meanwhile names one of them only. A slave has another id, and stands beside
its master. RocketMQ: RouteInfoManager.registerBroker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dissectors.remoting.codes import RequestCode, ResponseCode
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import REMEMBERED, AnsweredRoute, answered_route
from ...context import Context
from ...keys import Add, Flow, flow_of, whole
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
    place_of,
    shown,
)
from ...refusals import listed
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold

MAX_NAMES: Final = 2000
"""names of brokers that are looked at"""
MAX_CONNECTIONS: Final = 64
"""registering connections of one name"""
MAX_ROUTES: Final = 16
"""different routes of one name"""
MAX_TIMES: Final = 500
"""times of such a route that are kept"""
SETTLED: Final = 1_000_000_000
"""ns from a registration after which it counts in a route"""
_ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
_REGISTER: Final = int(RequestCode.REGISTER_BROKER)
_SUCCESS: Final = int(ResponseCode.SUCCESS)


class _Registered:
    """The registrations of one broker over one connection."""

    __slots__ = ("address", "count", "first", "last")

    def __init__(self, address: str, one: Evidence) -> None:
        self.address = address
        self.first = self.last = one
        self.count = 0

    def add(self, one: Evidence) -> None:
        """Take a registration."""
        self.count += 1
        if place_of(one) < place_of(self.first):
            self.first = one
        if place_of(one) > place_of(self.last):
            self.last = one


class _Named:
    """What one NameServer is told, and tells, of one name."""

    def __init__(self) -> None:
        self.registered: dict[tuple[str, str], _Registered] = {}
        """address and end of the connection"""
        self.routes: dict[frozenset[str], dict[int, ExchangeRecord]] = {}
        """addresses of that name -> time -> a route"""

    def twice(self) -> dict[str, Tally]:
        """Return addresses that are registered at once though routes name one of them only."""
        found: dict[str, Tally] = {}
        every = sorted(self.registered.values(), key=lambda one: place_of(one.first))
        for number, one in enumerate(every):
            for other in every[number + 1 :]:
                if other.first.time > one.last.time:
                    break  # those that follow begin later still
                if one.address != other.address and (route := self._route(one, other)) is not None:
                    for each in (one, other):
                        tally = found.setdefault(each.address, Tally())
                        tally.add(each.first, count=each.count, last=each.last.time)
                        tally.add(each.last, count=0)
                        tally.add(route, count=0)
        return found

    def _route(self, one: _Registered, other: _Registered) -> Evidence | None:
        """Return the first route while both registered that names one of them without the other."""
        since = max(one.first.time, other.first.time) + SETTLED
        until = min(one.last.time, other.last.time)
        both = {one.address, other.address}
        proofs: list[Evidence] = []
        for addresses, times in self.routes.items():
            meanwhile = [time for time in times if since <= time <= until]
            if meanwhile and len(both & addresses) == 1:
                row = times[min(meanwhile)]
                proofs.append(shown(row, f"route of {row.topic}: it is at {listed(addresses)}"))
        return min(proofs, key=place_of, default=None)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._named: dict[tuple[str, str], _Named] = {}
        """NameServer and name of a broker"""
        self._told: dict[tuple[AnsweredRoute, str], list[dict[int, ExchangeRecord]]] = {}

    def add_exchange(self, row: ExchangeRecord) -> None:
        self.adder_of(flow_of(row))((row,))

    def adder_of(self, flow: Flow) -> Add:
        """Return what takes registrations, or the routes that one client got of one topic."""
        namesrv, registers = flow.responder, flow.request_code == _REGISTER

        def add(rows: Sequence[ExchangeRecord]) -> None:
            for row in rows:
                if registers:
                    self._take_registration(row)
                    continue
                for times in self._times_of(namesrv, row):
                    time = end_of(row)
                    if len(times) < MAX_TIMES and time not in times:
                        times[time] = row

        return add

    def _times_of(self, namesrv: str, row: ExchangeRecord) -> list[dict[int, ExchangeRecord]]:
        """Return what keeps the times of a route, for each name in it."""
        route = answered_route(row)
        found = self._told.get((route, namesrv))
        if found is not None:
            return found
        by_name: dict[str, set[str]] = {}
        for name, address in route.named:
            by_name.setdefault(name, set()).add(address)
        found = []
        for name, several in by_name.items():
            named, addresses = self._of(namesrv, name), frozenset(several)
            if named is None:
                continue
            if addresses not in named.routes and len(named.routes) >= MAX_ROUTES:
                most = max(named.routes, key=sorted)
                if sorted(addresses) > sorted(most):
                    continue
                del named.routes[most]
            found.append(named.routes.setdefault(addresses, {}))
        if len(self._told) >= REMEMBERED:
            self._told.clear()
        self._told[route, namesrv] = found
        return found

    def _take_registration(self, row: ExchangeRecord) -> None:
        name, _, address = row.brokers[0].rpartition("=") if row.brokers else ("", "", "")
        named = self._of(row.responder, name) if name else None
        if named is None or row.request_time is None:
            return
        one = shown(row, f"{name} registers with {address}")
        place = address, row.requester
        known = named.registered.get(place)
        if known is None:
            if len(named.registered) >= MAX_CONNECTIONS:
                # The least stay, so that the order of rows changes nothing.
                most = max(named.registered)
                if place > most:
                    return
                del named.registered[most]
            known = named.registered[place] = _Registered(address, one)
        known.add(one)

    def _of(self, namesrv: str, name: str) -> _Named | None:
        found = self._named.get((namesrv, name))
        if found is None and len(self._named) < MAX_NAMES:
            found = self._named[namesrv, name] = _Named()
        return found

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case for each name that brokers have at once."""
        by_name: dict[str, dict[str, Tally]] = {}
        for (_, name), named in sorted(self._named.items()):
            for address, tally in named.twice().items():
                by_name.setdefault(name, {}).setdefault(address, Tally()).merge(tally)
        for name, tallies in by_name.items():
            tally = Tally()
            for one in tallies.values():
                tally.merge(one)
            case = tally.case(
                f"{len(tallies)} brokers are registered as {name} with one id at once:"
                f" {listed(tallies)}; clients are told of one of them, now this and now that",
                Subject(broker=name),
            )
            case.details = [
                f"{address} registered {one.count:,} times from {clock(one.first)} to"
                f" {clock_after(one.first, one.last)} UTC"
                for address, one in sorted(tallies.items())
            ]
            yield case


RULE = DiagnosisRule(
    id="broker-name-twice",
    severity=ProblemSeverity.ERROR,
    title="Two brokers at different addresses have one name and one id",
    searched=(
        "same brokerName",
        "brokerName duplicate",
        "broker registered address changes",
        "two masters with the same brokerName",
    ),
    proof=(
        "Two addresses register (103) one broker name over connections that live at the same time,"
        " and a route meanwhile names only one of them. With different ids it would name both."
    ),
    explanation=(
        "A NameServer knows a broker by its name and id, and keeps the address that registered"
        " last. Two brokers with the same name and id take the place of each other every 30 s."
        " Clients that ask at one moment go to one broker, those that ask later to the other."
        " Messages are spread over both, and consumers find queues with foreign offsets. What is"
        " stored on the broker that the route omits is not consumed."
    ),
    advice=(
        "Give each master a brokerName of its own (default: the host's name; often copied with"
        " broker.conf). A slave has the name of its master and a brokerId above 0. The messages on"
        " both brokers stay: let consumers read each of them under its new name."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests=frozenset((_REGISTER,)), of_flow=True),
        Exchanges(
            key=whole,
            requests=frozenset((_ROUTE,)),
            responses=frozenset((_SUCCESS,)),
            of_flow=True,
        ),
    ),
    limits=(
        "It is seen only where both what brokers register and what clients ask the NameServer was"
        " captured."
    ),
    needs=frozenset((Need.ROUTES,)),
    lasts=None,
)
