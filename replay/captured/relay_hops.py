"""Which send requests a relay made: a proxy of 5.x takes a send and makes it again to a broker.

Rules: such an inner hop has the UNIQ_KEY of the outer one and begins before that is answered. It
comes from the host that was asked, and not from the host that asked first. Where addresses do not
tell, as behind a translated address, one offset message id in both answers proves the relay: who
took the send, from which host it asks on, and whom. That tells its other hops, also those of
refused, unanswered and one-way sends: the later ones, and where the sources were read ahead
(`RelaySearch`) all of them. Memory is bounded by number and by time of the capture.
RocketMQ: RemotingProtocolServer, SendMessageActivity of the proxy.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.times import SECOND

from .captured_send import Origin

MAX_OPEN: Final = 15 * SECOND
"""capture time within which an inner hop begins where the outer one is not answered"""
WITHIN: Final = 3 * SECOND
"""the same, where only its answer can tell it from an attempt: clients try again that late"""
MAX_KEYS: Final = 16_384
"""messages that are remembered"""
MAX_KEY_LENGTH: Final = 256
"""characters of a UNIQ_KEY; the hops of a message with a longer one are not told apart"""
MAX_HOPS: Final = 16
"""requests of a message that are remembered"""
MAX_RELAYS: Final = 4096
"""relays that are remembered"""


class Relay(NamedTuple):
    """An address that makes sends again."""

    address: str
    """`address:port` that took them"""
    from_host: str
    """host from which it made them again"""
    server: str
    """`address:port` that it made them to"""


class InnerHop(NamedTuple):
    """That a relay made one request of another one."""

    outer: Origin
    """the request that it took"""
    inner: Origin
    """the request that it made"""


@dataclass(slots=True, eq=False)
class Hop:
    """A request, as far as it tells hops apart."""

    origin: Origin
    """the request"""
    from_host: str
    """host that sent it"""
    answered_at: int | None = None
    """when it was answered, ns since the epoch; None: not yet"""
    offset_id: str = ""
    """offset message id in the answer"""


class RelaySearch:
    """Answered sends in, in any order; the relays that two answers with one id prove."""

    def __init__(self) -> None:
        self.relays: set[Relay] = set()
        """what was proved so far"""
        self._seen: OrderedDict[tuple[str, str], list[Hop]] = (
            OrderedDict()
        )  # in the order in which they came

    def answered(self, origin: Origin, key: str, answered_at: int, offset_id: str) -> None:
        """Take a request that was answered with an offset message id."""
        if not key or not offset_id or len(key) + len(offset_id) > 2 * MAX_KEY_LENGTH:
            return
        hop = Hop(origin, host_of(origin.requester), answered_at)
        others = self._seen.setdefault((key, offset_id), [])
        for one in others:
            _learn(self.relays, one, hop)
            _learn(self.relays, hop, one)
        if len(others) < MAX_HOPS:
            others.append(hop)
        if len(self._seen) > MAX_KEYS:
            del self._seen[next(iter(self._seen))]


class RelayHops:
    """Requests and answers in, in the order of the capture; which of them a relay made."""

    def __init__(self, relays: Iterable[Relay] = ()) -> None:
        """`relays`: those that are known before."""
        self.relays = set(relays)
        """relays that are known so far"""
        self._hops: OrderedDict[str, list[Hop]] = OrderedDict()  # in the order of the last request

    def request(self, origin: Origin, key: str) -> Origin | None:
        """Remember a request; return the one that it is the inner hop of, None where it is none."""
        if len(key) > MAX_KEY_LENGTH:
            return None
        hop = Hop(origin, host_of(origin.requester))
        before = self._hops.pop(key, [])
        outer = next((one for one in reversed(before) if self._is_inner(hop, one, before[0])), None)
        if len(before) < MAX_HOPS:
            before.append(hop)
        self._hops[key] = before
        self._forget(origin.time)
        return outer.origin if outer is not None else None

    def may_be_inner(self, origin: Origin, key: str) -> bool:
        """Return whether the answer to an open request may show that this one is its inner hop."""
        return any(
            outer.answered_at is None and _is_candidate(origin, outer, WITHIN)
            for outer in self._hops.get(key, ())
        )

    def answer(self, request: Origin, key: str, time: int, offset_id: str) -> list[InnerHop]:
        """Remember an answer; return the inner hops that it proves, of whichever of the two."""
        hops = self._hops.get(key, ())
        hop = next((one for one in hops if one.origin == request), None)
        if hop is None:
            return []
        hop.answered_at, hop.offset_id = time, offset_id
        same = [one for one in hops if offset_id and one.offset_id == offset_id and one is not hop]
        pairs = [(hop, one) for one in same] + [(one, hop) for one in same]
        return [
            InnerHop(outer.origin, inner.origin)
            for outer, inner in pairs
            if _learn(self.relays, outer, inner)
        ]

    def _is_inner(self, hop: Hop, outer: Hop, first: Hop) -> bool:
        if not _is_candidate(hop.origin, outer, MAX_OPEN):
            return False
        asked, server = outer.origin.responder, hop.origin.responder
        if Relay(asked, hop.from_host, server) in self.relays:
            return True
        return hop.from_host == host_of(asked) and hop.from_host != first.from_host

    def _forget(self, now: int) -> None:
        """Drop the messages of which nothing is expected any more."""
        hops = self._hops
        while hops:
            oldest = next(iter(hops))
            if len(hops) <= MAX_KEYS and hops[oldest][-1].origin.time >= now - MAX_OPEN:
                return
            del hops[oldest]


def _learn(relays: set[Relay], outer: Hop, inner: Hop) -> bool:
    """Add the relay that made one request of another; return whether the times allow it."""
    if not _is_candidate(inner.origin, outer, MAX_OPEN):
        return False
    if len(relays) < MAX_RELAYS:
        relays.add(Relay(outer.origin.responder, inner.from_host, inner.origin.responder))
    return True


def _is_candidate(inner: Origin, outer: Hop, within: int) -> bool:
    """Return whether a request began while another one was open, and went on to another server."""
    origin = outer.origin
    end = origin.time + within if outer.answered_at is None else outer.answered_at
    return origin.time <= inner.time <= end and inner.responder != origin.responder
