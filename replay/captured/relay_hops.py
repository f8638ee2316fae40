"""Find requests that a relay made while reading, by the rule of `dissectors.rows.relays`.

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
    """A request that a relay forwarded."""

    outer: Origin
    """the request that the relay received"""
    inner: Origin
    """the request that the relay sent"""


class MessageHops(NamedTuple):
    """The requests of a message."""

    origins: list[Origin]
    hops: list[Hop]


class RelayHops:
    """Takes requests and responses in capture order; finds those a relay made."""

    def __init__(self, relays: Iterable[Relay] = ()) -> None:
        """`relays`: those already known."""
        self.relays = set(relays)
        """relays known so far"""
        self.known: OrderedDict[str, MessageHops] = OrderedDict()
        """the requests of each message that is remembered, by UNIQ_KEY; the latest one is last"""

    def request(self, origin: Origin, key: str) -> Origin | None:
        """Add a request; return the request whose inner hop it is, or None."""
        if len(key) > MAX_KEY_LENGTH:
            return None
        entry = self.known.pop(key, None) or MessageHops([], [])
        place = len(entry.hops)
        entry.origins.append(origin)
        host = host_of(origin.client_address)
        entry.hops.append(
            Hop(origin.time, None, host, origin.server_address, None, False, origin.capture)
        )
        outer = None
        for pair in hop_pairs(entry.hops):
            if pair.inner == place and (pair.proven or pair.relay in self.relays):
                outer = entry.origins[pair.outer]
                self._learn(pair.relay)
                break
        if place >= MAX_HOPS:
            del entry.origins[-1], entry.hops[-1]
        self.known[key] = entry
        self._forget(origin.time)
        return outer

    def may_be_inner(self, origin: Origin, key: str) -> bool:
        """Return whether a pending response may prove that this is an inner hop."""
        entry = self.known.get(key)
        return entry is not None and any(
            entry.origins[pair.inner] == origin and entry.hops[pair.outer].end is None
            for pair in hop_pairs(entry.hops)
        )

    def add_response(self, request: Origin, key: str, time: int, offset_id: str) -> list[InnerHop]:
        """Add a response; return the inner hops that its id proves, of either request."""
        entry = self.known.get(key)
        if entry is None or request not in entry.origins:
            return []
        origins, hops = entry
        place = origins.index(request)
        hops[place] = hops[place]._replace(end=time, id=offset_id)
        inner_hops = []
        for pair in hop_pairs(hops):
            alike = hops[pair.inner].id == hops[pair.outer].id == offset_id != ""
            if pair.proven and alike and place in (pair.inner, pair.outer):
                self._learn(pair.relay)
                inner_hops.append(InnerHop(origins[pair.outer], origins[pair.inner]))
        return inner_hops

    def _learn(self, relay: Relay) -> None:
        if len(self.relays) < MAX_RELAYS:
            self.relays.add(relay)

    def _forget(self, now: int) -> None:
        """Drop the messages that expect no further packets."""
        hops = self.known
        while hops:
            oldest = next(iter(hops))
            if len(hops) <= MAX_KEYS and hops[oldest].hops[-1].begin >= now - MAX_OPEN:
                return
            del hops[oldest]
