"""Outages of one server, inferred from connections and unanswered requests.

A server was gone if connects from hosts that know it failed, or if it closed connections with
waiting requests and then restarted or was unreachable for a while. A server that closes connections
and accepts new ones at once was not gone: its connections were cut.
RocketMQ: NettyRemotingClient, BrokerOuterAPI.registerBrokerAll.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
from typing import Final

from dissectors.endpoint import host_of
from dissectors.ports import BROKER, NAMESRV, PROXY, PROXY_GRPC, VIP
from dissectors.remoting.codes import RequestCode
from dissectors.rows import conversation_record as tcp
from dissectors.rows.conversation_facts import (
    AFTER_FIN,
    IDLE_MS,
    conversation_fact_in,
    conversation_number_in,
)
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import UNANSWERED, ExchangeRecord

from .context import Context
from .keys import keep, state_in
from .problem import (
    Evidence,
    Subject,
    Tally,
    asked,
    clock,
    clock_after,
    connected,
    duration,
    period,
)
from .rule import Exchanges, Fold
from .spells import HOUR

MAX_EVENTS: Final = 4096
"""maximum connections and requests of one server that are kept individually"""
LONG_IDLE_MS: Final = 60_000
"""idle time after which connections are closed by design"""
AWAY: Final = 3_000_000_000
"""ns without a new connection after several were closed together: the server was gone"""
AT_ONCE: Final = 1_000_000_000
"""ns within which a stopping server closes all its connections"""
SHUT_DOWN: Final = 10_000_000_000
"""ns between a broker's unregistration at the NameServer and the end of its connections"""
PORTS: Final = frozenset(map(str, (NAMESRV, VIP, BROKER, PROXY, PROXY_GRPC)))
"""default listen ports of servers for clients"""
REGISTER: Final = int(RequestCode.REGISTER_BROKER)


@dataclass(slots=True)
class Loss:
    """A connection closed by the server while it was in use."""

    time: int
    client: str
    server: str
    evidence: Evidence
    reset: bool = False
    """by RST, not by FIN"""
    idle: bool = False
    """nothing was waiting when it was closed: the client sent something afterwards"""
    served: bool = False
    """the server had sent data on it"""
    waiting: list[ExchangeRecord] = field(default_factory=list)
    """unanswered requests on it"""


@dataclass(slots=True)
class Outage:
    """A period in which a server was gone; ns since the epoch."""

    start: int
    end: int | None
    """first sign of its return; None: no sign"""
    losses: list[Loss]
    failed: list[ConversationRecord]
    last: int
    """last sign of its absence"""
    reregistered: int | None
    """when the broker registered over a new connection (a new process); None: never"""
    starting: bool = False
    """no sign of it before"""
    untried: bool = False
    """it closed its last connections, and no client has tried to connect since"""
    moved_to: str | None = None
    """new address of the broker; `end` is then its first appearance in a NameServer's route"""

    def tally(self) -> Tally:
        """Return the evidence."""
        tally = tally_of_losses(self.losses)
        tally.merge(failed_connects(self.failed))
        return tally

    @property
    def lost_sight(self) -> bool:
        """Whether no client tried to connect for so long that the return time is unknown."""
        return self.end is not None and self.end - self.last > HOUR

    def span(self) -> tuple[int, int]:
        """Return its start, and its end or last sign."""
        last = self.tally().last
        return self.start, last if self.end is None or self.lost_sight else max(last, self.end)

    def shut_down(self, name: str, context: Context) -> int | None:
        """Return when the broker of that name unregistered in order; None: it did not."""
        near = (
            time
            for time in context.left.get(name, ())
            if self.start - SHUT_DOWN <= time <= self.start + SHUT_DOWN
        )
        return min(near, default=None)

    def said(self, context: Context) -> str:
        """Return the period as text."""
        begin = clock(self.start)
        if self.end is None and context.goes_on:
            return f"since {begin} UTC"
        if self.end is None:
            return f"from {begin} UTC to the end of the capture"
        if self.lost_sight:
            return f"from {begin} UTC until at least {clock_after(self.start, self.last)}"
        length = duration(self.end - self.start)
        return f"from {period(self.start, self.end)} UTC ({length})"


class _Spans:
    """Periods of connections, to find out whether one was open."""

    def __init__(self, periods: Sequence[tuple[int, int, str]]) -> None:
        """`periods`: begin, end, and server."""
        ordered = sorted(periods)
        self.count = len(ordered)
        self._begins = [begin for begin, _, _ in ordered]
        self._latest = list(accumulate((end for _, end, _ in ordered), max))

    def has(self, time: int) -> bool:
        """Return whether one had begun at a time and ended later."""
        before = bisect_right(self._begins, time)
        return before > 0 and self._latest[before - 1] > time


class ServerLosses:
    """Connections of one server, and unanswered requests to it."""

    def __init__(self, key: str) -> None:
        self.key = key
        """address of the server"""
        self._lost: dict[tuple[str, int], Loss] = {}
        self._failed: list[ConversationRecord] = []
        self._alive: list[tuple[int, int, str]] = []
        self._waiting: dict[tuple[str, int, int, int], ExchangeRecord] = {}
        self._registered: dict[tuple[int, str], tuple[int, bool]] = {}
        """connection and its broker -> first registration, and whether the start was captured"""
        self.hosts: set[str] = set()
        """hosts with commands on a connection to it"""
        self._since = 1 << 63  # later than any time
        self._open = 0
        """connections still open"""
        self._let_go = 0
        """last time at which a client closed a connection to it: it was present"""

    def add_connection(self, row: ConversationRecord) -> None:
        """Add a connection to the server."""
        if never_opened(row):
            if len(self._failed) < MAX_EVENTS:
                self._failed.append(row)
            return
        self._open += row.end == tcp.OPEN
        if row.ended_by == tcp.CLIENT:
            self._let_go = max(self._let_go, row.end_time)
        if row.server_bytes:
            self._since = min(self._since, row.start_time)
        if row.commands:
            keep(self.hosts, host_of(row.client_address), MAX_EVENTS)
        if row.start != tcp.MIDSTREAM and row.server_bytes and len(self._alive) < MAX_EVENTS:
            self._alive.append((row.start_time, row.end_time, row.server_address))
        idle = conversation_number_in(row.facts, IDLE_MS) or 0
        # Idle connections are closed by design and prove nothing.
        if row.commands and row.ended_by == tcp.SERVER and idle < LONG_IDLE_MS:
            how = "reset" if row.end == tcp.RESET else "closed"
            what = f"{row.server_address} {how} the connection from {row.client_address}"
            if len(self._lost) < MAX_EVENTS:
                evidence = Evidence(row.capture, None, row.end_time, row.conversation, what)
                # Payload after the server's FIN: the client used a connection closed as idle.
                after = conversation_fact_in(row.facts, AFTER_FIN) is not None
                lost = Loss(
                    row.end_time,
                    row.client_address,
                    row.server_address,
                    evidence,
                    how == "reset",
                    idle > 0 and after,
                    row.server_bytes > 0,
                )
                self._lost[row.capture, row.conversation] = lost

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Add an unanswered request, or a registration of this broker."""
        # The NameServer's own state gets the row, too: there it is a request like any other.
        if row.request_code == REGISTER and row.server_address != self.key:
            if row.request_time is not None:
                place = row.conversation, row.client_address
                time, fresh = self._registered.get(place, (row.request_time, False))
                # The round trip is that of the handshake: its start was captured.
                fresh = fresh or row.rtt_us is not None
                if place in self._registered or len(self._registered) < MAX_EVENTS:
                    self._registered[place] = min(time, row.request_time), fresh
        # While its connection is open, a request may still get its response.
        elif row.end in ("reset", "closed") and len(self._waiting) < MAX_EVENTS:
            self._waiting[row.capture, row.conversation, row.opaque, row.request_time or 0] = row

    def join(self, other: ServerLosses) -> None:
        """Merge the connections and requests at another port of the server."""
        self._lost |= other._lost
        self._failed += other._failed
        self._alive += other._alive
        self._waiting |= other._waiting
        self._registered |= other._registered
        self.hosts |= other.hosts
        self._since = min(self._since, other._since)
        self._open += other._open
        self._let_go = max(self._let_go, other._let_go)

    def outages(self, context: Context) -> list[Outage]:
        """Return the outages of the server, sorted by time."""
        outages = [
            outage for outage in self._judged(context)[0] if not self._moves_here(outage, context)
        ]
        if outages and (last := outages[-1]).end is None:
            moved = context.moved(self.key, last.start)
            if moved is not None:
                last.moved_to, last.end = moved
        return outages

    def _moves_here(self, outage: Outage, context: Context) -> bool:
        """Return whether a broker moved to this address, which is no outage."""
        seats = context.seats.get(context.broker(self.key), {})
        first = seats.get(self.key, (None,))[0]
        if first is None or not outage.starting:
            return False
        return any(
            address != self.key and since < outage.start and until <= first
            for address, (since, until) in seats.items()
        )

    def cuts(self, context: Context) -> list[Loss]:
        """Return the connections that were cut while requests waited, without an outage."""
        return self._judged(context)[1]

    def _judged(self, context: Context) -> tuple[list[Outage], list[Loss]]:
        losses = self._losses()
        # Once per port, because a server may have thousands of both.
        others = {
            server: _Spans([time for time in self._alive if time[2] != server])
            for server in {row.server_address for row in self._failed}
        }
        lost_at = {loss.server for loss in self._lost.values()}
        failures = [
            row
            for row in self._failed
            if self._surely_failed(row, others[row.server_address], lost_at, context)
        ]
        signs = sorted(begin for begin, _, _ in self._alive)
        fresh = sorted(time for time, new in self._registered.values() if new)
        events: list[tuple[int, Loss | ConversationRecord]] = [
            *((loss.time, loss) for loss in losses),
            *((row.start_time, row) for row in failures),
        ]
        events.sort(key=lambda item: item[0])
        outages: list[Outage] = []
        cut: list[Loss] = []
        for group in _parted(events, sorted((*signs, *fresh))):
            start, last = group[0][0], group[-1][0]
            lost = [one for _, one in group if isinstance(one, Loss)]
            failed = [one for _, one in group if isinstance(one, ConversationRecord)]
            back = _first_after(signs, last)
            restarted = _first_after(fresh, last)
            waited = [loss for loss in lost if loss.waiting]
            both = [one for one in (back, restarted) if one is not None]
            end = min(both) if both else None
            # A host that never used the server may have a wrong address, or be blocked on the path.
            known = [row for row in failed if host_of(row.client_address) in self.hosts]
            clients = {loss.client for loss in lost}
            # A capture with holes may lack responses and connections.
            stayed_away = end is not None and end - last >= AWAY and not context.quality.with_gaps
            # A single client may need no other connection; two or more would have reconnected.
            surely = restarted is not None or (len(clients) > 1 and stayed_away)
            untried = end is None and not failed and self._has_ended_all(lost, context)
            if known or untried or (waited and surely):
                seen = min([self._since, *(time for time, _ in self._registered.values())])
                outages.append(
                    Outage(start, end, lost, failed, last, restarted, seen > start, untried)
                )
            else:
                # Without a later connection, the server may have been gone. In a capture with
                # holes, it must follow soon: the SYN of an earlier one may be missing.
                if back is not None and (back - last < AWAY or not context.quality.with_gaps):
                    cut.extend(loss for loss in waited if not loss.idle)
        return outages, cut

    def _has_ended_all(self, lost: Sequence[Loss], context: Context) -> bool:
        """Return whether the server closed its last connections, and no new one followed."""
        # Known only for a live capture: otherwise the end of the file may look like it.
        if not context.watched or context.last_time is None or self._open:
            return False
        served = [loss for loss in lost if loss.served]
        # Losses before the last close by a client prove nothing: the server was there then.
        last = max((loss.time for loss in served), default=self._let_go)
        if last <= self._let_go or context.last_time - last < AWAY or context.quality.with_gaps:
            return False
        together = [loss for loss in served if last - loss.time <= AT_ONCE]
        alone = len(self._lost) == 1  # a server that closes connections repeatedly closes idle ones
        return alone or len(together) > 1

    def _surely_failed(
        self, row: ConversationRecord, others: _Spans, lost_at: Set[str], context: Context
    ) -> bool:
        """Return whether a connect failed because the server was gone.

        `others`: the connections on its other ports; `lost_at`: servers with lost connections.
        """
        worked = others.count < len(self._alive) or row.server_address in lost_at
        # Its other port served, this one never did: perhaps the VIP port is blocked
        # (`vip-port-unreachable`), which is no outage.
        if others.count and not worked:
            return False
        # Its process ran: it had a connection on another port at that time.
        if others.has(row.start_time):
            return False
        if row.end == tcp.REFUSED or row.syns > 1:
            return True
        if not surely_unanswered(row, context):
            return False
        # The response to a SYN near the end of the capture may come after the end.
        return context.last_time is not None and context.last_time - row.start_time >= AWAY

    def _losses(self) -> list[Loss]:
        for loss in self._lost.values():
            loss.waiting = []
        for row in self._waiting.values():
            losses = self._lost.get((row.capture, row.conversation))
            if losses is not None:
                losses.waiting.append(row)
        for loss in self._lost.values():
            loss.waiting.sort(key=lambda row: (row.request_time or 0, row.opaque))
        return sorted(self._lost.values(), key=lambda loss: (loss.time, loss.client))


class HostLosses(Fold):
    """Losses of all servers of one host: which ports belong to one broker is known late."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._parts: dict[str, ServerLosses] = {}

    def add_connection(self, row: ConversationRecord) -> None:
        """Add a connection to the host."""
        part = self._part(row.server_address)
        if part is not None:
            part.add_connection(row)

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Add an unanswered request, or a registration of a broker of the host."""
        addresses = {
            row.server_address,
            (_registered_by(row) if row.request_code == REGISTER else ""),
        }
        for address in addresses:
            part = self._part(address) if address and host_of(address) == self.key else None
            if part is not None:
                part.add_exchange(row)

    def servers(self, context: Context) -> Iterator[ServerLosses]:
        """Return each server with the events of all its ports."""
        by_address: dict[str, ServerLosses] = {}
        for address, part in sorted(
            (*self._parts.items(), *self._not_settled().items()), key=itemgetter(0)
        ):
            own = context.own_address(address)
            if own not in by_address:
                by_address[own] = ServerLosses(own)
            by_address[own].join(part)
        yield from by_address.values()

    def _not_settled(self) -> dict[str, ServerLosses]:
        """Return events of pending requests and open connections by address."""
        servers: dict[str, ServerLosses] = {}
        for connection in self.unended:
            address = connection.server_address
            servers.setdefault(address, ServerLosses(address)).add_connection(connection)
        for row in self.pending:
            address = row.server_address
            if host_of(address) == self.key and row.request_code != REGISTER:
                servers.setdefault(address, ServerLosses(address)).add_exchange(row)
        return servers

    def _part(self, address: str) -> ServerLosses | None:
        return state_in(self._parts, address, lambda: ServerLosses(address), MAX_EVENTS)


def _parted(
    events: Sequence[tuple[int, Loss | ConversationRecord]], signs: Sequence[int]
) -> list[list[tuple[int, Loss | ConversationRecord]]]:
    """Split events at signs, in order, that the server was present, or at gaps of an hour."""
    groups: list[list[tuple[int, Loss | ConversationRecord]]] = []
    for event in events:
        sign = _first_after(signs, groups[-1][-1][0]) if groups else None
        between = sign is not None and sign < event[0]
        if not groups or between or event[0] - groups[-1][-1][0] > HOUR:
            groups.append([event])
        else:
            groups[-1].append(event)
    return groups


def _first_after(times: Sequence[int], after: int) -> int | None:
    at = bisect_right(times, after)
    return times[at] if at < len(times) else None


def server_of(row: ConversationRecord) -> str | None:
    """Return the server of a connection, or None if the roles are unknown."""
    return row.server_address if row.start != tcp.MIDSTREAM or row.commands else None


def host_of_server(row: ConversationRecord) -> str | None:
    """Return the server's host of a connection, or None if the roles are unknown."""
    server = server_of(row)
    return None if server is None else host_of(server)


def _asked(row: ExchangeRecord) -> str:
    return host_of(row.server_address)


def _registered_by(row: ExchangeRecord) -> str | None:
    return row.brokers[0].rpartition("=")[2] if row.brokers else None


def _registering(row: ExchangeRecord) -> str | None:
    address = _registered_by(row)
    return None if address is None else host_of(address)


UNANSWERED_REQUESTS: Final = Exchanges(key=_asked, statuses={UNANSWERED})
REGISTRATIONS: Final = Exchanges(key=_registering, requests={REGISTER})
LOSSES: Final = (UNANSWERED_REQUESTS, REGISTRATIONS)
"""Exchanges that `HostLosses` takes."""


def never_opened(row: ConversationRecord) -> bool:
    """Return whether a connect failed."""
    return row.end in tcp.NEVER_OPENED


def surely_unanswered(row: ConversationRecord, context: Context) -> bool:
    """Return whether a connect certainly failed: the response to a single SYN may be missing."""
    return row.end == tcp.REFUSED or row.syns > 1 or not context.quality.with_gaps


def how_it_failed(row: ConversationRecord) -> str:
    """Return how a connect failed, as one line."""
    if row.end == tcp.REFUSED:
        return f"connection from {row.client_address} to {row.server_address} refused"
    return (
        f"connection from {row.client_address} to {row.server_address} unanswered ({row.syns} SYN)"
    )


def tally_of_losses(losses: Iterable[Loss]) -> Tally:
    """Return a tally of losses, with the requests that waited as evidence."""
    tally = Tally()
    for loss in losses:
        tally.add(loss.evidence)
        for row in loss.waiting:
            tally.add(asked(row), count=0)
    return tally


def failed_connects(rows: Iterable[ConversationRecord]) -> Tally:
    """Return a tally of failed connects."""
    tally = Tally()
    for row in rows:
        tally.add(connected(row, how_it_failed(row)), last=row.end_time)
    return tally


def named(context: Context, address: str) -> str:
    """Return the name and address of a broker, with the id of a slave; otherwise the address."""
    name, slave = context.broker(address), context.slave_id(context.own_address(address))
    if name == address:
        return context.server(address)
    return f"{name} ({address})" if slave is None else f"slave {slave} of {name} ({address})"


def subject_at(context: Context, address: str) -> Subject:
    """Return the broker at an address as a subject, or the server if no broker is known."""
    name = context.broker(address)
    return Subject(server=address) if name == address else Subject(broker=name)


def is_remoting_server(address: str, context: Context) -> bool:
    """Return whether a server speaks RocketMQ, by its known role or its port."""
    # A server that never responded has no role yet, so the port has to do.
    known = address in context.servers or context.broker(address) != address
    return known or address.rpartition(":")[2] in PORTS


def waiting_of(losses: Sequence[Loss]) -> Counter[str]:
    """Return the unanswered requests, counted by name."""
    return Counter(row.request_name or "request" for loss in losses for row in loss.waiting)
