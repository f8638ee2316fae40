"""Endpoints as text, for all packages: `host:port`, an IPv6 host in brackets."""

from __future__ import annotations

from .foreign import natural_of


def endpoint_text(host: str, port: int) -> str:
    """Return `host:port`; an IPv6 address goes in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def endpoint_of_socket(name: object) -> str:
    """Return `host:port` of a Python socket name, or an empty text if it is none."""
    if not isinstance(name, tuple) or len(name) < 2:
        return ""
    return endpoint_text(str(name[0]), name[1])


def split_endpoint(text: str) -> tuple[str, int] | None:
    """Split `host:port` or `[ipv6]:port`, or return None for any other text.

    The port is 1 to 65535. For texts from users or peers.
    """
    host, colon, port = text.rpartition(":")
    if host.startswith("["):
        host = host[1:-1] if host.endswith("]") else ""
    number = natural_of(port)
    if not colon or not host or number is None:
        return None
    return (host, number) if 0 < number < 65536 else None


def host_and_port_text(endpoint: str) -> tuple[str, str]:
    """Return the host without brackets and the port text; unchecked, both may be empty."""
    host, _, port = endpoint.rpartition(":")
    return host.strip("[]"), port


def host_of(endpoint: str) -> str:
    """Return the host of `host:port`, an IPv6 address without its brackets; unchecked."""
    return host_and_port_text(endpoint)[0]
