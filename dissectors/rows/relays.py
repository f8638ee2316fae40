"""Which requests a relay made of requests that it took: one rule for every view.

A relay, such as the proxy of 5.x, takes a request and makes it again to a broker while its client
waits. These are the outer and the inner hop of one request, and the inner hop is no attempt of the
client. An inner hop goes on to another server while the outer one is open, and one of these holds:

* The outer hop is a call of gRPC and the inner one is not: no client speaks both about a message.
* Both responses have one offset message id, which is one stored message. The hop that took longer
  is the outer one.
* It comes from the host that the outer hop was sent to, which is not the message's client.
* Another message proved the relay: this address, asking from this host, asks this server.

The state is bounded, merges, and does not depend on the order of rows within its bounds.
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
"""capture time within which an inner hop begins where the outer one has no response"""
SAME_HOST_OPEN: Final = 3 * SECOND
"""the same where both come from one host: its client tries again that late"""
MAX_NEAR: Final = 64
"""hops of one message before and after an inner one that may be its outer one"""
MAX_MESSAGES: Final = 10_000
"""messages whose further hops are waited for"""
MAX_HOPS: Final = 64
"""hops of one message that are kept"""
MAX_RELAYS: Final = 4096
"""relays that are kept"""
_SKEW: Final = SECOND
"""difference of the clocks of two captures"""


class Hop(NamedTuple):
    """A request and its response, as far as they tell hops apart; times in ns."""

    begin: int
    end: int | None
    """time of the response; None: not answered"""
    host: str
    """host that sent the request"""
    server: str
    """`address:port` that it was sent to"""
    id: str | None = None
    """offset message id of the response"""
    call: bool = False
    """a call of gRPC"""
    capture: str | None = None
    """its times are by the clock of this capture"""

    @property
    def took(self) -> int:
        """Time to the response; 0 without one."""
        return 0 if self.end is None else self.end - self.begin


class Relay(NamedTuple):
    """An address that makes requests again."""

    address: str
    """`address:port` that takes them"""
    from_host: str
    """host from which it makes them again"""
    server: str
    """`address:port` that it makes them to"""


class HopPair(NamedTuple):
    """An inner hop and the outer hop that it may be made of, by their places among the hops."""

    inner: int
    outer: int
    relay: Relay
    proven: bool
    """by these two alone; otherwise by another message that proves the relay"""
    of_call: bool
    """the outer hop is a call of gRPC"""


def hop_of(row: ExchangeRecord) -> Hop:
    """Return an exchange, which has a request, as a hop."""
    return Hop(
        row.request_time or 0,
        row.response_time,
        host_of(row.requester),
        row.responder,
        row.offset_msg_id,
        row.request_code is None and is_call(row.request_name),
        row.capture,
    )


def hop_pairs(hops: Sequence[Hop]) -> Iterator[HopPair]:
    """Yield the pairs of hops of one message, of each inner hop the latest outer one first."""
    if len(hops) < 2:
        return
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
    """Return whether two hops prove that a relay made one of the other; None: it did not.

    `client` is the host that sent the message first.
    """
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
        return True
    if hop.id and hop.id == outer.id:
        return True if (hop.took, -hop.begin) < (outer.took, -outer.begin) else None
    return hop.host != client and hop.host == host_of(outer.server)


def proven_relays(messages: Iterable[Sequence[Hop]]) -> frozenset[Relay]:
    """Return the relays of remoting that some messages prove."""
    return frozenset(
        pair.relay
        for hops in messages
        for pair in hop_pairs(hops)
        if pair.proven and not pair.of_call
    )


def inner_hops(hops: Sequence[Hop], relays: Collection[Relay] = ()) -> dict[int, int]:
    """Return inner hop -> outer hop, by their places; `relays` are those that are known."""
    found: dict[int, int] = {}
    for inner, outer, relay, proven, _ in hop_pairs(hops):
        if inner not in found and (proven or relay in relays):
            before: int | None = outer
            while before is not None and before != inner:
                before = found.get(before)
            if before is None:  # else the clocks of captures turn a chain of hops into a circle
                found[inner] = outer
    return found


@dataclass(slots=True)
class RelayedSends:
    """Sends through one relay that were answered on both sides; times in µs."""

    outer: Histogram = field(default_factory=Histogram)
    """what clients waited"""
    inner: Histogram = field(default_factory=Histogram)
    """of that what the relay waited for the server"""
    own: Histogram = field(default_factory=Histogram)
    """the rest"""
    proven: bool = False
    of_calls: bool = False
    """the relay is a proxy that takes calls of gRPC"""

    def add(self, pair: HopPair, hops: Sequence[Hop]) -> None:
        """Count both hops of a send."""
        self.proven |= pair.proven
        self.of_calls |= pair.of_call
        outer, inner = hops[pair.outer], hops[pair.inner]
        if outer.end is not None and inner.end is not None:
            waited, asked = outer.took // 1000, inner.took // 1000
            self.outer.add(waited)
            self.inner.add(asked)
            self.own.add(waited - asked)

    def merge(self, other: RelayedSends) -> None:
        """Count the sends of `other`."""
        self.proven |= other.proven
        self.of_calls |= other.of_calls
        self.outer.merge(other.outer)
        self.inner.merge(other.inner)
        self.own.merge(other.own)


_Sends = dict[Relay, RelayedSends]


class Relays:
    """Exchanges in; the relays that they prove, and the sends through each."""

    def __init__(self) -> None:
        self._open: dict[MessageIdentity, ExchangeRecord | list[Hop]] = {}
        """message -> its only send so far, or its hops; in the order in which messages came"""
        self._counted: _Sends = {}
        """sends through relays, proven or not, of messages that are no longer open"""

    def add(self, row: ExchangeRecord) -> None:
        """Take an exchange; anything but a send is skipped."""
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
        """Add what other rows show."""
        _merge(self._counted, other._counted)
        for key, known in other._open.items():
            self._add_hops(key, _hops(known))
        if len(self._open) > MAX_MESSAGES:
            self._close()

    def proven(self) -> frozenset[Relay]:
        """Return the relays of remoting."""
        return frozenset(relay for relay, sends in self.sends().items() if not sends.of_calls)

    def sends(self) -> Mapping[Relay, RelayedSends]:
        """Return the sends through each relay and each proxy."""
        found: _Sends = {}
        _merge(found, self._counted)
        for known in self._open.values():
            if isinstance(known, list):
                _count(found, known)
        return {relay: sends for relay, sends in found.items() if sends.proven}

    def _add_hops(self, key: MessageIdentity, hops: Sequence[Hop]) -> None:
        known = self._open.get(key)
        both = self._open[key] = [] if known is None else _hops(known)
        both += hops[: max(0, MAX_HOPS - len(both))]

    def _close(self) -> None:
        """Forget the oldest messages; their sends count."""
        # many at once: to look for the first key of a dict takes long once others were removed
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
    """Return what is counted of a relay; None: there are too many."""
    found = counted.get(relay)
    if found is None and len(counted) < MAX_RELAYS:
        found = counted[relay] = RelayedSends()
    return found
