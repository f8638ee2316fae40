"""Map real addresses to own listeners, opened when a route contains the address.

Rules: a listener uses the real port if it is free, so addresses stay recognizable, and the VIP
channel two below it. Own addresses are never fronted again. Replication ports are not in routes and
have no front.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dissectors.endpoint import endpoint_text, split_endpoint
from dissectors.ports import VIP_BELOW
from dissectors.remoting.broker_addresses import with_broker_addresses

from ..accepting import bound_socket
from ..transport.problems import is_ip_address, is_own_address

MOST_FRONTS: Final = 1024
"""real addresses that have a listener; the largest clusters have some dozens of brokers"""
WILDCARDS: Final = ("0.0.0.0", "::")
"""own addresses that stand for all of this machine"""
_FREE_PAIRS: Final = 20
"""ports that are tried until one and the one two below it are free"""


@dataclass(frozen=True, slots=True)
class Front:
    """A listener and the real address behind it."""

    name: str
    """broker name, `namesrv`, or the real address where the name is not known"""
    targets: tuple[str, ...]
    """real `host:port`, in the order in which they are tried"""
    host: str
    """own address that it listens on"""
    port: int
    """own port"""
    sockets: tuple[tuple[socket.socket, tuple[str, ...]], ...] = field(repr=False)
    """bound sockets, each with its targets: with the VIP channel, there are two"""
    grpc: bool = False
    """clients speak gRPC there"""


class Fronts:
    """The fronts of brokers."""

    def __init__(self, host: str, opened: Callable[[Front], None], failed: Callable[[str], None]):
        """`host` is the listen address; `opened` starts listening, `failed` is called with the
        reason.
        """
        self._host = host
        self._opened = opened
        self._failed = failed
        self._fronts: dict[str, Front] = {}
        self._own: set[tuple[str, int]] = set()

    def add_own(self, bound: socket.socket) -> None:
        """Add an own socket, whose address is never fronted."""
        address, port = bound.getsockname()[:2]
        self._own |= {(self._host, port), (address, port)}

    def leads_here(self, address: str) -> bool:
        """Return whether a connection to `ip:port` would reach one of the own sockets."""
        parts = split_endpoint(address)
        if parts is None:
            return False
        host, port = parts
        return parts in self._own or ((self._host, port) in self._own and self._is_here(host))

    def _is_here(self, host: str) -> bool:
        """Return whether own sockets listen at a host: no name but `localhost` is looked up."""
        if host == "localhost":
            host = "127.0.0.1"
        if self._host not in WILDCARDS:
            return host == self._host
        return is_ip_address(host) and is_own_address(host)

    def known(self) -> list[Front]:
        """Return the fronts opened so far."""
        return list(self._fronts.values())

    def rewritten(self, body: bytes, advertised: str) -> bytes:
        """Return a response body with own addresses, at the advertised host."""

        def front_of(name: str, address: str) -> str:
            front = self._front_of(name, address)
            return address if front is None else endpoint_text(advertised, front.port)

        return with_broker_addresses(body, front_of)

    def grpc_front(self, host: str, port: int, advertised: str) -> tuple[str, int] | None:
        """Return the own host and port for a gRPC endpoint, or None if there are none."""
        front = self._front_of("", endpoint_text(host, port), grpc=True)
        return None if front is None else (advertised, front.port)

    def add(self, address: str, front: Front) -> None:
        """Add a front that the user configured for an address."""
        self._fronts[address] = front

    def _front_of(self, name: str, address: str, grpc: bool = False) -> Front | None:
        front = self._fronts.get(address)
        if front is not None:
            return front
        parts = split_endpoint(address)
        if parts is None or parts in self._own:
            return None
        if len(self._fronts) >= MOST_FRONTS:
            self._failed(f"{address} is not fronted: there are {MOST_FRONTS} brokers already")
            return None
        try:
            # not the port of a broker on this machine: while it is down, a listener reaches itself
            bound, vip = _bound(self._host, 0 if grpc or self._is_here(parts[0]) else parts[1])
        except OSError as error:
            self._failed(f"{address} is not fronted: {error.strerror or error}")
            return None
        port: int = bound.getsockname()[1]
        sockets: list[tuple[socket.socket, tuple[str, ...]]] = [(bound, (address,))]
        if vip is not None:
            sockets.append((vip, (endpoint_text(parts[0], parts[1] - VIP_BELOW),)))
        front = Front(name or address, (address,), self._host, port, tuple(sockets), grpc)
        self._fronts[address] = front
        for listening, _ in sockets:
            self.add_own(listening)
        self._opened(front)
        return front


def _bound(host: str, wanted: int) -> tuple[socket.socket, socket.socket | None]:
    """Return sockets for a broker and its VIP channel; None for the latter if no pair is free.

    Raise OSError if no port is free at all.
    """
    for port in (wanted, *[0] * _FREE_PAIRS):
        try:
            bound = bound_socket(host, port)
        except OSError:
            if port == 0:
                raise
            continue
        below = bound.getsockname()[1] - VIP_BELOW
        if wanted <= VIP_BELOW or below <= 0:
            return bound, None
        try:
            return bound, bound_socket(host, below)
        except OSError:
            bound.close()
    return bound_socket(host, 0), None
