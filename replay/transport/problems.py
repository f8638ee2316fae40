"""What the system says about a connection, in words; addresses as RocketMQ writes them."""

from __future__ import annotations

import errno
import os
import socket
import ssl

from ..config import split_address
from .tls import tls_problem

_HINTS = {
    errno.ECONNREFUSED: "nothing listens there: is it running, and is the port right?",
    errno.ECONNRESET: "the other side ended it",
    errno.EHOSTUNREACH: "is the address right and reachable from here?",
    errno.ENETUNREACH: "is the address right and reachable from here?",
    errno.ETIMEDOUT: "is the address right, and is there no firewall between?",
    errno.EMFILE: "this process has too many open files",
}


def connect_problem(error: Exception) -> tuple[str, str]:
    """What is wrong with a connection, and the way out."""
    if isinstance(error, ssl.SSLError):
        return tls_problem(error)
    if isinstance(error, socket.gaierror):
        return "the name is not known", "is it spelled right, and does it resolve from here?"
    if isinstance(error, TimeoutError):
        return "no answer in time", _HINTS[errno.ETIMEDOUT]
    number = error.errno if isinstance(error, OSError) else None
    if number is None:  # asyncio joins the errors of several addresses of a name to one text
        return str(error) or type(error).__name__, ""
    return os.strerror(number).lower(), _HINTS.get(number, "")


def text_of(address: object) -> str:
    """`host:port` of a socket address, IPv6 in brackets; empty for what is none."""
    if not isinstance(address, tuple) or len(address) < 2:
        return ""
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def local_ip(address: str) -> str:
    """The own IP address from which `host:port` is reached; 127.0.0.1 where that is not known."""
    parts = split_address(address)
    if parts is None:
        return "127.0.0.1"
    family = socket.AF_INET6 if ":" in parts[0] else socket.AF_INET
    try:
        # Connecting a datagram socket sends nothing: it asks the system for the route.
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(parts)
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"
