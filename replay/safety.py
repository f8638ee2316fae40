"""Where messages may go: never to a captured address, elsewhere only as the user agreed.

Rules: pure. What counts is what the system connects to, in whatever notation: ``0.0.0.0``, every
loopback address and the own addresses of this machine are one host, and an IPv6 address that has an
IPv4 address in it (mapped, compatible, translated, 6to4, Teredo) is that one, too. The address that
a captured request was sent to is refused for good; outside of loopback its whole host is, because
the next port of a production broker is production too. What is not loopback needs the user's
consent, host by host. A name that was agreed to may stand for any address; one that was not is
refused before it is looked up.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Final

from dissectors.endpoint import host_and_port_text
from dissectors.foreign import natural_of
from dissectors.printable import printable

THIS_MACHINE: Final = "this machine"
_OWN: Final = "an address of this machine other than loopback"
ANY_PORT: Final = 0
"""port of a captured address that stands for all ports of its host"""

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_LAST_32_BITS: Final = tuple(
    ipaddress.IPv6Network(text)
    for text in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""compatible, translated (SIIT), NAT64 with the well-known and the local prefix"""
_LOCAL_NAT64: Final = ipaddress.IPv6Network("64:ff9b:1::/48")
_MAPPED_BITS: Final = 96
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


WAY_OUT: Final = (
    "--yes allows it, --allow NETWORK|HOST some, or start rmqtool on a terminal to be asked"
)
"""how an address comes to be agreed to"""


_MOST_KNOWN: Final = 4096
"""texts whose address is remembered: each send asks for that of its broker several times"""
_LONGEST_KNOWN: Final = 64
"""characters of such a text: more than any address has, unless its scope is long"""


class TargetRefused(Exception):
    """Nothing may be sent to an address; the text says why and what to do."""


class Agreement:
    """Which hosts that are not loopback may be used."""

    def __init__(self, everything: bool = False, allowed: Iterable[str] = ()) -> None:
        """Agree to `allowed`: networks (``10.0.0.0/8``), addresses or names of hosts.

        Raise ValueError for a text that is none of them, or that may mean more than it seems to.
        """
        self.everything = everything
        """no host is asked for"""
        self._networks: list[_Network] = []
        self._hosts: set[str] = set()
        for text in allowed:
            if "/" in text:
                self._networks.append(_network_of(text))
            else:
                self._hosts.add(_allowed_host_of(text))

    def add(self, addresses: Iterable[str]) -> None:
        """Agree to the hosts of these ``host:port``."""
        self._hosts |= {_host_name(host_and_port(address)[0], scoped=True) for address in addresses}

    def covers(self, address: str) -> bool:
        """Return whether the host of ``host:port`` may be used; a name is not looked up."""
        host = host_and_port(address)[0]
        names = _host_name(host), _host_name(host, scoped=True)
        if self.everything or is_loopback(host) or not self._hosts.isdisjoint(names):
            return True
        found = _address_of(host)
        return found is not None and any(found in network for network in self._networks)


class Guard:
    """Knows the captured addresses and what was agreed to; asked before and after connecting."""

    def __init__(
        self, consent: Agreement | bool, is_own: Callable[[str], bool] | None = None
    ) -> None:
        """`consent`: which addresses that are not loopback may be used, or whether all may.

        `is_own` says whether an IP address is one of this machine.
        """
        self.agreement = consent if isinstance(consent, Agreement) else Agreement(consent)
        """what the user agreed to; more may be added at any time"""
        self._is_own = is_own or _never
        self._learned: set[str] = set()
        self._places: dict[tuple[str, int], str] = {}
        self._hosts: dict[str, str] = {}
        self._exempt: frozenset[str] = frozenset()
        self._allowed: set[tuple[str, str]] = set()
        self._not_captured: set[str] = set()

    def learn(self, captured: Iterable[str]) -> None:
        """Add addresses that captured requests were sent to, as ``host:port``."""
        new = set(captured) - self._learned
        if not new:
            return
        self._learned |= new
        self._allowed.clear()
        self._not_captured.clear()
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

    def why_not(self, address: str, named: str = "") -> str | None:
        """Return why nothing may be sent to ``host:port``; None where it may. See `check`."""
        try:
            self.check(address, named)
        except TargetRefused as refusal:
            return str(refusal)
        return None

    def check(self, address: str, named: str = "") -> None:
        """Raise TargetRefused where nothing may be sent to ``host:port``.

        `named` is what the user or a route calls it, where the address is what that stands for.
        """
        asked = address, named
        if asked in self._allowed:
            return
        if address not in self._exempt:
            self._check(address, named)
        self._allowed.add(asked)

    def check_captured(self, address: str) -> None:
        """Raise TargetRefused where ``host:port`` was captured, agreed to or not."""
        if address in self._exempt or address in self._not_captured:
            return
        captured = self._captured(*host_and_port(address))
        if captured is not None:
            shown = printable(address)
            if captured != address:
                shown = f"{shown} reaches the host of {printable(captured)}, which"
            raise TargetRefused(
                f"{shown} is an address of the capture; "
                "captured traffic is never sent back to where it came from"
            )
        self._not_captured.add(address)

    def _check(self, address: str, named: str) -> None:
        self.check_captured(address)
        agreed = self.agreement.covers
        # localhost is loopback whatever the user says, and what it stands for must be, too
        if not agreed(address) and (not named or is_localhost(named) or not agreed(named)):
            raise TargetRefused(f"{printable(address)} is not a loopback address; {WAY_OUT}")

    def _captured(self, host: str, port: int) -> str | None:
        """Return the captured address that a target would reach; None where there is none."""
        for name in _names_of(host, self._is_own):
            found = self._hosts.get(name) or self._places.get((name, ANY_PORT))
            found = found or self._places.get((name, port))
            if found is not None:
                return found
        return None


def host_and_port(address: str) -> tuple[str, int]:
    """Return host and port of ``host:port`` or ``[host]:port``; port 0 where there is none."""
    host, port = host_and_port_text(address)
    number = natural_of(port)
    if not host or number is None or len(port) > 5:
        return address.strip("[]"), ANY_PORT
    return host, number


def is_localhost(address: str) -> bool:
    """Return whether ``host:port`` has the name of loopback."""
    return _host_name(host_and_port(address)[0]) == "localhost"


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine's loopback; of names, only ``localhost`` is."""
    if host == "localhost":
        return True
    address = _address_of(host)
    return address is not None and address.is_loopback


def _host_name(host: str, scoped: bool = False) -> str:
    """Return the one spelling of a host, an address or a name.

    `scoped`: with the interface of an address that is one of a link (``fe80::1%eth0``).
    """
    address = _address_of(host)
    if address is not None:
        return str(address) + ("".join(host.partition("%")[1:]) if scoped else "")
    name = host.lower().rstrip(".")
    # "10.0.0.1." is not a valid address to the system: it asks the DNS for it
    return name if _address_of(name) is None else host.lower()


def _network_of(text: str) -> _Network:
    """Return a network; an IPv4 one where it is mapped. Raise ValueError for what is none."""
    if "%" in text:
        raise ValueError(f"{text!r}: a network has no scope")
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise ValueError(f"{text!r} is not a network, such as 10.0.0.0/8") from None
    mapped = network[0].ipv4_mapped if isinstance(network[0], ipaddress.IPv6Address) else None
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:
        return ipaddress.IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))
    return network


def _allowed_host_of(text: str) -> str:
    """Return the one spelling of an address or a name; raise ValueError for what is none."""
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    name = _host_name(host, scoped=True)
    if _address_of(host) is not None:
        return name
    if not name or not all(one.isalnum() or one in "-._" for one in name):
        raise ValueError(f"{text!r} is not a network, address or name of a host")
    # 167772161, 0x0a000001, 012.0.0.1, 10.1, digits of other alphabets: 10.0.0.1 to some resolvers
    last = name.rstrip(".").rpartition(".")[2]
    if last[0].isnumeric() and (last.isnumeric() or last[1:2] == "x"):
        raise ValueError(f"{text!r}: write an address in full, such as 10.0.0.1")
    return name


def _names_of(host: str, is_own: Callable[[str], bool]) -> set[str]:
    """Return all names, one spelling each, of what the system may reach under a host's address."""
    if host == "localhost":
        return {THIS_MACHINE}
    address = _address_of(host)
    if address is None:
        bare = host.rstrip(".")
        is_like_address = bare != host and _address_of(bare) is not None
        return {_host_name(host), *(_names_of(bare, is_own) if is_like_address else ())}
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
    return _known_address_of(host) if len(host) <= _LONGEST_KNOWN else _parsed_address_of(host)


def _parsed_address_of(host: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


_known_address_of = lru_cache(_MOST_KNOWN)(_parsed_address_of)


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
