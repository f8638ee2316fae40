"""Two brokers at different addresses register under one name and one id.

Rules: a NameServer keeps one address per name and id, that of the last registration. Two brokers
run at once if both register over connections that overlap in time; they have one id if a route
during that time has only one of them. A slave has another id, and is listed with its master.
RocketMQ: RouteInfoManager.registerBroker.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final

from dissectors.remoting.codes import RequestCode
from dissectors.rows.record import ExchangeRecord

from ...answered_routes import REMEMBERED, AnsweredRoute, answered_route
from ...context import Context, Need
from ...keys import ROUTE, SUCCESS, Add, Flow, state_in, whole
from ...names import listed
from ...problem import (
    Case,
    Evidence,
    ProblemSeverity,
    Subject,
    Tally,
    clock,
    clock_after,
    end_of,
    shown,
)
from ...rule import BEHIND_PROXY, DiagnosisRule, Exchanges, Fold
from ...spells import joined

MAX_NAMES: Final = 2000
"""maximum broker names"""
MAX_CONNECTIONS: Final = 64
"""maximum registering connections of one name"""
MAX_ROUTES: Final = 16
"""maximum different routes of one name"""
MAX_TIMES: Final = 500
"""maximum times kept per route"""
SETTLED: Final = 1_000_000_000
"""ns after which a registration takes effect in routes"""
_REGISTER: Final = int(RequestCode.REGISTER_BROKER)


class _Registered:
    """The registrations of one broker over one connection."""

    __slots__ = ("address", "count", "first", "last")

    def __init__(self, address: str, evidence: Evidence) -> None:
        self.address = address
        self.first = self.last = evidence
        self.count = 0

    def add(self, evidence: Evidence) -> None:
        """Add a registration."""
        self.count += 1
        self.first = min(self.first, evidence)
        self.last = max(self.last, evidence)


class _Named:
    """Registrations and routes of one broker name at one NameServer."""

    def __init__(self) -> None:
        self.registered: dict[tuple[str, str], _Registered] = {}
        """address and end of the connection"""
        self.routes: dict[frozenset[str], dict[int, ExchangeRecord]] = {}
        """addresses of that name -> time -> a route"""

    def twice(self) -> dict[str, Tally]:
        """Return addresses registered at once although routes have only one of them."""
        tallies: dict[str, Tally] = {}
        every = sorted(self.registered.values(), key=attrgetter("first"))
        for number, registered in enumerate(every):
            for other in every[number + 1 :]:
                if other.first.time > registered.last.time:
                    break  # the following ones begin even later
                if (
                    # Equal: one broker on two connections, as after a reconnect.
                    registered.address != other.address
                    and (route := self._route(registered, other)) is not None
                ):
                    for each in (registered, other):
                        tally = tallies.setdefault(each.address, Tally())
                        tally.add(each.first, count=each.count, last=each.last.time)
                        tally.add(each.last, count=0)
                        tally.add(route, count=0)
        return tallies

    def _route(self, one: _Registered, other: _Registered) -> Evidence | None:
        """Return the first route during both registrations with exactly one of the addresses."""
        since = max(one.first.time, other.first.time) + SETTLED
        until = min(one.last.time, other.last.time)
        both = {one.address, other.address}
        proofs: list[Evidence] = []
        for addresses, times in self.routes.items():
            meanwhile = [time for time in times if since <= time <= until]
            # With different ids, as master and slave, a route has both.
            if meanwhile and len(both & addresses) == 1:
                row = times[min(meanwhile)]
                proofs.append(shown(row, f"route of {row.topic}: it is at {listed(addresses)}"))
        return min(proofs, default=None)


class _Fold(Fold):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._named: dict[tuple[str, str], _Named] = {}
        """NameServer and broker name"""
        self._routed: dict[tuple[AnsweredRoute, str], list[dict[int, ExchangeRecord]]] = {}

    def adder_of(self, flow: Flow) -> Add:
        """Return the function that adds registrations, or routes of one topic to one client."""
        namesrv, registers = flow.server_address, flow.request_code == _REGISTER

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
        """Return the time lists of a route, one per broker name in it."""
        route = answered_route(row)
        times = self._routed.get((route, namesrv))
        if times is not None:
            return times
        by_name: dict[str, set[str]] = {}
        for name, address in route.named:
            by_name.setdefault(name, set()).add(address)
        times = []
        for name, several in by_name.items():
            named = state_in(self._named, (namesrv, name), _Named, MAX_NAMES)
            addresses = frozenset(several)
            if named is None:
                continue
            if addresses not in named.routes and len(named.routes) >= MAX_ROUTES:
                # The smallest stay, so the order of rows does not matter.
                most = max(named.routes, key=sorted)
                if sorted(addresses) > sorted(most):
                    continue
                del named.routes[most]
            times.append(named.routes.setdefault(addresses, {}))
        if len(self._routed) >= REMEMBERED:
            self._routed.clear()
        self._routed[route, namesrv] = times
        return times

    def _take_registration(self, row: ExchangeRecord) -> None:
        name, _, address = row.brokers[0].rpartition("=") if row.brokers else ("", "", "")
        if not name or row.request_time is None:
            return
        named = state_in(self._named, (row.server_address, name), _Named, MAX_NAMES)
        if named is None:
            return
        evidence = shown(row, f"{name} registers with {address}")
        place = address, row.client_address
        known = named.registered.get(place)
        if known is None:
            if len(named.registered) >= MAX_CONNECTIONS:
                # The smallest stay, so the order of rows does not matter.
                most = max(named.registered)
                if place > most:
                    return
                del named.registered[most]
            known = named.registered[place] = _Registered(address, evidence)
        known.add(evidence)

    def cases(self, context: Context) -> Iterable[Case]:
        """Return a case per name used by several brokers at once."""
        by_name: dict[str, dict[str, Tally]] = {}
        for (_, name), named in sorted(self._named.items()):
            for address, tally in named.twice().items():
                by_name.setdefault(name, {}).setdefault(address, Tally()).merge(tally)
        for name, tallies in by_name.items():
            tally = joined(tallies.values())
            case = tally.case(
                f"{len(tallies)} brokers are registered as {name} with the same id:"
                f" {listed(tallies)}; clients get the address of either one",
                Subject(broker=name),
            )
            case.details = [
                f"{address} registered {tally.count:,} times from {clock(tally.first)} to"
                f" {clock_after(tally.first, tally.last)} UTC"
                for address, tally in sorted(tallies.items())
            ]
            yield case


RULE = DiagnosisRule(
    id="broker-name-twice",
    severity=ProblemSeverity.ERROR,
    title="Two brokers at different addresses have the same name and id",
    searched=(
        "same brokerName",
        "brokerName duplicate",
        "broker registered address changes",
        "two masters with the same brokerName",
    ),
    proof=(
        "Two addresses register (103) one broker name over simultaneous connections, and a route"
        " meanwhile names only one of them. With different broker ids, it would name both."
    ),
    explanation=(
        "A NameServer identifies a broker by name and id, and keeps the address that registered"
        " last. Two brokers with the same name and id replace each other every 30 s. Clients go to"
        " one broker or the other, depending on when they ask. Messages are spread over both, and"
        " consumers see queues with unknown offsets. Messages on the broker that the route omits"
        " are not consumed."
    ),
    advice=(
        "Give each master its own brokerName (default: the host's name; often copied with"
        " broker.conf). A slave has the name of its master and a brokerId above 0. The messages on"
        " both brokers stay: let consumers read each of them under its new name."
    ),
    grpc=BEHIND_PROXY,
    fold=_Fold,
    exchanges=(
        Exchanges(key=whole, requests={_REGISTER}, of_flow=True),
        Exchanges(key=whole, requests={ROUTE}, responses={SUCCESS}, of_flow=True),
    ),
    limits=(
        "Visible only if both the registrations of the brokers and the route requests of clients"
        " were captured."
    ),
    needs={Need.ROUTES},
    lasts=None,
)
