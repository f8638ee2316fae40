"""Options of a proxy."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final

from ..config import AddressGuard, TlsSettings
from ..errors import ConfigError
from ..sandbox import Injection
from ..sandbox.events import SandboxEvent

MIB: Final = 1024 * 1024
MOST_DUE: Final = 4096
"""pending responses of one connection; the oldest is dropped"""


@dataclass(frozen=True, slots=True)
class ProxyOptions:
    """Options of a proxy; `check_options` validates them."""

    namesrv: tuple[str, ...]
    """real NameServers, `host:port`"""
    host: str = "127.0.0.1"
    """IP address to listen on"""
    port: int = 9876
    """port of the front of the NameServers; 0: a free one"""
    allow_remote: bool = False
    """listen on addresses that other machines reach"""
    advertised: str = ""
    """host advertised in routes; empty: the one that the client connected to"""
    tls: TlsSettings | None = None
    """TLS to the real cluster"""
    listen_cert: str | None = None
    """certificate for clients; None: clients connect without TLS"""
    listen_key: str | None = None
    """its key; None: in the same file"""
    key_password: str | None = None
    """password of that key"""
    grpc: str = ""
    """real endpoint for clients of gRPC, `host:port`; empty: none"""
    grpc_port: int = 8081
    """port of its front; 0: a free one"""
    guard: AddressGuard | None = None
    """says why nothing may be sent to an address"""
    consent: Callable[[Sequence[str]], Awaitable[None]] | None = None
    """asked before a new address is connected to; raises TargetRefused"""
    injections: Sequence[Injection] = ()
    """faults of the traffic"""
    seed: int = 0
    """seed of their chance"""
    wire: BinaryIO | None = None
    """where packets are recorded, as pcapng"""
    on_event: Callable[[SandboxEvent], None] | None = None
    """called with each event, in the loop's thread"""
    connect_seconds: float = 3.0
    """time to connect to a real server"""
    connections_limit: int = 50_000
    """connections of clients at a time"""
    memory_limit: int = 512 * MIB
    """bytes of incomplete frames and of what slow readers have not read"""


def check_options(options: ProxyOptions) -> None:
    """Raise ConfigError for invalid options, without opening anything."""
    try:
        loopback = ipaddress.ip_address(options.host).is_loopback
    except ValueError:
        reason = f"{options.host!r} is not an IP address"
        raise ConfigError(reason, "for example 127.0.0.1:9876", setting="host") from None
    if not loopback and not options.allow_remote:
        reason = f"other machines reach {options.host}, and the proxy has no access control"
        hint = "add --allow-remote, or listen on 127.0.0.1"
        raise ConfigError(reason, hint, setting="host")
    if options.listen_key is not None and options.listen_cert is None:
        raise ConfigError("needs --listen-cert CERT.pem", setting="listen_key")
