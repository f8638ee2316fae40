"""The options of `send`, each declared once, and the resulting producer and message."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from time import time_ns
from typing import Final

from dissectors.remoting.sysflag import COMPRESSION_TYPES
from dissectors.times import moment_of
from replay.config import ProducerConfig, version_of_release
from replay.errors import ConfigError
from replay.fault import GENERATIONS, FaultSettings
from replay.message import Message, SendMode, TransactionState
from replay.namespace import wrap_namespace
from replay.plan.pace import Rate, duration_of
from replay.validators import why_not_message, why_not_topic, why_not_user_properties

from ..ui import common_options as common
from ..ui.common_options import ObjectFormat
from ..ui.console import When
from ..ui.declared import argument, declared, named_options, option, text_option
from ..ui.errors import print_note
from ..ui.option_names import MESSAGE
from ..ui.option_values import about, one_of, usage_error
from ..ui.status import CommandError, ExitStatus
from . import targets

_TARGET, _MESSAGE, _LOAD, _SENDING, _RESULTS = "Target", "Message", "Load", "Sending", "Results"
_MS: Final = 1_000_000
_STDIN: Final = "-"
"""body or file that stands for standard input"""
_PATIENCE: Final = 1.0
"""seconds without input after which the user is notified"""
_OFF: Final = "off"
_TRANSACTION_STATES: Final = {state.name.lower(): state for state in TransactionState}


class InputForm(StrEnum):
    """The form of an input line."""

    lines = "lines"
    jsonl = "jsonl"


def delivery_of(name: str, text: str) -> int:
    """Return the delivery time of a text, ms since the epoch."""
    if text.startswith("+"):
        return (time_ns() + targets.value_of(name, duration_of, text[1:])) // _MS
    moment = moment_of(text)
    if moment is None or not moment.has_date:
        raise usage_error(
            name, f"not a valid time: {text!r}; give +90s or a UTC time such as 2026-11-20T10:00:00"
        )
    return moment.ns // _MS


def _properties_of(name: str, texts: Sequence[str] | None) -> dict[str, str]:
    properties = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise usage_error(name, f"{text!r} has no value; write NAME=VALUE")
        properties[key] = value
    problem = why_not_user_properties(properties)
    if problem is not None:
        raise usage_error(name, f"{problem.reason}; {problem.hint}")
    return properties


def _release_of(name: str, text: str) -> int:
    try:
        return version_of_release(text)
    except ConfigError as error:
        raise usage_error(name, f"{error.reason}; {error.hint}") from None


def _fault_of(name: str, text: str) -> FaultSettings | None:
    generation = one_of((_OFF, *GENERATIONS), name, text)
    return None if generation == _OFF else FaultSettings(generation)


def _header_of(name: str, text: str) -> str:
    if text.upper() not in ("JSON", "ROCKETMQ"):
        raise usage_error(name, f"{text!r} is neither json nor rocketmq")
    return text.upper()


@declared
class SendCommand:
    """The options of `send`."""

    source: str | None = argument(
        "[-|LINES]",
        "Messages: a file with one per line, or - for stdin.",
        None,
    )
    namesrv: str | None = targets.NAMESRV
    topic: str | None = option("Topic to send to.", _TARGET, metavar="TOPIC")
    broker: str | None = option(
        "Send only to this broker, without retries on others.", _TARGET, metavar="NAME"
    )
    queue: int | None = option("Send only to this queue of --broker.", _TARGET, min=0, metavar="N")
    group: str = option("Producer group.", _TARGET, "rmqtool", metavar="GROUP")
    acl: str | None = targets.ACL
    yes: bool = targets.yes(_TARGET)
    allow: list[str] | None = targets.allow(_TARGET)
    tls: str | None = targets.TLS
    tls_name: str | None = targets.TLS_NAME
    tls_any_name: bool = targets.TLS_ANY_NAME
    tls_cert: str | None = targets.TLS_CERT
    tls_key: str | None = targets.TLS_KEY
    body: str | None = option("Message body; - reads standard input.", _MESSAGE, metavar="TEXT")
    file: str | None = option(
        "Read the body from a file; - is standard input.", _MESSAGE, metavar="FILE"
    )
    tags: str | None = option("Message tag.", _MESSAGE, metavar="TAG")
    keys: str | None = option("Message keys, separated by spaces.", _MESSAGE, metavar="KEYS")
    properties: dict[str, str] | None = option(
        "User property; repeatable.",
        _MESSAGE,
        names="--property",
        metavar="NAME=VALUE",
        typed=list[str] | None,
        read=_properties_of,
    )
    delay_level: int | None = option(
        "Delay level: 1 (1s) to 18 (2h).", _MESSAGE, min=1, max=18, metavar="1-18"
    )
    deliver_at: int | None = text_option(
        "Deliver at a time or after a delay (+90s); brokers 5.0+.",
        _MESSAGE,
        metavar="TIME|+DURATION",
        read=lambda name, text: None if text is None else delivery_of(name, text),
    )
    """ms since the epoch"""
    order_key: str | None = option(
        "Send messages with the same key to one queue, in order.", _MESSAGE, metavar="KEY"
    )
    transaction: str | None = option(
        "Send a half message, then commit, roll back, or leave it unknown.",
        _MESSAGE,
        metavar="commit|rollback|unknown",
        read=partial(one_of, sorted(_TRANSACTION_STATES)),
    )
    compress: str = option(
        "Compression of bodies of 4 KiB and more (default: zlib).",
        _MESSAGE,
        "zlib",
        metavar="zlib|lz4|zstd|off",
        show_default=False,
        read=partial(one_of, (*COMPRESSION_TYPES, _OFF)),
    )
    count: int = option("Send the same message N times.", _LOAD, 1, min=1, metavar="N")
    rate: Rate | None = targets.rate(_LOAD)
    in_flight: int | None = option(
        "Maximum sends in flight (default: 1 with --mode sync, otherwise 64).",
        _LOAD,
        min=1,
        max=65535,
        metavar="N",
    )
    batch: int = option("Messages per request.", _LOAD, 1, min=1, metavar="N")
    input: InputForm | None = text_option(
        "Line format: a body, or a JSON object per message.",
        _LOAD,
        metavar="lines|jsonl",
        read=partial(one_of, InputForm),
    )
    mode: SendMode = common.choice(SendMode, "Send mode.", _SENDING)
    timeout_ms: int = targets.timeout("Timeout of a send including retries.")
    retries: int = targets.RETRIES
    fault_strategy: FaultSettings | None = text_option(
        "Avoid failed or slow brokers like a Java client of that generation.",
        _SENDING,
        _OFF,
        metavar="off|4.7|4.8|5.1",
        value=None,
        read=_fault_of,
    )
    client: int = text_option(
        "Behave like this Java client release, such as 4.9.8.",
        _SENDING,
        "5.3.3",
        metavar="RELEASE",
        value=version_of_release("5.3.3"),
        read=_release_of,
    )
    """version of the protocol"""
    header: str = option(
        "Header serialization.",
        _SENDING,
        "json",
        metavar="json|rocketmq",
        value="JSON",
        read=_header_of,
    )
    namespace: str = option("Namespace added to topic and group.", _SENDING, "", metavar="NAME")
    vip: bool | None = option(
        "Send to the brokers' VIP port (default: only with a --client before 4.5.1).",
        _SENDING,
        names="--vip/--no-vip",
    )
    trace: bool = option("Write message traces to the trace topic.", _SENDING, False)
    format: ObjectFormat = common.choice(
        ObjectFormat, "Output format; json is one array.", _RESULTS
    )
    verbose: bool = option("Show every attempt of every message.", _RESULTS, False)
    log: str | None = option(
        "Log every attempt as a decoded row (.jsonl or .parquet).", _RESULTS, metavar="FILE"
    )
    capture: str | None = option(
        "Save the traffic, decrypted, as pcapng. Signatures are included.",
        _RESULTS,
        metavar="FILE",
    )
    force: bool = option("Overwrite existing --log and --capture files.", _RESULTS, False)
    colour: When = common.COLOR
    quiet: bool = common.QUIET
    named_options: Mapping[str, str] = named_options()

    @property
    def inputs(self) -> list[str]:
        """Files that are read."""
        named = (self.source, self.file, self.acl, self.tls, self.tls_cert, self.tls_key)
        return [name for name in named if name]

    @property
    def input_form(self) -> InputForm:
        """The form of a line."""
        if self.input is not None:
            return self.input
        named = self.source or ""
        return InputForm.jsonl if named.endswith(".jsonl") else InputForm.lines

    @property
    def most_in_flight(self) -> int:
        """Sends at once."""
        return self.in_flight or (1 if self.mode is SendMode.SYNC else 64)

    @property
    def transaction_state(self) -> TransactionState | None:
        """The end of each half message; None: no transactions."""
        return None if self.transaction is None else _TRANSACTION_STATES[self.transaction]


def message_of(given: SendCommand, config: ProducerConfig) -> Message:
    """Return the message, or the defaults for input lines.

    Raise CommandError for an invalid message and for contradicting options.
    """
    _refuse_contradictions(given)
    message = Message(given.topic or "", _body_of(given, config), given.tags, given.keys)
    message.properties.update(given.properties or {})
    if given.delay_level is not None:
        message = message.with_delay_level(given.delay_level)
    elif given.deliver_at is not None:
        message = message.with_delivery_at(given.deliver_at)
    _check_message(given, message, config)
    return message


def _refuse_contradictions(command: SendCommand) -> None:
    bodies = [
        name
        for name, value in (("--body", command.body), ("--file", command.file))
        if value is not None
    ]
    if command.source is not None:
        bodies.append("lines")
    if len(bodies) > 1:
        raise usage_error(" and ".join(bodies), "give only one body")
    if not bodies and not _is_piped():
        raise CommandError(
            "no message body; use --body, --file, a pipe, or - for lines", status=ExitStatus.USAGE
        )
    if command.source == "-" and sys.stdin.isatty():
        hint = "pipe lines into it, or give --body TEXT"
        raise CommandError("standard input is a terminal", hint, ExitStatus.USAGE)
    if command.source is not None and command.count != 1:
        raise usage_error("--count", "is for the message of --body or --file; lines are sent once")
    if command.queue is not None and command.broker is None:
        raise usage_error("--queue", "needs -b NAME: each broker has its own queues")
    if command.order_key is not None and command.broker is not None:
        raise usage_error("--order-key and --broker", "cannot be combined: both choose the queue")
    if command.transaction is not None:
        for name, used in (
            ("--batch", command.batch > 1),
            ("--broker", command.broker is not None),
            ("--order-key", command.order_key is not None),
            ("--delay-level", command.delay_level is not None),
            (f"--mode {command.mode}", command.mode is not SendMode.SYNC),
        ):
            if used:
                raise usage_error("--transaction", f"cannot be combined with {name}")
    if command.batch > 1 and (command.delay_level is not None or command.deliver_at is not None):
        raise usage_error("--batch", "messages of a batch cannot be delayed")
    if command.delay_level is not None and command.deliver_at is not None:
        raise usage_error("--delay-level and --deliver-at", "cannot be combined")
    if not command.topic and not (command.source and command.input_form is InputForm.jsonl):
        raise usage_error("--topic", "name the topic: -t TOPIC")
    _refuse_without_effect(command)


def _refuse_without_effect(command: SendCommand) -> None:
    """Refuse what changes nothing with the other options, because Java's producer ignores it."""
    oneway = command.mode is SendMode.ONEWAY
    chosen = "--broker" if command.broker is not None else "--order-key"
    is_chosen = command.broker is not None or command.order_key is not None
    if command.input is not None and command.source is None:
        raise usage_error("--input", "is the format of lines: name their file, or - for stdin")
    if "compress" in command.named_options and command.compress != _OFF and command.batch > 1:
        raise usage_error("--compress", "cannot be combined with --batch: batches stay as they are")
    if "retries" in command.named_options and command.retries:
        if oneway:
            raise usage_error("--retries", "cannot be combined with --mode oneway: no responses")
        if is_chosen and command.mode is SendMode.SYNC:
            raise usage_error(
                "--retries", f"cannot be combined with {chosen}; only --mode async retries there"
            )
    if command.fault_strategy is not None and is_chosen:
        raise usage_error(
            "--fault-strategy", f"cannot be combined with {chosen}, which chooses the queue"
        )
    if command.trace and oneway:
        raise usage_error("--trace", "cannot be combined with --mode oneway: no responses")


def _is_piped() -> bool:
    """Return whether standard input is a pipe or a file; others may never end."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _body_of(command: SendCommand, config: ProducerConfig) -> bytes:
    named = command.file if command.file is not None else command.body
    if command.file is not None and command.file != _STDIN:
        with about("--file"):
            return Path(command.file).read_bytes()
    if named == _STDIN or (named is None and command.source is None):
        if not command.quiet and not select.select([sys.stdin], [], [], _PATIENCE)[0]:
            print_note("waiting for the message body on standard input (or use --body TEXT)")
        return sys.stdin.buffer.read(config.max_message_size + 1)  # one more is refused
    return os.fsencode(command.body or "")


def _check_message(command: SendCommand, message: Message, config: ProducerConfig) -> None:
    """Refuse an invalid message; of line defaults, check only what is set."""
    lines = command.source is not None
    # Each line has a body and may have a topic: valid ones stand for them.
    checked = replace(message, topic=message.topic or "T", body=b"-") if lines else message
    problem, name = why_not_message(checked, config.max_message_size), None
    if problem is None:
        problem = why_not_topic(wrap_namespace(config.namespace, checked.topic))
        name = "--namespace"
    if problem is not None:
        name = name or MESSAGE[problem.part]
        name = "--file" if name == "--body" and command.file is not None else name
        raise CommandError(f"{name}: {problem.reason}", problem.hint, ExitStatus.USAGE)


def config_of(given: SendCommand) -> ProducerConfig:
    """Return the settings of the producer; raise CommandError if they are invalid."""
    return targets.client_config(
        given,
        given.namesrv,
        group=given.group,
        send_timeout_ms=given.timeout_ms,
        retries=given.retries,
        retries_async=given.retries,
        fault=given.fault_strategy,
        client_version=given.client,
        serialize_type=given.header,
        vip_channel=given.vip,
        namespace=given.namespace,
        # off: no body is that long
        compress_over=1 << 40 if given.compress == _OFF else 4096,
        compress_type="zlib" if given.compress == _OFF else given.compress,
        trace=given.trace,
    )
