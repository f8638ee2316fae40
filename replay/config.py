"""Producer settings: those of the Java producer, with its defaults.

Rules: names are Java's in snake_case, times are milliseconds unless the name says otherwise; a
config is checked when a producer is made of it, and never shows a secret.
RocketMQ: DefaultMQProducer, ClientConfig, NettyClientConfig, NettySystemConfig, TlsSystemConfig.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Final

from dissectors.budget import Budget
from dissectors.endpoint import split_endpoint
from dissectors.remoting.code_sets import retry_codes_of
from dissectors.remoting.command import JSON, ROCKETMQ
from dissectors.remoting.sysflag import COMPRESSION_TYPES
from dissectors.remoting.topic_names import DEFAULT_TOPIC, TRACE_TOPIC
from dissectors.remoting.versions import V4_3_0, V4_5_1, V5_3_3, ordinal_of

from .acl import Credentials
from .errors import ConfigError, NameServerError
from .fault import FaultSettings
from .hooks import CheckHook, RpcHook, SendHook
from .message import Attempt, CheckListener, Message
from .namespace import wrap_namespace
from .validators import Invalid, why_not_group, why_not_topic
from .wire_capture import WireCapture

NAMESRV_VARIABLE: Final = "NAMESRV_ADDR"
DEFAULT_INSTANCE: Final = "DEFAULT"
"""Instance name that becomes one of its own for each producer."""
NEWEST: Final = V5_3_3
"""MQVersion ordinal of the newest client release that is followed"""

SHARED_TIMEOUT_SINCE: Final = V4_3_0
"""First client whose attempts of one synchronous send share one timeout.

Compared in the bytecode of DefaultMQProducerImpl.sendDefaultImpl and sendSelectImpl: 3.5.9, 4.0.0
and 4.2.0 pass the whole timeout to each sendKernelImpl; 4.3.0 subtracts what was used, and throws
"sendDefaultImpl call timeout" where nothing is left.
"""
NO_VIP_CHANNEL_SINCE: Final = V4_5_1
"""First client that does not send to the VIP channel by default.

Compared in the bytecode of ClientConfig: the default of com.rocketmq.sendMessageWithVIPChannel is
"true" in 3.5.9 and 4.0.0 to 4.5.0, and "false" in 4.5.1 and later.
"""

AddressGuard = Callable[[str, str], str | None]
"""(`host:port` or `ip:port`, what the user or a route calls it) -> why nothing may be sent there;
None where it may"""


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS settings of connections."""

    ca_file: str | None = None
    """trusted certificates (tls.client.trustCertPath); None: those of the system"""
    verify: bool = True
    """whether the server must prove who it is (tls.client.authServer; Java's default: no)"""
    check_hostname: bool = True
    """whether the certificate must match the host name; Java does not check"""
    server_name: str | None = None
    """name that certificates must have instead of the host; it is also sent as SNI"""
    cert_file: str | None = None
    """own certificate (tls.client.certPath)"""
    key_file: str | None = None
    """its key (tls.client.keyPath)"""
    key_password: str | None = field(default=None, repr=False)
    """password of the key (tls.client.keyPassword)"""


@dataclass(frozen=True, slots=True)
class ProducerConfig:
    """Settings of a producer, such as `ProducerConfig(group=..)`; raises ConfigError."""

    group: str = "DEFAULT_PRODUCER"
    """producer group; that of the default is refused, as Java does"""
    namesrv: str = ""
    """NameServers, `host:port` separated by `;`; empty: those of NAMESRV_ADDR"""
    send_timeout_ms: int = 3000
    """time of a whole send, retries included; of each attempt of a synchronous send where the
    client version is below 4.3.0 (sendMsgTimeout)"""
    close_timeout_ms: int = 30_000
    """time that `AsyncProducer.close` waits for sends that have not ended"""
    send_max_timeout_per_request_ms: int = -1
    """time of one attempt while another one is possible (sendMsgMaxTimeoutPerRequest); -1: all"""
    retries: int = 2
    """further attempts of a synchronous send (retryTimesWhenSendFailed)"""
    retries_async: int = 2
    """further attempts of an asynchronous send (retryTimesWhenSendAsyncFailed)"""
    retry_codes: frozenset[int] | None = None
    """response codes after which a synchronous send goes on; None: those of the client version"""
    retry_another_broker_when_not_store_ok: bool = False
    """whether codes 10, 11 and 12 (stored, but not as safely as configured) are tried again"""
    fault: FaultSettings | None = None
    """the latency fault strategy; None: off, as in Java"""
    client_version: int = NEWEST
    """MQVersion ordinal of the Java client whose rules are followed; the header says it too"""
    language: str = "PYTHON"
    """language in the header"""
    serialize_type: str = JSON
    """headers in JSON or ROCKETMQ"""
    smart_msg: bool = True
    """short field names, code 310 instead of 10 (sendSmartMsg)"""
    create_topic_key: str = DEFAULT_TOPIC
    """template topic for unknown topics"""
    default_topic_queue_nums: int = 4
    """queues of a topic that a send makes"""
    vip_channel: bool | None = None
    """sends go to the broker's second port, two below (vipChannelEnabled); None: as the client
    version does by default"""
    namespace: str = ""
    """namespace that wraps topics and groups"""
    namespace_v2: str = ""
    """namespace in the ext fields of requests (5.x)"""
    unit_mode: bool = False
    """the client belongs to a unit"""
    unit_name: str = ""
    """its name, part of the client id"""
    instance_name: str = DEFAULT_INSTANCE
    """part of the client id; DEFAULT becomes one of its own for each producer"""
    client_ip: str = ""
    """part of client and message ids; empty: the address that reaches the NameServer"""
    credentials: Credentials | None = None
    """credentials that sign requests (ACL)"""
    tls: TlsSettings | None = None
    """None: not encrypted"""
    compress_over: int = 4096
    """bytes from which on bodies are compressed (compressMsgBodyOverHowmuch)"""
    compress_level: int = 5
    """level of zlib and zstd"""
    compress_type: str = "zlib"
    """zlib, lz4 or zstd"""
    max_message_size: int = 4 * 1024 * 1024
    """bytes of a body, before compression"""
    oneway_limit: int = 65535
    """oneway requests that are not yet written (clientOnewaySemaphoreValue)"""
    async_limit: int = 65535
    """asynchronous requests that are not yet answered (clientAsyncSemaphoreValue)"""
    in_flight_least: int = 32
    """sends of an `AsyncProducer` that run at once however slow the responses; more run while
    brokers keep up"""
    backpressure: bool = False
    """asynchronous sends wait for permits (enableBackpressureForAsyncMode)"""
    backpressure_num: int = 10_000
    """messages in flight then (backPressureForAsyncSendNum, 10 at least)"""
    backpressure_size: int = 100 * 1024 * 1024
    """bytes of bodies in flight then (backPressureForAsyncSendSize, 1 MiB at least)"""
    api_timeout_ms: int = 3000
    """time of a route query or heartbeat (mqClientApiTimeout)"""
    connect_timeout_ms: int = 3000
    """time to open a connection, within that of the request"""
    max_idle_ms: int = 120_000
    """idle time after which connections are closed (clientChannelMaxIdleTimeSeconds)"""
    heartbeat_ms: int = 30_000
    """time between heartbeats to masters (heartbeatBrokerInterval)"""
    poll_namesrv_ms: int = 30_000
    """time between refreshes of the routes in use (pollNameServerInterval)"""
    close_on_timeout: bool = True
    """a synchronous request that timed out closes its connection (clientCloseSocketIfTimeout)"""
    reconnect_for_go_away: bool = True
    """a broker that says GO_AWAY is asked once more, on a new connection"""
    trace: bool = False
    """send message traces to the trace topic (enableTrace)"""
    trace_topic: str = TRACE_TOPIC
    """topic of traces"""
    check_listener: CheckListener | None = field(default=None, repr=False)
    """returns the outcome of a half message when a broker checks it"""
    check_hooks: tuple[CheckHook, ...] = field(default=(), repr=False)
    """called before each attempt; may veto it"""
    hooks: tuple[SendHook, ...] = field(default=(), repr=False)
    """called before and after each attempt"""
    rpc_hooks: tuple[RpcHook, ...] = field(default=(), repr=False)
    """may add ext fields to every request, before it is signed"""
    guard: AddressGuard | None = field(default=None, repr=False)
    """asked before a name is looked up, before each connection and on each connected socket"""
    on_attempt: Callable[[Message, Attempt], None] | None = field(default=None, repr=False)
    """called for every finished attempt; for a batch, with its first message"""
    on_connected: Callable[[str, str], None] | None = field(default=None, repr=False)
    """called with both ends of each connection, `ip:port`, before its first byte leaves"""
    budget: Budget = field(default_factory=Budget, repr=False, compare=False)
    """memory limit for data of peers; records where it was reached"""
    wire: WireCapture | None = field(default=None, repr=False)
    """capture of everything sent and received"""

    def __post_init__(self) -> None:
        """Reject invalid settings; see the class."""
        names: tuple[tuple[str, str, Callable[[str], Invalid | None]], ...] = (
            ("group", self.group, why_not_group),
            ("trace_topic", self.trace_topic, why_not_topic),
        )
        for setting, name, why_not in names:
            problem = why_not(wrap_namespace(self.namespace, name))
            if problem is not None:
                setting = "namespace" if why_not(name) is None else setting
                raise ConfigError(problem.reason, problem.hint, setting=setting)
        for name, choices in (
            ("serialize_type", (JSON, ROCKETMQ)),
            ("compress_type", tuple(COMPRESSION_TYPES)),
        ):
            chosen = getattr(self, name)
            if chosen not in choices:
                reason = f"must be one of {', '.join(choices)}, not {chosen!r}"
                raise ConfigError(reason, setting=name)
        for name in (
            "send_timeout_ms",
            "close_timeout_ms",
            "api_timeout_ms",
            "connect_timeout_ms",
            "max_message_size",
            "in_flight_least",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"must be positive, not {getattr(self, name)}", setting=name)
        try:
            ip_address(self.client_ip or "::")
        except ValueError:
            reason = f"must be an IP address, not {self.client_ip!r}"
            raise ConfigError(reason, setting="client_ip") from None
        for name in ("retries", "retries_async"):
            if getattr(self, name) < 0:
                reason = f"must be 0 or more, not {getattr(self, name)}"
                raise ConfigError(reason, "0 means one attempt", setting=name)

    def namesrv_addresses(self, variables: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Return the NameServers in the order given; raises NameServerError if there are none.

        `variables` default to the environment.
        """
        return addresses_of(self.namesrv or (variables or os.environ).get(NAMESRV_VARIABLE, ""))

    @property
    def shares_timeout(self) -> bool:
        """Whether all attempts of a synchronous send share its timeout."""
        return self.client_version >= SHARED_TIMEOUT_SINCE

    @property
    def uses_vip_channel(self) -> bool:
        """Whether sends go to the second port of a broker."""
        if self.vip_channel is not None:
            return self.vip_channel
        return self.client_version < NO_VIP_CHANNEL_SINCE

    @property
    def retried(self) -> frozenset[int]:
        """Response codes after which a synchronous send is retried."""
        if self.retry_codes is not None:
            return self.retry_codes
        return retry_codes_of(self.client_version)


def config_in_child(config: ProducerConfig) -> ProducerConfig:
    """Return the settings for a forked child, with an instance name of its own."""
    if config.instance_name == DEFAULT_INSTANCE:  # differs in each process
        return config
    return replace(config, instance_name=f"{config.instance_name}#{os.getpid()}")


def version_of_release(release: str) -> int:
    """Return the MQVersion ordinal of a release such as `4.9.8`. Raises ConfigError for an unknown
    one.
    """
    ordinal = ordinal_of(release)
    if ordinal is None:
        raise ConfigError(f"not a release: {release!r}", "write it as 4.9.8 or 5.3.3")
    return ordinal


def addresses_of(text: str) -> tuple[str, ...]:
    """Return the addresses of a list `host:port;host:port`, without repeats. Raises
    NameServerError.
    """
    addresses = tuple(dict.fromkeys(part.strip() for part in text.split(";") if part.strip()))
    if not addresses:
        hint = f"write host:9876;host:9876, or set {NAMESRV_VARIABLE}"
        raise NameServerError("no NameServer given", hint, setting="namesrv")
    for address in addresses:
        if split_endpoint(address) is None:
            raise NameServerError(
                f"{address!r} is not a valid address",
                "write host:port or [ipv6]:port",
                setting="namesrv",
            )
    return addresses
