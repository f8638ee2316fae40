"""Where replayed messages may go: never to a captured address, elsewhere only as the user agreed.

Rules: pure. What counts is what the system connects to, in whatever notation: ``0.0.0.0``, every
loopback address and the own addresses of this machine are one host, and an IPv6 address that has an
IPv4 address in it (mapped, compatible, translated, 6to4, Teredo) is that one, too. The address that
a captured request was sent to is refused for good; outside of loopback its whole host is, because
the next port of a production broker is production too. What is not loopback needs the user's
consent, whether the user named it or a NameServer did.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Final

from dissectors.endpoint import host_and_port_text
from dissectors.foreign import natural_of
from dissectors.printable import printable

THIS_MACHINE: Final = "this machine"
_OWN: Final = "an address of this machine other than loopback"
ANY_PORT: Final = 0
"""port of a captured address that stands for all ports of its host"""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LAST_32_BITS: Final = tuple(
    ipaddress.IPv6Network(text)
    for text in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""compatible, translated (SIIT), NAT64 with the well-known and the local prefix"""
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


class TargetRefused(Exception):
    """Nothing may be sent to an address; the text says why and what to do."""


class Guard:
    """Knows the captured addresses and what was agreed to; asked before and after connecting."""

    def __init__(self, consent: bool, is_own: Callable[[str], bool] | None = None) -> None:
        """`consent`: addresses that are not loopback may be used.

        `is_own` says whether an IP address is one of this machine.
        """
        self.consent = consent
        self._is_own = is_own or _never
        self._learned: set[str] = set()
        self._places: dict[tuple[str, int], str] = {}
        self._hosts: dict[str, str] = {}
        self._exempt: frozenset[str] = frozenset()
        self._allowed: set[str] = set()

    def learn(self, captured: Iterable[str]) -> None:
        """More addresses that captured requests were sent to, as ``host:port``."""
        new = set(captured) - self._learned
        if not new:
            return
        self._learned |= new
        self._allowed.clear()
        for address in new:
            host, port = host_and_port(address)
            for name in _names_of(host, self._is_own):
                self._places.setdefault((name, port), address)
                if name != THIS_MACHINE:
                    self._hosts.setdefault(name, address)

    def exempt(self, addresses: Iterable[str]) -> None:
        """Let ``ip:port`` be used where this process itself listens, whatever was captured."""
        self._exempt = frozenset(addresses)
        self._allowed.clear()

    def why_not(self, address: str) -> str | None:
        """Why nothing may be sent to ``host:port``; None where it may."""
        try:
            self.check(address)
        except TargetRefused as refusal:
            return str(refusal)
        return None

    def check(self, address: str) -> None:
        """Raise TargetRefused where nothing may be sent to ``host:port``, an IP address."""
        if address in self._allowed:
            return
        if address not in self._exempt:
            self._check(address)
        self._allowed.add(address)

    def _check(self, address: str) -> None:
        host, port = host_and_port(address)
        captured = self._captured(host, port)
        if captured is not None:
            shown = printable(address)
            if captured != address:
                shown = f"{shown} reaches the host of {printable(captured)}, which"
            raise TargetRefused(
                f"{shown} is an address of the capture; "
                "captured traffic is never sent back to where it came from"
            )
        if not self.consent and not is_loopback(host):
            raise TargetRefused(
                f"{printable(address)} is not a loopback address; --yes allows it, "
                "or start rmqtool on a terminal to be asked"
            )

    def _captured(self, host: str, port: int) -> str | None:
        """Return the captured address that a target would reach; None where there is none."""
        for name in _names_of(host, self._is_own):
            found = self._hosts.get(name) or self._places.get((name, ANY_PORT))
            found = found or self._places.get((name, port))
            if found is not None:
                return found
        return None


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of ``host:port`` or ``[host]:port``; port 0 where there is none."""
    host, port = host_and_port_text(address)
    number = natural_of(port)
    if not host or number is None or len(port) > 5:
        return address.strip("[]"), ANY_PORT
    return host, number


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's loopback; a name is only where it is ``localhost``."""
    if host == "localhost":
        return True
    address = _address_of(host)
    return address is not None and address.is_loopback


def _names_of(host: str, is_own: Callable[[str], bool]) -> set[str]:
    """All names, one spelling each, of what the system may reach under a host's address."""
    if host == "localhost":
        return {THIS_MACHINE}
    address = _address_of(host)
    if address is None:
        return {host.lower().rstrip(".")}
    found: set[str] = set()
    for one in (address, *_inner_addresses(address)):
        name = str(one)
        if one.is_unspecified or one.is_loopback:
            found.add(THIS_MACHINE)
        elif is_own(name):
            found |= {name, THIS_MACHINE, _OWN}
        else:
            found.add(name)
    return found


def _address_of(host: str) -> _Address | None:
    """Return the IP address that a text is, without its scope; an IPv4 one where it is mapped."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _inner_addresses(address: _Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address can stand for."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    number = int(address)
    inner: list[int] = []
    if number > 1 and any(address in network for network in _LAST_32_BITS):
        inner.append(number & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:  # RFC 6052: the 48 bits of the prefix, 16, a byte of zeros, 16
        inner.append((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)
    if (number >> 32 & 0xFFFFFFFF) in _ISATAP:
        inner.append(number & 0xFFFFFFFF)
    found = [ipaddress.IPv4Address(one) for one in inner]
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found.append(address.teredo[1])
    return found


def _never(_: str) -> bool:
    return False
