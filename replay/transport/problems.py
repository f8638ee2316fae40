"""Error texts for connection problems; addresses as RocketMQ writes them."""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import socket
import ssl

from dissectors.endpoint import split_endpoint

from ..config import AddressGuard
from .tls import tls_problem

_log = logging.getLogger("rmqtool.replay")

_HINTS = {
    errno.ECONNREFUSED: "nothing is listening there: check the port and that the server is running",
    errno.ECONNRESET: "the other side closed the connection",
    errno.EHOSTUNREACH: "check the address, and whether it is reachable from here",
    errno.ENETUNREACH: "check the address, and whether it is reachable from here",
    errno.ETIMEDOUT: "check the address, and firewalls on the way",
    errno.EMFILE: "this process has too many open files",
}

NOT_A_NAME = (ValueError, TypeError)
"""what Python raises for a text that cannot be a host name: too long, with a NUL, ..."""


def connect_problem(error: Exception) -> tuple[str, str]:
    """Return the problem of a connection, and a hint."""
    if isinstance(error, ssl.SSLError):
        return tls_problem(error)
    if isinstance(error, NOT_A_NAME) and not isinstance(error, OSError):
        return "that is not a valid host name", _HINTS[errno.EHOSTUNREACH]
    if isinstance(error, socket.gaierror):
        return "the name is not known", "check its spelling, and whether it resolves from here"
    if isinstance(error, TimeoutError):
        return "no response in time", _HINTS[errno.ETIMEDOUT]
    number = error.errno if isinstance(error, OSError) else None
    if number is None:  # asyncio joins the errors of several addresses of a name into one text
        return str(error) or type(error).__name__, ""
    return os.strerror(number).lower(), _HINTS.get(number, "")


def refusal_of(guard: AddressGuard | None, address: str, named: str) -> str | None:
    """Return why the guard refuses an address, or None.

    A guard that raises refuses the address.
    """
    if guard is None:
        return None
    try:
        return guard(address, named)
    except Exception as error:
        _log.warning("the address guard failed", exc_info=True)
        return f"the address guard failed: {type(error).__name__}: {error}"


def local_ip(address: str) -> str:
    """Return the local IP address of the route to `host:port`, or 127.0.0.1 if unknown."""
    parts = split_endpoint(address)
    if parts is None:
        return "127.0.0.1"
    family = socket.AF_INET6 if ":" in parts[0] else socket.AF_INET
    try:
        # Connecting a datagram socket sends nothing: it asks the system for the route.
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(parts)
            return str(probe.getsockname()[0])
    except (OSError, *NOT_A_NAME):
        return "127.0.0.1"


def is_ip_address(host: str) -> bool:
    """Return whether a host is an IP address, which needs no lookup."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def is_own_address(host: str) -> bool:
    """Return whether an IP address belongs to this machine, without sending anything.

    A socket can be bound only to own addresses.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True
