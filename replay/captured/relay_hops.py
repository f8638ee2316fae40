"""Which requests a relay made, as they are read: the rule is that of `dissectors.rows.relays`.

Rules: requests and responses come in the order of the capture, so an inner hop is often known
before its response is. Memory is bounded by number and by time of the capture.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, NamedTuple

from dissectors.endpoint import host_of
from dissectors.rows.relays import MAX_OPEN, MAX_RELAYS, Hop, Relay, hop_pairs

from .captured_send import Origin

MAX_KEYS: Final = 16_384
"""messages that are remembered"""
MAX_KEY_LENGTH: Final = 256
"""characters of a UNIQ_KEY; the hops of a message with a longer one are not told apart"""
MAX_HOPS: Final = 16
"""requests of a message that are remembered"""


class InnerHop(NamedTuple):
    """A request that a relay made of another one."""

    outer: Origin
    """the request that it took"""
    inner: Origin
    """the request that it made"""


class _Hops(NamedTuple):
    """The requests of a message."""

    origins: list[Origin]
    hops: list[Hop]


class RelayHops:
    """Requests and answers in, in the order of the capture; which of them a relay made."""

    def __init__(self, relays: Iterable[Relay] = ()) -> None:
        """`relays`: those that are known before."""
        self.relays = set(relays)
        """relays that are known so far"""
        self._hops: OrderedDict[str, _Hops] = OrderedDict()  # in the order of the last request

    def request(self, origin: Origin, key: str) -> Origin | None:
        """Remember a request; return the one that it is the inner hop of, None where it is none."""
        if len(key) > MAX_KEY_LENGTH:
            return None
        known = self._hops.pop(key, None) or _Hops([], [])
        place = len(known.hops)
        known.origins.append(origin)
        host = host_of(origin.requester)
        known.hops.append(
            Hop(origin.time, None, host, origin.responder, None, False, origin.capture)
        )
        outer = None
        for pair in hop_pairs(known.hops):
            if pair.inner == place and (pair.proven or pair.relay in self.relays):
                outer = known.origins[pair.outer]
                self._learn(pair.relay)
                break
        if place >= MAX_HOPS:
            del known.origins[-1], known.hops[-1]
        self._hops[key] = known
        self._forget(origin.time)
        return outer

    def may_be_inner(self, origin: Origin, key: str) -> bool:
        """Return whether the answer to an open request may show that this one is its inner hop."""
        known = self._hops.get(key)
        return known is not None and any(
            known.origins[pair.inner] == origin and known.hops[pair.outer].end is None
            for pair in hop_pairs(known.hops)
        )

    def answer(self, request: Origin, key: str, time: int, offset_id: str) -> list[InnerHop]:
        """Remember an answer; return the inner hops that its id proves, of whichever of the two."""
        known = self._hops.get(key)
        if known is None or request not in known.origins:
            return []
        origins, hops = known
        place = origins.index(request)
        hops[place] = hops[place]._replace(end=time, id=offset_id)
        found = []
        for pair in hop_pairs(hops):
            alike = hops[pair.inner].id == hops[pair.outer].id == offset_id != ""
            if pair.proven and alike and place in (pair.inner, pair.outer):
                self._learn(pair.relay)
                found.append(InnerHop(origins[pair.outer], origins[pair.inner]))
        return found

    def _learn(self, relay: Relay) -> None:
        if len(self.relays) < MAX_RELAYS:
            self.relays.add(relay)

    def _forget(self, now: int) -> None:
        """Drop the messages of which nothing is expected any more."""
        hops = self._hops
        while hops:
            oldest = next(iter(hops))
            if len(hops) <= MAX_KEYS and hops[oldest].hops[-1].begin >= now - MAX_OPEN:
                return
            del hops[oldest]
