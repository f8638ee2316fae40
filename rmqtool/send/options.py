"""What a user asked `send` for, checked: texts of the command line become values."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from time import time_ns
from typing import Final, Protocol, TypeVar

from dissectors.remoting.sysflag import COMPRESSION_TYPES
from replay.acl import Credentials, CredentialsError, credentials_of, read_credentials
from replay.config import NAMESRV_VARIABLE, ProducerConfig, TlsSettings, version_of_release
from replay.errors import ConfigError, NameServerError
from replay.fault import FaultSettings
from replay.message import Message, SendMode, TransactionState
from replay.namespace import wrap_namespace
from replay.plan.pace import PaceError, Rate, duration_of, rate_of
from replay.safety import Agreement
from replay.validators import why_not_message, why_not_topic, why_not_user_properties

from ..ui.console import When
from ..ui.option_names import MESSAGE, command_error
from ..ui.option_values import about, time_option, usage_error
from ..ui.status import CommandError, ExitStatus
from .arguments import SendArguments
from .consent import agreement_of

_MS: Final = 1_000_000
_OFF: Final = "off"
_NO_NAMESRV: Final = f"give -n HOST:PORT[;HOST:PORT], or set {NAMESRV_VARIABLE}"
_DEFAULT_IN_FLIGHT: Final = {SendMode.SYNC: 1, SendMode.ASYNC: 64, SendMode.ONEWAY: 64}
KEY_PASSWORD_VARIABLE: Final = "ROCKETMQ_TLS_KEY_PASSWORD"
"""environment variable with the password of the key of --tls-key"""
_Value = TypeVar("_Value")
_Enum = TypeVar("_Enum", bound=StrEnum)


class InputForm(StrEnum):
    """What a line of the input is."""

    lines = "lines"
    jsonl = "jsonl"


class SendFormat(StrEnum):
    """How the result is written."""

    table = "table"
    json = "json"
    jsonl = "jsonl"


@dataclass(frozen=True, slots=True)
class SendCommand:
    """A `send` command, checked."""

    config: ProducerConfig
    """the producer's, without hooks"""
    agreement: Agreement
    """where messages may go, unasked"""
    message: Message
    """what is sent, or what the lines of the input are laid over"""
    broker: str | None
    """only this broker"""
    queue_id: int | None
    """only this queue of it"""
    order_key: str | None
    """all messages go to the queue of this key"""
    transaction: TransactionState | None
    """how each half message ends; None: no transactions"""
    inputs: tuple[str, ...]
    """files that are read"""
    source: str | None
    """file with lines, `-` for standard input; None: the message of the command line"""
    input_form: InputForm
    """what a line is"""
    count: int
    """how often the message of the command line is sent"""
    rate: Rate | None
    """messages a second; None: as fast as it goes"""
    in_flight: int
    """sends at once"""
    batch: int
    """messages a request"""
    mode: SendMode
    shown: SendFormat
    verbose: bool
    log: str | None
    """file for the attempts"""
    capture: str | None
    """file for the packets"""
    force: bool
    """these files may be replaced"""
    colour: When
    quiet: bool


def command_of(given: SendArguments) -> SendCommand:
    """Return what was asked for; raise CommandError where it makes no sense."""
    mode = _one_of("--mode", SendMode, given.mode)
    _refuse_contradictions(given, mode)
    message = Message(given.topic or "", _body_of(given), given.tags, given.keys)
    message.properties.update(_properties_of(given.properties or []))
    message = _delayed(given, message)
    input_form = InputForm.jsonl if (given.source or "").endswith(".jsonl") else InputForm.lines
    if given.input is not None:
        input_form = _one_of("--input", InputForm, given.input)
    if not given.topic and not (given.source and input_form is InputForm.jsonl):
        raise usage_error("--topic", "name the topic: -t TOPIC")
    config = _config_of(given)
    _check_message(given, message, config)
    agreement = agreement_of(given.yes, given.allow)
    agreement.add(config.namesrv_addresses())
    return SendCommand(
        config=config,
        agreement=agreement,
        message=message,
        broker=given.broker,
        queue_id=given.queue,
        order_key=given.order_key,
        transaction=_transaction_of(given.transaction),
        inputs=tuple(
            filter(
                None,
                (given.source, given.file, given.acl, given.tls, given.tls_cert, given.tls_key),
            )
        ),
        source=given.source,
        input_form=input_form,
        count=given.count,
        rate=None if given.rate is None else _value("--rate", rate_of, given.rate),
        in_flight=given.in_flight or _DEFAULT_IN_FLIGHT[mode],
        batch=given.batch,
        mode=mode,
        shown=_one_of("--format", SendFormat, given.format),
        verbose=given.verbose,
        log=given.log,
        capture=given.capture,
        force=given.force,
        colour=given.colour,
        quiet=given.quiet,
    )


def _refuse_contradictions(given: SendArguments, mode: SendMode) -> None:
    bodies = [
        name for name, one in (("--body", given.body), ("--file", given.file)) if one is not None
    ]
    if given.source is not None:
        bodies.append("lines")
    if len(bodies) > 1:
        raise usage_error(" and ".join(bodies), "the body is one of them")
    if not bodies:
        raise usage_error("BODY", "no message body; use --body, --file, or - for stdin")
    if given.source == "-" and sys.stdin.isatty():
        hint = "pipe lines into it, or give --body TEXT"
        raise CommandError("standard input is a terminal", hint, ExitStatus.USAGE)
    if given.source is not None and given.count != 1:
        raise usage_error("--count", "is for the message of --body or --file; lines are sent once")
    if given.queue is not None and given.broker is None:
        raise usage_error("--queue", "is a queue of a broker: name it with -b")
    if given.order_key is not None and given.broker is not None:
        raise usage_error("--order-key and --broker", "each of them chooses the queue")
    if given.transaction is not None:
        for option, used in (
            ("--batch", given.batch > 1),
            ("--broker", given.broker is not None),
            ("--order-key", given.order_key is not None),
            (f"--mode {mode}", mode is not SendMode.SYNC),
        ):
            if used:
                raise usage_error("--transaction", f"cannot be had together with {option}")
    if given.batch > 1 and (given.delay_level is not None or given.deliver_at is not None):
        raise usage_error("--batch", "messages of a batch cannot be delayed")
    if given.delay_level is not None and given.deliver_at is not None:
        raise usage_error("--delay-level and --deliver-at", "cannot be combined")


def _body_of(given: SendArguments) -> bytes:
    if given.file is not None:
        with about("--file"):
            return Path(given.file).read_bytes()
    return os.fsencode(given.body or "")


def _properties_of(texts: Sequence[str]) -> dict[str, str]:
    properties = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise usage_error("--property", f"{text!r} has no value; write NAME=VALUE")
        properties[name] = value
    problem = why_not_user_properties(properties)
    if problem is not None:
        raise usage_error("--property", f"{problem.reason}; {problem.hint}")
    return properties


def _delayed(given: SendArguments, message: Message) -> Message:
    if given.delay_level is not None:
        return message.with_delay_level(given.delay_level)
    if given.deliver_at is not None:
        return message.with_delivery_at(delivery_of("--deliver-at", given.deliver_at))
    return message


def delivery_of(option: str, text: str) -> int:
    """Return the time of delivery that a text names, ms since the epoch."""
    if text.startswith("+"):
        return (time_ns() + _value(option, duration_of, text[1:])) // _MS
    moment = time_option(option, text)
    if moment is None or not moment.has_date:
        raise usage_error(option, f"{text!r} has no date; give 2026-11-20T10:00:00 or +90s")
    return moment.ns // _MS


def _transaction_of(text: str | None) -> TransactionState | None:
    if text is None:
        return None
    states = {state.name.lower(): state for state in TransactionState}
    if text not in states:
        raise usage_error(
            "--transaction", f"must be one of {', '.join(sorted(states))}, not {text!r}"
        )
    return states[text]


def _config_of(given: SendArguments) -> ProducerConfig:
    timeout_ms = timeout_ms_of(given.timeout)
    compress = given.compress or "zlib"
    fault = None if given.fault_strategy == _OFF else _fault_of(given.fault_strategy)
    try:
        return _checked_config(given, timeout_ms, compress, fault)
    except (ConfigError, NameServerError) as error:
        raise command_error(error, ExitStatus.USAGE) from None


def timeout_ms_of(text: str) -> int:
    """Return the milliseconds of --timeout; raise CommandError where they are none."""
    milliseconds = _value("--timeout", duration_of, text) // _MS
    if milliseconds < 1:
        raise usage_error("--timeout", f"must be 1ms or longer, not {text!r}")
    return milliseconds


def _check_message(given: SendArguments, message: Message, config: ProducerConfig) -> None:
    """Refuse a message that cannot be sent; of the pattern of lines, what it says."""
    lines = given.source is not None
    checked = replace(message, topic=message.topic or "T", body=b"-") if lines else message
    problem, option = why_not_message(checked, config.max_message_size), None
    if problem is None:
        problem = why_not_topic(wrap_namespace(config.namespace, checked.topic))
        option = "--namespace"
    if problem is not None:
        option = option or MESSAGE[problem.part]
        option = "--file" if option == "--body" and given.file is not None else option
        raise CommandError(f"{option}: {problem.reason}", problem.hint, ExitStatus.USAGE)


def _checked_config(
    given: SendArguments, timeout_ms: int, compress: str, fault: FaultSettings | None
) -> ProducerConfig:
    config = ProducerConfig(
        group=given.group,
        namesrv=given.namesrv or "",
        send_timeout_ms=timeout_ms,
        retries=given.retries,
        retries_async=given.retries,
        fault=fault,
        client_version=_release_of(given.client),
        serialize_type=_header_of(given.header),
        vip_channel=given.vip,
        namespace=given.namespace,
        credentials=credentials_of_option(given.acl),
        tls=tls_of_options(given),
        compress_over=1 << 40 if compress == _OFF else 4096,
        compress_type=_compression_of(compress),
        trace=given.trace,
    )
    if not (config.namesrv or os.environ.get(NAMESRV_VARIABLE)):
        raise CommandError("no NameServer given", _NO_NAMESRV, ExitStatus.USAGE)
    config.namesrv_addresses()  # refused before any file is opened
    return config


def _compression_of(text: str) -> str:
    if text != _OFF and text not in COMPRESSION_TYPES:
        known = ", ".join((*COMPRESSION_TYPES, _OFF))
        raise usage_error("--compress", f"must be one of {known}, not {text!r}")
    return "zlib" if text == _OFF else text


def _release_of(text: str) -> int:
    try:
        return version_of_release(text)
    except ConfigError as error:
        raise usage_error("--client", f"{error.reason}; {error.hint}") from None


def _fault_of(text: str) -> FaultSettings:
    from replay.fault import GENERATIONS

    if text not in GENERATIONS:
        known = ", ".join((_OFF, *GENERATIONS))
        raise usage_error("--fault-strategy", f"must be one of {known}, not {text!r}")
    return FaultSettings(text)


def _header_of(text: str) -> str:
    if text.upper() not in ("JSON", "ROCKETMQ"):
        raise usage_error("--header", f"{text!r} is neither json nor rocketmq")
    return text.upper()


def credentials_of_option(text: str | None) -> Credentials | None:
    """Return the credentials that --acl names; raise CommandError where there are none."""
    if text is None:
        return None
    try:
        if text != "env":
            with about("--acl"):
                return read_credentials(text)
        credentials = credentials_of(os.environ)
    except CredentialsError as error:
        raise CommandError(f"--acl: {error.reason}", error.hint, ExitStatus.USAGE) from None
    if credentials is None:
        hint = "ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY are not set; or name a file"
        raise CommandError("--acl env: no credentials", hint, ExitStatus.USAGE)
    return credentials


class TlsArguments(Protocol):
    """The options of a command that encrypts."""

    tls: str | None
    tls_name: str | None
    tls_any_name: bool
    tls_cert: str | None
    tls_key: str | None


def tls_of_options(
    given: TlsArguments, variables: Mapping[str, str] = os.environ
) -> TlsSettings | None:
    """Return what the options of TLS ask for; the key's password is one of `variables`.

    Raise CommandError where a file is not there, or the options contradict each other.
    """
    text, name, any_name = given.tls, given.tls_name, given.tls_any_name
    option = "--tls-any-name" if any_name else "--tls-name"
    if name is not None and any_name:
        raise usage_error("--tls-name and --tls-any-name", "cannot be combined")
    if (name is not None or any_name) and text in (None, "insecure"):
        raise usage_error(option, "needs --tls CA.pem or --tls system, which check certificates")
    if given.tls_cert is not None and text is None:
        raise usage_error("--tls-cert", "needs --tls CA.pem, system or insecure")
    if given.tls_key is not None and given.tls_cert is None:
        raise usage_error("--tls-key", "is the key of a certificate: name it with --tls-cert")
    if text is None:
        return None
    if name is not None and not _is_server_name(name):
        raise usage_error("--tls-name", f"{name!r} is not a valid host name or IP address")
    if text not in ("system", "insecure") and not Path(text).is_file():
        raise usage_error("--tls", f"there is no file {text}; or say system or insecure")
    for option, file in (("--tls-cert", given.tls_cert), ("--tls-key", given.tls_key)):
        if file is not None and not Path(file).is_file():
            raise usage_error(option, f"there is no file {file}")
    return TlsSettings(
        ca_file=None if text in ("system", "insecure") else text,
        verify=text != "insecure",
        check_hostname=not any_name,
        server_name=name,
        cert_file=given.tls_cert,
        key_file=given.tls_key,
        key_password=variables.get(KEY_PASSWORD_VARIABLE),
    )


def _is_server_name(name: str) -> bool:
    try:
        return bool(name.encode("idna")) and not name.startswith(".") and "\0" not in name
    except UnicodeError:
        return False


def _one_of(option: str, kind: type[_Enum], text: str) -> _Enum:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise usage_error(option, f"must be one of {known}, not {text!r}") from None


def _value(option: str, read: Callable[[str], _Value], text: str) -> _Value:
    try:
        return read(text)
    except PaceError as problem:
        raise usage_error(option, str(problem)) from None
