"""Allowed targets: never a captured address, others only with the user's consent.

Rules: pure. Addresses are compared by what the system connects to, in any notation. The target of a
captured request is always refused. Non-loopback hosts need the user's consent, host by host. An
approved name may resolve to any address; others are refused before the lookup.
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
"""pseudo-port that means all ports of a captured host"""

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


WAY_OUT: Final = "use --yes, or --allow NETWORK|HOST, or start rmqtool on a terminal to be asked"
"""hint how to approve an address"""


_MOST_KNOWN: Final = 4096
"""texts whose address is remembered: each send asks for that of its broker several times"""
_LONGEST_KNOWN: Final = 64
"""characters of such a text: more than any address has, unless its scope is long"""


class TargetRefused(Exception):
    """A target is refused; the text says why and what to do."""


class Agreement:
    """The approved non-loopback hosts."""

    def __init__(self, everything: bool = False, allowed: Iterable[str] = ()) -> None:
        """Approve `allowed`: networks (``10.0.0.0/8``), addresses, or host names.

        Raise ValueError for any other text, or an ambiguous one.
        """
        self.everything = everything
        """all hosts are approved"""
        self._networks: list[_Network] = []
        self._hosts: set[str] = set()
        for text in allowed:
            if "/" in text:
                self._networks.append(_network_of(text))
            else:
                self._hosts.add(_allowed_host_of(text))

    def add(self, addresses: Iterable[str]) -> None:
        """Approve the hosts of these ``host:port``."""
        self._hosts |= {_host_name(host_and_port(address)[0], scoped=True) for address in addresses}

    def covers(self, address: str) -> bool:
        """Return whether the host of ``host:port`` is approved, without resolving names."""
        host = host_and_port(address)[0]
        names = _host_name(host), _host_name(host, scoped=True)
        if self.everything or is_loopback(host) or not self._hosts.isdisjoint(names):
            return True
        parsed = _address_of(host)
        return parsed is not None and any(parsed in network for network in self._networks)


class Guard:
    """Checks targets against captured addresses and approvals, before and after connecting."""

    def __init__(
        self, consent: Agreement | bool, is_own: Callable[[str], bool] | None = None
    ) -> None:
        """`consent`: the approved non-loopback addresses, or whether all are approved.

        `is_own` returns whether an IP address belongs to this machine.
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
        # what was allowed before may be an address of the capture
        self._allowed.clear()
        self._not_captured.clear()
        for address in new:
            host, port = host_and_port(address)
            for name in _names_of(host, self._is_own):
                self._places.setdefault((name, port), address)
                # outside loopback, another port of a production broker is production, too
                if name != THIS_MACHINE:
                    self._hosts.setdefault(name, address)

    def exempt(self, addresses: Iterable[str]) -> None:
        """Allow an ``ip:port`` of this process's own listener, even if captured."""
        self._exempt = frozenset(addresses)
        self._allowed.clear()

    def why_not(self, address: str, named: str = "") -> str | None:
        """Return why ``host:port`` is refused, or None if it is allowed. See `check`."""
        try:
            self.check(address, named)
        except TargetRefused as refusal:
            return str(refusal)
        return None

    def check(self, address: str, named: str = "") -> None:
        """Raise TargetRefused if ``host:port`` is not an allowed target.

        `named` is the original name if the address is a resolved one.
        """
        key = address, named
        if key in self._allowed:
            return
        if address not in self._exempt:
            self._check(address, named)
        self._allowed.add(key)

    def check_captured(self, address: str) -> None:
        """Raise TargetRefused if ``host:port`` was captured, even if approved."""
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
        # localhost is always loopback, and must resolve to a loopback address
        if not agreed(address) and (not named or is_localhost(named) or not agreed(named)):
            raise TargetRefused(f"{printable(address)} is not a loopback address; {WAY_OUT}")

    def _captured(self, host: str, port: int) -> str | None:
        """Return the captured address that a target would reach, or None."""
        for name in _names_of(host, self._is_own):
            captured = self._hosts.get(name) or self._places.get((name, ANY_PORT))
            captured = captured or self._places.get((name, port))
            if captured is not None:
                return captured
        return None


def host_and_port(address: str) -> tuple[str, int]:
    """Split ``host:port`` or ``[host]:port``; the port is 0 if absent."""
    host, port = host_and_port_text(address)
    number = natural_of(port)
    if not host or number is None or len(port) > 5:
        return address.strip("[]"), ANY_PORT
    return host, number


def is_localhost(address: str) -> bool:
    """Return whether the host of ``host:port`` is ``localhost``."""
    return _host_name(host_and_port(address)[0]) == "localhost"


def is_loopback(host: str) -> bool:
    """Return whether a host is a loopback address or ``localhost``."""
    if host == "localhost":
        return True
    address = _address_of(host)
    return address is not None and address.is_loopback


def _host_name(host: str, scoped: bool = False) -> str:
    """Return the canonical spelling of a host, an address or a name.

    `scoped`: keep the zone of a link-local address (``fe80::1%eth0``).
    """
    address = _address_of(host)
    if address is not None:
        return str(address) + ("".join(host.partition("%")[1:]) if scoped else "")
    name = host.lower().rstrip(".")
    # "10.0.0.1." is not a valid address to the system: it asks the DNS for it
    return name if _address_of(name) is None else host.lower()


def _network_of(text: str) -> _Network:
    """Parse a network, an IPv4 one if it is mapped. Raise ValueError if invalid."""
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
    """Return the canonical spelling of an address or a name; ValueError if invalid."""
    host = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    name = _host_name(host, scoped=True)
    if _address_of(host) is not None:
        return name
    if not name or not all(letter.isalnum() or letter in "-._" for letter in name):
        raise ValueError(f"{text!r} is not a network, address, or host name")
    # 167772161, 0x0a000001, 012.0.0.1, 10.1, digits of other alphabets: 10.0.0.1 to some resolvers
    last = name.rstrip(".").rpartition(".")[2]
    if last[0].isnumeric() and (last.isnumeric() or last[1:2] == "x"):
        raise ValueError(f"{text!r}: write an address in full, such as 10.0.0.1")
    return name


def _names_of(host: str, is_own: Callable[[str], bool]) -> set[str]:
    """Return the canonical spellings of all hosts that an address may reach."""
    if host == "localhost":
        return {THIS_MACHINE}
    address = _address_of(host)
    if address is None:
        bare = host.rstrip(".")
        is_like_address = bare != host and _address_of(bare) is not None
        return {_host_name(host), *(_names_of(bare, is_own) if is_like_address else ())}
    names: set[str] = set()
    # 0.0.0.0, all loopback addresses and the own addresses of this machine are one host. An IPv6
    # address may also reach the IPv4 address that it embeds.
    for each in (address, *_inner_addresses(address)):
        name = str(each)
        if each.is_unspecified or each.is_loopback:
            names.add(THIS_MACHINE)
        elif is_own(name):
            names |= {name, THIS_MACHINE, _OWN}
        else:
            names.add(name)
    return names


def _address_of(host: str) -> _Address | None:
    """Parse an IP address without its zone; an IPv4 one if it is mapped."""
    return _known_address_of(host) if len(host) <= _LONGEST_KNOWN else _parsed_address_of(host)


def _parsed_address_of(host: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


_known_address_of = lru_cache(_MOST_KNOWN)(_parsed_address_of)


def _inner_addresses(address: _Address) -> list[ipaddress.IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address may embed."""
    if isinstance(address, ipaddress.IPv4Address):
        return []
    number = int(address)
    inner: list[int] = []
    # :: and ::1 are in ::/96, but embed nothing
    if number > 1 and any(address in network for network in _LAST_32_BITS):
        inner.append(number & 0xFFFFFFFF)
    if address in _LOCAL_NAT64:  # RFC 6052: the 48 bits of the prefix, 16, a byte of zeros, 16
        inner.append((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)
    if (number >> 32 & 0xFFFFFFFF) in _ISATAP:
        inner.append(number & 0xFFFFFFFF)
    addresses = [ipaddress.IPv4Address(value) for value in inner]
    if address.sixtofour is not None:
        addresses.append(address.sixtofour)
    if address.teredo is not None:
        addresses.append(address.teredo[1])
    return addresses


def _never(_: str) -> bool:
    return False
