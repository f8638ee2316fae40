"""Options of library fields, and errors that name the options.

Rules: errors of the libraries name fields (`send_timeout_ms`), for programs; errors for users name
options (`--timeout`). Each field that a command sets has an entry here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from .status import CommandError, ExitStatus

PRODUCER: Final[Mapping[str, str]] = {
    "group": "--group",
    "namesrv": "--namesrv",
    "send_timeout_ms": "--timeout",
    "retries": "--retries",
    "retries_async": "--retries",
    "in_flight_least": "--in-flight",
    "fault": "--fault-strategy",
    "client_version": "--client",
    "serialize_type": "--header",
    "vip_channel": "--vip",
    "namespace": "--namespace",
    "credentials": "--acl",
    "tls": "--tls",
    "ca_file": "--tls",
    "server_name": "--tls-name",
    "check_hostname": "--tls-any-name",
    "cert_file": "--tls-cert",
    "key_file": "--tls-key",
    "compress_type": "--compress",
    "trace": "--trace",
}
"""fields of `ProducerConfig` and `TlsSettings`"""
MESSAGE: Final[Mapping[str, str]] = {
    "topic": "--topic",
    "body": "--body",
    "tags": "--tags",
    "keys": "--keys",
    "properties": "--property",
}
"""fields of `Message`"""
PROXY: Final[Mapping[str, str]] = {
    "host": "--listen",
    "grpc_port": "--grpc-port",
    "listen_cert": "--listen-cert",
    "listen_key": "--listen-key",
}
"""fields of `ProxyOptions`"""
SANDBOX: Final[Mapping[str, str]] = {
    "brokers": "--brokers",
    "host": "--listen",
    "port": "--port",
    "namesrv_port": "--namesrv-port",
    "allow_remote": "--allow-remote",
    "vip": "--vip",
    "topics": "--topic",
    "auto_create": "--auto-create",
    "server_version": "--server-version",
    "serialize_type": "--serialize",
    "store": "--store",
    "seed": "--seed",
    "store_limit": "--store-limit",
    "drop_oldest": "--drop-oldest",
    "delay_levels": "--delay-levels",
}
"""fields of `SandboxOptions`"""
_FIELD: Final = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
"""a word that can only be a field name"""
_BESIDE: Final = re.compile(r"(--[a-z-]+), [a-z_]+=\w*")
"""an option, and the setting for programs beside it"""


class LibraryError(Protocol):
    """An error of `replay`: of a client, of a sandbox, or about credentials."""

    reason: str
    hint: str


def command_error(error: LibraryError) -> CommandError:
    """Return the error about an option whose value a library refuses."""
    return CommandError(*in_options(error), ExitStatus.USAGE)


def in_options(error: LibraryError) -> tuple[str, str]:
    """Return reason and hint of an error, with options of the command instead of fields."""
    is_sandbox = any(kind.__name__ == "SandboxError" for kind in type(error).__mro__)
    fields = SANDBOX if is_sandbox else {**PRODUCER, **PROXY}
    option = fields.get(getattr(error, "setting", "")) or MESSAGE.get(getattr(error, "part", ""))
    hint = _BESIDE.sub(r"\1", error.hint)
    hint = _FIELD.sub(lambda match: fields.get(match[0], match[0]), hint)
    return f"{option}: {error.reason}" if option else error.reason, hint
