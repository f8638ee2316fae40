"""Where replayed messages may go: never to a captured address, elsewhere only as the user agreed.

Rules: pure. An address that a captured request was sent to is refused for good; outside of loopback
its whole host is, because the next port of a production broker is production too. What is not
loopback needs the user's consent, whether the user named it or a NameServer did.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from dissectors.printable import printable


class TargetRefused(Exception):
    """Nothing may be sent to an address; the text says why and what to do."""


class Guard:
    """Knows the captured addresses and what was agreed to; asked before each connection."""

    def __init__(self, consent: bool) -> None:
        """`consent`: addresses that are not loopback may be used."""
        self.consent = consent
        self._addresses: set[str] = set()
        self._hosts: set[str] = set()
        self._allowed: set[str] = set()

    def learn(self, captured: Iterable[str]) -> None:
        """More addresses that captured requests were sent to, as ``host:port``."""
        before = len(self._addresses)
        for address in captured:
            host, _ = host_and_port(address)
            self._addresses.add(normal(address))
            if not is_loopback(host):
                self._hosts.add(_normal_host(host))
        if len(self._addresses) != before:
            self._allowed.clear()

    def why_not(self, address: str) -> str | None:
        """Why nothing may be sent to ``host:port``; None where it may."""
        try:
            self.check(address)
        except TargetRefused as refusal:
            return str(refusal)
        return None

    def check(self, address: str) -> None:
        """Raises TargetRefused where nothing may be sent to ``host:port``, an IP address."""
        if address in self._allowed:
            return
        host, _ = host_and_port(address)
        if normal(address) in self._addresses or _normal_host(host) in self._hosts:
            raise TargetRefused(
                f"{printable(address)} is an address of the capture; "
                "captured traffic is never sent back to where it came from"
            )
        if not self.consent and not is_loopback(host):
            raise TargetRefused(
                f"{printable(address)} is not a loopback address; --yes allows it, "
                "or start rmqtool on a terminal to be asked"
            )
        self._allowed.add(address)


def host_and_port(address: str) -> tuple[str, int]:
    """Host and port of ``host:port`` or ``[host]:port``; port 0 where there is none."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        return address.strip("[]"), 0
    return host.strip("[]"), int(port)


def normal(address: str) -> str:
    """One spelling for ``host:port``."""
    host, port = host_and_port(address)
    return f"{_normal_host(host)} {port}"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's loopback; a name is only where it is ``localhost``."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _normal_host(host: str) -> str:
    if host == "localhost":
        return "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host.lower()
    return str(getattr(address, "ipv4_mapped", None) or address)
