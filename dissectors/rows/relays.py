"""Detection of requests that a relay forwarded: one rule for every view.

A relay, such as the 5.x proxy, receives a request (the outer hop) and forwards it to a broker (the
inner hop) while its client waits. The inner hop is no attempt of the client. The state is bounded,
mergeable, and independent of the order of rows within its bounds.
RocketMQ: RemotingProtocolServer, SendMessageActivity of the proxy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

from ..endpoint import host_of
from ..histogram import Histogram
from ..remoting.code_sets import SENDS
from ..times import SECOND
from .outcome import is_call, is_send
from .record import ExchangeRecord, MessageIdentity, identity_of

MAX_OPEN: Final = 15 * SECOND
"""maximum capture time from an unanswered outer hop to its inner hop"""
SAME_HOST_OPEN: Final = 3 * SECOND
"""the maximum if both come from one host: its client retries after that"""
MAX_NEAR: Final = 64
"""hops of one message before and after an inner one that are candidates for the outer one"""
MAX_MESSAGES: Final = 10_000
"""messages that may still get hops"""
MAX_HOPS: Final = 64
"""hops kept per message"""
MAX_RELAYS: Final = 4096
"""relays kept"""
_SKEW: Final = SECOND
"""clock difference between two captures"""


class Hop(NamedTuple):
    """A request and its response, reduced to what distinguishes hops; times in ns."""

    begin: int
    end: int | None
    """time of the response; None: unanswered"""
    host: str
    """host that sent the request"""
    server: str
    """`address:port` of the receiver"""
    id: str | None = None
    """offset message id of the response"""
    call: bool = False
    """a gRPC call"""
    capture: str | None = None
    """capture whose clock the times are from"""

    @property
    def took(self) -> int:
        """Time to the response; 0 without one."""
        return 0 if self.end is None else self.end - self.begin


class Relay(NamedTuple):
    """An address that forwards requests."""

    address: str
    """`address:port` that receives them"""
    from_host: str
    """host that it forwards them from"""
    server: str
    """`address:port` that it forwards them to"""


class HopPair(NamedTuple):
    """An inner hop and its possible outer hop, as indexes into the hops."""

    inner: int
    outer: int
    relay: Relay
    proven: bool
    """proven by these two hops; otherwise only by another message"""
    of_call: bool
    """the outer hop is a gRPC call"""


def hop_of(row: ExchangeRecord) -> Hop:
    """Return an exchange with a request as a hop."""
    return Hop(
        row.request_time or 0,
        row.response_time,
        host_of(row.client_address),
        row.server_address,
        row.offset_msg_id,
        row.request_code is None and is_call(row.request_name),
        row.capture,
    )


def hop_pairs(hops: Sequence[Hop]) -> Iterator[HopPair]:
    """Yield the possible pairs of a message's hops; for each inner hop, the latest outer one
    first.
    """
    if len(hops) < 2:
        return
    # Of hops that begin together, the longest is the outer one, so it comes first.
    order = sorted(range(len(hops)), key=lambda n: (hops[n].begin, -hops[n].took, hops[n].server))
    client = hops[order[0]].host
    for place, inner in enumerate(order):
        hop = hops[inner]
        for outer in reversed(order[max(0, place - MAX_NEAR) : place + MAX_NEAR + 1]):
            proven = _is_made_of(hop, hops[outer], client)
            if proven is not None:
                relay = Relay(hops[outer].server, hop.host, hop.server)
                yield HopPair(inner, outer, relay, proven, hops[outer].call)


def _is_made_of(hop: Hop, outer: Hop, client: str) -> bool | None:
    """Return whether two hops prove a relay, or could be of one; None: they are not a pair.

    `client` is the host that sent the message first.
    """
    # A proxy forwards by remoting, so a gRPC call is never an inner hop.
    # The inner hop goes to another server while the outer one is open.
    if hop.server == outer.server or hop.call:
        return None
    skew = 0 if hop.capture == outer.capture else _SKEW
    end = outer.end
    if end is None:
        alike = hop.host == outer.host and not outer.call
        end = outer.begin + (SAME_HOST_OPEN if alike else MAX_OPEN)
    if not outer.begin - skew <= hop.begin <= end + skew:
        return None
    if outer.call:
        return True  # no client sends a message by gRPC and by remoting
    if hop.id and hop.id == outer.id:  # one stored message; the outer hop took longer
        return True if (hop.took, -hop.begin) < (outer.took, -outer.begin) else None
    # From the host that the outer hop went to; False: only another message can prove this relay.
    return hop.host != client and hop.host == host_of(outer.server)


def proven_relays(messages: Iterable[Sequence[Hop]]) -> frozenset[Relay]:
    """Return the remoting relays that some messages prove."""
    return frozenset(
        pair.relay
        for hops in messages
        for pair in hop_pairs(hops)
        if pair.proven and not pair.of_call
    )


def inner_hops(hops: Sequence[Hop], relays: Collection[Relay] = ()) -> dict[int, int]:
    """Return inner hop -> outer hop, by index; `relays` are the known relays."""
    outer_by_inner: dict[int, int] = {}
    for inner, outer, relay, proven, _ in hop_pairs(hops):
        if inner not in outer_by_inner and (proven or relay in relays):
            before: int | None = outer
            while before is not None and before != inner:
                before = outer_by_inner.get(before)
            if before is None:  # otherwise differing capture clocks could make a cycle of hops
                outer_by_inner[inner] = outer
    return outer_by_inner


@dataclass(slots=True)
class RelayedSends:
    """Sends through one relay that were answered on both sides; times in µs."""

    outer: Histogram = field(default_factory=Histogram)
    """latency seen by clients"""
    inner: Histogram = field(default_factory=Histogram)
    """part of it that the relay waited for the server"""
    own: Histogram = field(default_factory=Histogram)
    """the rest: time in the relay"""
    proven: bool = False
    of_calls: bool = False
    """the relay is a proxy for gRPC calls"""

    def add(self, pair: HopPair, hops: Sequence[Hop]) -> None:
        """Count both hops of a send."""
        self.proven |= pair.proven
        self.of_calls |= pair.of_call
        outer, inner = hops[pair.outer], hops[pair.inner]
        if outer.end is not None and inner.end is not None:
            waited, served = outer.took // 1000, inner.took // 1000
            self.outer.add(waited)
            self.inner.add(served)
            self.own.add(waited - served)

    def merge(self, other: RelayedSends) -> None:
        """Add the sends of `other`."""
        self.proven |= other.proven
        self.of_calls |= other.of_calls
        self.outer.merge(other.outer)
        self.inner.merge(other.inner)
        self.own.merge(other.own)


_Sends = dict[Relay, RelayedSends]


class Relays:
    """Detects relays in exchanges, and measures the sends through each."""

    def __init__(self) -> None:
        self._open: dict[MessageIdentity, ExchangeRecord | list[Hop]] = {}
        """message -> its only send so far, or its hops; in order of arrival"""
        self._counted: _Sends = {}
        """sends through relays, proven or not, of closed messages"""

    def add(self, row: ExchangeRecord) -> None:
        """Add an exchange; only sends count."""
        key, code = identity_of(row), row.request_code
        if key is None or row.request_time is None:
            return
        if code in SENDS if code is not None else is_send(row.request_name):
            known = self._open.setdefault(key, row)
            if known is not row:
                self._add_hops(key, [hop_of(row)])
            elif len(self._open) > MAX_MESSAGES:
                self._close()

    def merge(self, other: Relays) -> None:
        """Merge the state of other rows."""
        _merge(self._counted, other._counted)
        for key, known in other._open.items():
            self._add_hops(key, _hops(known))
        if len(self._open) > MAX_MESSAGES:
            self._close()

    def proven(self) -> frozenset[Relay]:
        """Return the remoting relays."""
        return frozenset(relay for relay, sends in self.sends().items() if not sends.of_calls)

    def sends(self) -> Mapping[Relay, RelayedSends]:
        """Return the sends through each relay and each proxy."""
        counted: _Sends = {}
        _merge(counted, self._counted)
        for known in self._open.values():
            if isinstance(known, list):
                _count(counted, known)
        return {relay: sends for relay, sends in counted.items() if sends.proven}

    def _add_hops(self, key: MessageIdentity, hops: Sequence[Hop]) -> None:
        known = self._open.get(key)
        both = self._open[key] = [] if known is None else _hops(known)
        both += hops[: max(0, MAX_HOPS - len(both))]

    def _close(self) -> None:
        """Remove the oldest messages and count their sends."""
        # many at once: finding the first key of a dict is slow after removals
        for key in list(islice(self._open, len(self._open) - MAX_MESSAGES * 3 // 4)):
            known = self._open.pop(key)
            if isinstance(known, list):
                _count(self._counted, known)


def _hops(known: ExchangeRecord | list[Hop]) -> list[Hop]:
    return known if isinstance(known, list) else [hop_of(known)]


def _count(counted: _Sends, hops: Sequence[Hop]) -> None:
    """Count the sends of one message, each inner hop once."""
    done: dict[int, bool] = {}
    for pair in hop_pairs(hops):
        if pair.inner not in done or (pair.proven and not done[pair.inner]):
            done[pair.inner] = pair.proven
            sends = _sends_of(counted, pair.relay)
            if sends is not None:
                sends.add(pair, hops)


def _merge(counted: _Sends, more: _Sends) -> None:
    for relay, sends in more.items():
        own = _sends_of(counted, relay)
        if own is not None:
            own.merge(sends)


def _sends_of(counted: _Sends, relay: Relay) -> RelayedSends | None:
    """Return the counters of a relay, or None if there are too many."""
    sends = counted.get(relay)
    if sends is None and len(counted) < MAX_RELAYS:
        sends = counted[relay] = RelayedSends()
    return sends
