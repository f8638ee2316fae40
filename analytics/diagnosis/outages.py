"""What connections and unanswered requests say of one server: when it was gone, and for whom.

Rules: a server was gone where connects from hosts that know it failed, or where it ended
connections on which requests waited and then began anew or was not reached for a while. A server
that ends connections and takes new ones at once was not gone: its connections were cut. Connections
that were idle are closed by design and say nothing. All is bounded.
RocketMQ: NettyRemotingClient, BrokerOuterAPI.registerBrokerAll.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
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
from .problem import Evidence, Tally, asked, clock, clock_after, connected, period, seconds
from .rule import Exchanges, Fold
from .spells import HOUR

MAX_EVENTS: Final = 4096
"""connections and requests of one server that are looked at one by one"""
LONG_IDLE_MS: Final = 60_000
"""idle time after which connections are closed by design"""
AWAY: Final = 3_000_000_000
"""ns without any new connection after several were ended at once: the server was gone"""
AT_ONCE: Final = 1_000_000_000
"""ns within which a server that stops ends all its connections"""
SHUT_DOWN: Final = 10_000_000_000
"""ns between a broker's good-bye to the NameServer and the end of its connections"""
PORTS: Final = frozenset(map(str, (NAMESRV, VIP, BROKER, PROXY, PROXY_GRPC)))
"""where those listen whom clients ask, unless they are told another port"""
REGISTER: Final = int(RequestCode.REGISTER_BROKER)


@dataclass(slots=True)
class Loss:
    """A connection that the server ended while it was in use."""

    time: int
    client: str
    server: str
    evidence: Evidence
    reset: bool = False
    """by RST, not by FIN"""
    idle: bool = False
    """nothing was waiting when it was ended: the client sent something afterwards"""
    served: bool = False
    """the server had sent something on it"""
    waiting: list[ExchangeRecord] = field(default_factory=list)
    """requests on it that got no answer"""


@dataclass(slots=True)
class Outage:
    """A time in which a server was gone; ns since the epoch."""

    start: int
    end: int | None
    """first sign that it was there again; None: none was seen"""
    losses: list[Loss]
    failed: list[ConversationRecord]
    last: int
    """last sign that it was gone"""
    began_anew: int | None
    """when the broker registered over a new connection: its process is a new one; None: not"""
    starting: bool = False
    """nothing was seen of it before"""
    untried: bool = False
    """it ended its last connections, and nobody has tried to connect since"""
    moved_to: str | None = None
    """address at which the broker came back; `end` is when a NameServer first named it"""

    def tally(self) -> Tally:
        """Return what shows it."""
        tally = Tally()
        for loss in self.losses:
            tally.add(loss.evidence)
            for row in loss.waiting:
                tally.add(asked(row), count=0)
        for failure in self.failed:
            tally.add(connected(failure, how_it_failed(failure)), last=failure.end_time)
        return tally

    @property
    def lost_sight(self) -> bool:
        """Whether nobody tried it for so long that the time of its return is not known."""
        return self.end is not None and self.end - self.last > HOUR

    def span(self) -> tuple[int, int]:
        """Return when it began, and when it was over, else last seen to go on."""
        last = self.tally().last
        return self.start, last if self.end is None or self.lost_sight else max(last, self.end)

    def shut_down(self, name: str, context: Context) -> int | None:
        """Return when the broker of that name left the routes in order; None: it did not."""
        near = (
            time
            for time in context.left.get(name, ())
            if self.start - SHUT_DOWN <= time <= self.start + SHUT_DOWN
        )
        return min(near, default=None)

    def said(self, context: Context) -> str:
        """Return from when to when."""
        begin = clock(self.start)
        if self.end is None and context.goes_on:
            return f"since {begin} UTC"
        if self.end is None:
            return f"from {begin} UTC to the end of the capture"
        if self.lost_sight:
            return f"from {begin} UTC at least to {clock_after(self.start, self.last)}"
        length = seconds(self.end - self.start)
        return f"from {period(self.start, self.end)} UTC ({length})"


def merged(outages: Sequence[Outage]) -> Tally:
    """Return the evidence of all of them."""
    tally = Tally()
    for one in outages:
        tally.merge(one.tally())
    return tally


class ServerLosses:
    """Connections of one server, and the requests to it that got no answer."""

    def __init__(self, key: str) -> None:
        self.key = key
        """its address"""
        self._lost: dict[tuple[str, int], Loss] = {}
        self._failed: list[ConversationRecord] = []
        self._alive: list[tuple[int, int, str]] = []
        self._waiting: dict[tuple[str, int, int, int], ExchangeRecord] = {}
        self._registered: dict[tuple[int, str], tuple[int, bool]] = {}
        """connection and its broker -> first registration, and whether it has its beginning"""
        self.hosts: set[str] = set()
        """hosts that had commands on a connection to it"""
        self._since = 1 << 63  # no time is later
        self._open = 0
        """connections that did not end"""
        self._let_go = 0
        """when a client ended a connection to it last: it was there"""

    def add_connection(self, row: ConversationRecord) -> None:
        """Take a connection to it."""
        if row.end in tcp.NEVER_OPENED:
            if len(self._failed) < MAX_EVENTS:
                self._failed.append(row)
            return
        self._open += row.end == tcp.OPEN
        if row.ended_by == tcp.CLIENT:
            self._let_go = max(self._let_go, row.end_time)
        if row.server_bytes:
            self._since = min(self._since, row.start_time)
        if row.commands and len(self.hosts) < MAX_EVENTS:
            self.hosts.add(host_of(row.client))
        if row.start != tcp.MIDSTREAM and row.server_bytes and len(self._alive) < MAX_EVENTS:
            self._alive.append((row.start_time, row.end_time, row.server))
        idle = conversation_number_in(row.facts, IDLE_MS) or 0
        if row.commands and row.ended_by == tcp.SERVER and idle < LONG_IDLE_MS:
            how = "reset" if row.end == tcp.RESET else "closed"
            what = f"{row.server} {how} the connection of {row.client}"
            if len(self._lost) < MAX_EVENTS:
                evidence = Evidence(row.capture, None, row.end_time, row.conversation, what)
                after = conversation_fact_in(row.facts, AFTER_FIN) is not None
                lost = Loss(
                    row.end_time,
                    row.client,
                    row.server,
                    evidence,
                    how == "reset",
                    idle > 0 and after,
                    row.server_bytes > 0,
                )
                self._lost[row.capture, row.conversation] = lost

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Take a request without answer, or a registration of this broker."""
        if row.request_code == REGISTER and row.responder != self.key:
            if row.request_time is not None:
                place = row.conversation, row.requester
                time, fresh = self._registered.get(place, (row.request_time, False))
                fresh = fresh or row.rtt_us is not None
                if place in self._registered or len(self._registered) < MAX_EVENTS:
                    self._registered[place] = min(time, row.request_time), fresh
        elif row.end in ("reset", "closed") and len(self._waiting) < MAX_EVENTS:
            self._waiting[row.capture, row.conversation, row.opaque, row.request_time or 0] = row

    def join(self, other: ServerLosses) -> None:
        """Add what was seen at another port of the server."""
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
        """Return when the server was gone, by time."""
        found = self._judged(context)[0]
        if found and (last := found[-1]).end is None:
            moved = context.moved(self.key, last.start)
            if moved is not None:
                last.moved_to, last.end = moved
        return found

    def cuts(self, context: Context) -> list[Loss]:
        """Return the connections that were cut while requests waited, though it was not gone."""
        return self._judged(context)[1]

    def _judged(self, context: Context) -> tuple[list[Outage], list[Loss]]:
        losses = self._losses()
        failures = [row for row in self._failed if self._surely_failed(row, context)]
        signs = sorted(begin for begin, _, _ in self._alive)
        fresh = sorted(time for time, new in self._registered.values() if new)
        events: list[tuple[int, Loss | ConversationRecord]] = [
            *((loss.time, loss) for loss in losses),
            *((row.start_time, row) for row in failures),
        ]
        events.sort(key=lambda one: one[0])
        outages: list[Outage] = []
        cut: list[Loss] = []
        for group in _parted(events, sorted((*signs, *fresh))):
            start, last = group[0][0], group[-1][0]
            lost = [one for _, one in group if isinstance(one, Loss)]
            failed = [one for _, one in group if isinstance(one, ConversationRecord)]
            back = _first_after(signs, last)
            anew = _first_after(fresh, last)
            waited = [loss for loss in lost if loss.waiting]
            both = [one for one in (back, anew) if one is not None]
            end = min(both) if both else None
            known = [row for row in failed if host_of(row.client) in self.hosts]
            clients = {loss.client for loss in lost}
            # In a capture with holes answers, and connections, may be what is not there.
            stayed_away = end is not None and end - last >= AWAY and not context.quality.with_gaps
            surely = anew is not None or (len(clients) > 1 and stayed_away)
            untried = end is None and not failed and self._has_ended_all(lost, context)
            if known or untried or (waited and surely):
                seen = min([self._since, *(time for time, _ in self._registered.values())])
                outages.append(Outage(start, end, lost, failed, last, anew, seen > start, untried))
            else:
                if back is not None and (back - last < AWAY or not context.quality.with_gaps):
                    cut.extend(loss for loss in waited if not loss.idle)
        return outages, cut

    def _has_ended_all(self, lost: Sequence[Loss], context: Context) -> bool:
        """Return whether the server ended the last connections to it, and no new one came.

        That is known only of a capture that was watched: else its end may be what ended them.
        """
        if not context.watched or context.last_time is None or self._open:
            return False
        served = [loss for loss in lost if loss.served]
        last = max((loss.time for loss in served), default=self._let_go)
        if last <= self._let_go or context.last_time - last < AWAY or context.quality.with_gaps:
            return False
        together = [loss for loss in served if last - loss.time <= AT_ONCE]
        alone = len(self._lost) == 1  # one that ends connections again and again closes idle ones
        return alone or len(together) > 1

    def _surely_failed(self, row: ConversationRecord, context: Context) -> bool:
        """Return whether a connect failed because the server was gone.

        It was not where another of its ports served meanwhile, or this one never did; and the last
        connect that was captured may have come about.
        """
        others = [one for one in self._alive if one[2] != row.server]
        worked = len(others) < len(self._alive) or any(
            loss.server == row.server for loss in self._lost.values()
        )
        if others and not worked:
            return False
        if any(begin <= row.start_time < end for begin, end, _ in others):
            return False
        if row.end == tcp.REFUSED or row.syns > 1:
            return True
        if not surely_unanswered(row, context):
            return False
        return context.last_time is not None and context.last_time - row.start_time >= AWAY

    def _losses(self) -> list[Loss]:
        for loss in self._lost.values():
            loss.waiting = []
        for row in self._waiting.values():
            found = self._lost.get((row.capture, row.conversation))
            if found is not None:
                found.waiting.append(row)
        for loss in self._lost.values():
            loss.waiting.sort(key=lambda row: (row.request_time or 0, row.opaque))
        return sorted(self._lost.values(), key=lambda loss: (loss.time, loss.client))


class HostLosses(Fold):
    """The losses of the servers of one host: which of its ports are of one broker is known late."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self._parts: dict[str, ServerLosses] = {}

    def add_connection(self, row: ConversationRecord) -> None:
        """Take a connection to the host."""
        part = self._part(row.server)
        if part is not None:
            part.add_connection(row)

    def add_exchange(self, row: ExchangeRecord) -> None:
        """Take a request without answer, or a registration of a broker of the host."""
        addresses = {row.responder, (_registered_by(row) if row.request_code == REGISTER else "")}
        for address in addresses:
            part = self._part(address) if address and host_of(address) == self.key else None
            if part is not None:
                part.add_exchange(row)

    def servers(self, context: Context) -> Iterator[ServerLosses]:
        """Return each server with what was seen at all of its ports."""
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
        """Return by address what connections and requests show that are not settled yet."""
        found: dict[str, ServerLosses] = {}
        for connection in self.unended:
            address = connection.server
            found.setdefault(address, ServerLosses(address)).add_connection(connection)
        for row in self.pending:
            address = row.responder
            if host_of(address) == self.key and row.request_code != REGISTER:
                found.setdefault(address, ServerLosses(address)).add_exchange(row)
        return found

    def _part(self, address: str) -> ServerLosses | None:
        part = self._parts.get(address)
        if part is None and len(self._parts) < MAX_EVENTS:
            part = self._parts[address] = ServerLosses(address)
        return part


def _parted(
    events: Sequence[tuple[int, Loss | ConversationRecord]], signs: Sequence[int]
) -> list[list[tuple[int, Loss | ConversationRecord]]]:
    """Return the events in groups between which the server showed that it was there, or an hour."""
    groups: list[list[tuple[int, Loss | ConversationRecord]]] = []
    for event in events:
        between = groups and any(groups[-1][-1][0] < sign < event[0] for sign in signs)
        if not groups or between or event[0] - groups[-1][-1][0] > HOUR:
            groups.append([event])
        else:
            groups[-1].append(event)
    return groups


def _first_after(times: Sequence[int], after: int) -> int | None:
    return next((time for time in times if time > after), None)


def server_of(row: ConversationRecord) -> str | None:
    """Return the server of a connection; None where nobody knows which end it is."""
    return row.server if row.start != tcp.MIDSTREAM or row.commands else None


def host_of_server(row: ConversationRecord) -> str | None:
    """Return the host of the server of a connection; None where nobody knows which end it is."""
    server = server_of(row)
    return None if server is None else host_of(server)


def _asked(row: ExchangeRecord) -> str:
    return host_of(row.responder)


def _registered_by(row: ExchangeRecord) -> str | None:
    return row.brokers[0].rpartition("=")[2] if row.brokers else None


def _registering(row: ExchangeRecord) -> str | None:
    address = _registered_by(row)
    return None if address is None else host_of(address)


UNANSWERED_REQUESTS: Final = Exchanges(key=_asked, statuses=frozenset((UNANSWERED,)))
REGISTRATIONS: Final = Exchanges(key=_registering, requests=frozenset((REGISTER,)))
LOSSES: Final = (UNANSWERED_REQUESTS, REGISTRATIONS)
"""What `HostLosses` takes."""


def surely_unanswered(row: ConversationRecord, context: Context) -> bool:
    """Return whether a connect failed: the answer to one SYN may be lost to the capture."""
    return row.end == tcp.REFUSED or row.syns > 1 or not context.quality.with_gaps


def how_it_failed(row: ConversationRecord) -> str:
    """Return a line that says how a connect failed."""
    if row.end == tcp.REFUSED:
        return f"connect of {row.client} to {row.server} refused"
    return f"connect of {row.client} to {row.server} not answered ({row.syns} SYN)"


def named(context: Context, address: str) -> str:
    """Return name and address of a broker, with the id of a slave; of others the address."""
    name, slave = context.broker(address), context.slave_id(context.own_address(address))
    if name == address:
        return f"proxy {name}" if context.is_proxy(address) else name
    return f"{name} ({address})" if slave is None else f"slave {slave} of {name} ({address})"


def speaks_remoting(address: str, context: Context) -> bool:
    """Return whether a server is one of RocketMQ, by what is known of it or by its port."""
    known = address in context.servers or context.broker(address) != address
    return known or address.rpartition(":")[2] in PORTS


def waiting_of(losses: Sequence[Loss]) -> Counter[str]:
    """Return the requests that got no answer, counted by name."""
    return Counter(row.request_name or "request" for loss in losses for row in loss.waiting)
