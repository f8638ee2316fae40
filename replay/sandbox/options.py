"""Settings of a sandbox: brokers, ports, topics, limits; checked before anything listens.

Rules: the sandbox listens on loopback unless `allow_remote` is set, because it has no access
control.
RocketMQ: BrokerConfig, MessageStoreConfig, NamesrvConfig.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from dissectors.remoting import flags
from dissectors.remoting.command import JSON, ROCKETMQ
from dissectors.remoting.versions import VERSIONS

from .errors import SandboxError
from .events import EventSink
from .injection.injection import NAMESRV, Injection, duration_ms

DELAY_LEVELS: Final = " ".join(flags.DELAY_LEVELS)
"""messageDelayLevel of a broker by default"""

MIB: Final = 1024 * 1024
PORT_STEP: Final = 10
"""ports between two brokers: room for the VIP channel below"""

_FAQ: Final = "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
_FAQ_4: Final = "\nSee http://rocketmq.apache.org/docs/faq/ for further details."


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic that is created at the start on every broker."""

    name: str
    queues: int = 4
    """read and write queues on each broker"""
    perm: int = 6
    """4 readable, 2 writable, 6 both"""


@dataclass(frozen=True, slots=True)
class SandboxOptions:
    """Settings of a sandbox; the defaults suit tests: free ports, everything in memory."""

    brokers: int = 1
    """masters `broker-a`, `broker-b`, .., each on a port of its own"""
    host: str = "127.0.0.1"
    """address to listen on; another than loopback needs `allow_remote`"""
    port: int = 0
    """port of the first broker, the others follow at +10; 0: any free ports"""
    namesrv_port: int = 0
    """port of the NameServer; 0: any free port"""
    allow_remote: bool = False
    """whether `host` may be reachable from other machines"""
    advertised: str = ""
    """host that routes name instead of `host`, for a proxy in front"""
    vip: bool = False
    """each broker also listens on its port - 2, as brokers do for the VIP channel"""
    cluster: str = "SandboxCluster"
    """name of the cluster"""
    topics: Sequence[TopicSpec] = ()
    """topics that are there from the start"""
    auto_create: bool = True
    """a send to an unknown topic makes it, through TBW102"""
    auto_create_queues: int = 8
    """queues of TBW102: the most queues of a topic that a send makes"""
    server_version: str = "5.3.3"
    """the release whose responses are given, also the version in the headers"""
    serialize_type: str = JSON
    """JSON or ROCKETMQ: headers of responses"""
    store: Path | None = None
    """sqlite3 file that keeps messages, topics and offsets; None: memory only"""
    injections: Sequence[Injection] = ()
    """what goes wrong, and when"""
    seed: int = 0
    """of everything that is random: with one seed and one order of requests, all is repeated"""
    on_event: EventSink | None = None
    """receives events; None: no receiver"""
    connections_limit: int = 2000
    """open connections of the whole sandbox"""
    greeting_ms: int = 30_000
    """a new connection without a whole frame is closed after this time: it keeps others out"""
    idle_ms: int = 120_000
    """idle time of both directions after which one is closed (serverChannelMaxIdleTimeSeconds)"""
    store_limit: int = 1024 * MIB
    """bytes of messages held in memory by each broker"""
    drop_oldest: bool = False
    """a full store forgets its oldest messages; else sends are refused as by a full disk"""
    input_limit: int = 256 * MIB
    """bytes of unfinished frames of all connections, and of responses that clients do not read"""
    held_limit: int = 20_000
    """long polls that wait at one broker"""
    max_message_size: int = 4 * MIB
    """bytes of a body, as the broker's maxMessageSize"""
    delay_levels: str = DELAY_LEVELS
    """delays of the levels 1, 2, .."""
    timer_max_ms: int = 3 * 86_400_000
    """farthest due time of a timer message"""
    transaction_timeout_ms: int = 6_000
    """age at which a half message is checked for the first time"""
    transaction_interval_ms: int = 30_000
    """time between checks"""
    transaction_checks: int = 15
    """checks before a half message is given up"""
    client_timeout_ms: int = 120_000
    """a client is forgotten after this time without a heartbeat"""

    @property
    def version(self) -> int:
        """MQVersion ordinal of `server_version`."""
        return VERSIONS.index(_constant_of(self.server_version))

    @property
    def is_5(self) -> bool:
        """Whether it emulates 5.x."""
        return self.server_version.startswith("5.")

    @property
    def faq(self) -> str:
        """The FAQ suffix of remarks, as the emulated release writes it."""
        return _FAQ if self.is_5 else _FAQ_4

    @property
    def delays_ms(self) -> tuple[int, ...]:
        """Delays of the levels in ms, level 1 first."""
        return tuple(duration_ms(word) for word in self.delay_levels.split())

    @property
    def broker_names(self) -> tuple[str, ...]:
        """Names of the brokers."""
        return tuple(broker_name(number) for number in range(self.brokers))


def broker_name(number: int) -> str:
    """Return `broker-a` for 0, `broker-z` for 25, `broker-26` and so on behind it."""
    return f"broker-{chr(ord('a') + number)}" if number < 26 else f"broker-{number}"


def _constant_of(version: str) -> str:
    return "V" + version.replace(".", "_")


def check_options(options: SandboxOptions) -> None:
    """Raise SandboxError for invalid options, without opening anything."""
    _check_host(options)
    if not 1 <= options.brokers <= 64:
        raise SandboxError(f"must be 1 to 64, not {options.brokers}", setting="brokers")
    for name in ("port", "namesrv_port"):
        if not 0 <= getattr(options, name) <= 65535:
            reason = f"{getattr(options, name)} is not a valid port"
            raise SandboxError(reason, "give 1 to 65535, or 0", setting=name)
    if options.vip and 0 < options.port < 3:
        reason = f"{options.port} leaves no room for the VIP channel below it"
        raise SandboxError(reason, setting="port")
    last = options.port + PORT_STEP * (options.brokers - 1)
    if options.port and last > 65535:
        reason = f"{options.port} leaves no room for {options.brokers} brokers"
        raise SandboxError(reason, f"the last one would have {last}", setting="port")
    if _constant_of(options.server_version) not in VERSIONS:
        reason = f"{options.server_version!r} is not a release of RocketMQ"
        raise SandboxError(reason, "for example 4.9.8 or 5.3.3", setting="server_version")
    if options.serialize_type not in (JSON, ROCKETMQ):
        reason = f"must be {JSON} or {ROCKETMQ}, not {options.serialize_type!r}"
        raise SandboxError(reason, setting="serialize_type")
    for topic in options.topics:
        if not 1 <= topic.queues <= 1024:
            reason = f"{topic.name}: {topic.queues} queues are not 1 to 1024"
            raise SandboxError(reason, setting="topics")
    _check_delays(options)
    names = options.broker_names
    for fault in options.injections:
        if not any(map(fault.is_on, (*names, NAMESRV))):
            hint = f"brokers: {', '.join(names)}; the NameServer: {NAMESRV}"
            raise SandboxError(f"fault {fault}: no broker has such a name", hint)


def _check_delays(options: SandboxOptions) -> None:
    hint = "for example '1s 5s 10s'"
    try:
        delays = options.delays_ms
    except SandboxError as error:
        raise SandboxError(error.reason, hint, setting="delay_levels") from None
    if not delays:
        raise SandboxError("there is no delay level", hint, setting="delay_levels")


def _check_host(options: SandboxOptions) -> None:
    if options.advertised:
        try:
            ip_address(options.advertised)
        except ValueError:
            reason = f"{options.advertised!r} is not a valid IP address"
            raise SandboxError(reason, setting="advertised") from None
    host = options.host
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        reason = f"{host!r} is not a valid IP address"
        raise SandboxError(reason, "for example 127.0.0.1", setting="host") from None
    if not loopback and not options.allow_remote:
        raise SandboxError(
            f"{host} can be reached from other machines, and the sandbox has no access control",
            "allow it explicitly (allow_remote), or listen on 127.0.0.1",
            setting="host",
        )
