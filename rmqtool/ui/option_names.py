"""Options of library fields, and errors that name the options.

Rules: errors of the libraries name fields (`send_timeout_ms`), for programs; errors for users name
options (`--timeout`). Each field that a command sets has an entry here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from .status import CommandError, ExitStatus


def _named(*same: str, **others: str) -> Mapping[str, str]:
    """Return field → option; the options of `same` have the names of their fields."""
    return {field: f"--{field.replace('_', '-')}" for field in same} | others


PRODUCER: Final = _named(
    *("group", "namesrv", "retries", "namespace", "tls", "trace"),
    send_timeout_ms="--timeout",
    retries_async="--retries",
    in_flight_least="--in-flight",
    fault="--fault-strategy",
    client_version="--client",
    serialize_type="--header",
    vip_channel="--vip",
    credentials="--acl",
    ca_file="--tls",
    server_name="--tls-name",
    check_hostname="--tls-any-name",
    cert_file="--tls-cert",
    key_file="--tls-key",
    compress_type="--compress",
)
"""fields of `ProducerConfig` and `TlsSettings`"""
MESSAGE: Final = _named("topic", "body", "tags", "keys", properties="--property")
"""fields of `Message`"""
PROXY: Final = _named("grpc_port", "listen_cert", "listen_key", host="--listen")
"""fields of `ProxyOptions`"""
SANDBOX: Final = _named(
    *("brokers", "port", "namesrv_port", "allow_remote", "vip", "auto_create", "server_version"),
    *("store", "seed", "store_limit", "drop_oldest", "delay_levels"),
    host="--listen",
    topics="--topic",
    serialize_type="--serialize",
)
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
