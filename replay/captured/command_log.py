"""Read commands from the JSON lines that ``rmqtool decode pcap --commands -T jsonl`` writes.

Rules: a log may have been edited, truncated, or filtered: a line that is not a command row is an
error with its line number, and filtered rows count like packets that were not captured. Bodies are
those of `messages`: decompressed, as text or base64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from dissectors.foreign import Unreadable, base64_of, json_of
from dissectors.remoting.broker_addresses import broker_addresses_of
from dissectors.remoting.command import RemotingCommand
from dissectors.rows.bounded_lines import BoundedLines, LineTooLong
from dissectors.times import moment_of

from ..message import Message
from .captured_send import Origin, RequestKey, Seen, message_of


class LoggedCommand(NamedTuple):
    """The columns of every row of a log."""

    time: int
    is_response: bool
    code: int
    version: int
    server_address: str
    ext_fields: dict[str, str]
    remark: str | None
    request_key: RequestKey | None
    """of a response: the key of its request; None for an orphan"""
    brokers: list[str]
    """of a response: the brokers that it names, see `broker_addresses_of`"""


class LogMessage(msgspec.Struct, rename="camel"):
    """A message in a row."""

    topic: str
    properties: dict[str, str]
    flag: int
    body: str
    body_form: str
    body_truncated: bool = False
    missing: int = 0


class LogRow(msgspec.Struct):
    """The required columns of a row; others are ignored."""

    capture: str
    packet: int
    time: str
    conversation: int
    kind: str
    code: int
    opaque: int
    flag: int
    version: int
    serialize_type: str
    ext_fields: dict[str, str]
    client_address: str = ""
    server_address: str = ""
    missing_bytes: int = 0
    src: str = ""
    """before schema 2: sender"""
    dst: str = ""
    """before schema 2: receiver"""
    missing: int = 0
    """before schema 2: `missing_bytes`"""
    language: str | None = None
    remark: str | None = None
    request_packet: int | None = None
    messages: list[LogMessage] | None = None
    body: msgspec.Raw = msgspec.Raw(b"null")

    def __post_init__(self) -> None:
        if self.src and self.dst:
            ends = (self.dst, self.src) if self.kind == "response" else (self.src, self.dst)
            self.client_address, self.server_address = ends
            self.missing_bytes = self.missing
        if not (self.client_address and self.server_address):
            raise ValueError("client_address and server_address are missing")


_DECODER = msgspec.json.Decoder(LogRow)


class LogReader:
    """Splits the bytes of a log into rows."""

    def __init__(self, name: str, error: Callable[[str], Exception]) -> None:
        """`error` makes the exception for a line that is not a row."""
        self.name = name
        """the file"""
        self._error = error
        self._lines = BoundedLines()
        self._line = 0  # lines read so far

    def receive(self, chunk: bytes) -> Iterator[LogRow]:
        """Yield the rows that this chunk completes."""
        try:
            lines = self._lines.receive(chunk)
        except LineTooLong as problem:
            raise self._error(f"{self.name}, line {self._line + 1}: {problem}") from None
        for line in lines:
            yield from self._row(line)

    def finish(self) -> Iterator[LogRow]:
        """Yield the row of a last line without a line end."""
        yield from self._row(self._lines.finish())

    def _row(self, line: bytes) -> Iterator[LogRow]:
        self._line += 1
        if not line.strip():
            return
        try:
            row = json_of(_DECODER, line)
        except Unreadable as problem:
            place = f"{self.name}, line {self._line}"
            # a row of an exchange, which has these columns
            if b'"request_time"' in line and b'"ext_fields"' not in line:
                raise self._error(
                    f"{place}: a log of exchanges holds no bodies; write it with "
                    "`rmqtool decode pcap CAPTURE --commands -o LOG.jsonl`"
                ) from None
            raise self._error(f"{place}: not a command row ({problem})") from None
        yield row

    def command_of(self, row: LogRow) -> LoggedCommand:
        """Return the command of a row."""
        moment = moment_of(row.time)
        if moment is None:
            raise self._error(f"{self.name}, line {self._line}: {row.time!r} is not a valid time")
        is_response = row.kind == "response"
        key = None
        if is_response and row.request_packet is not None:
            key = self.name, row.conversation, row.request_packet, row.opaque
        return LoggedCommand(
            moment.ns,
            is_response,
            row.code,
            row.version,
            row.server_address,
            row.ext_fields,
            row.remark,
            key,
            broker_addresses_of(bytes(row.body)) if is_response else [],
        )

    def seen_of(self, row: LogRow, command: LoggedCommand) -> Seen:
        """Return the request in a row."""
        origin = Origin(
            self.name,
            row.packet,
            row.conversation,
            row.client_address,
            row.server_address,
            command.time,
            row.opaque,
        )
        messages = row.messages or []
        return Seen(
            origin,
            RemotingCommand(
                row.code,
                row.opaque,
                row.flag,
                row.language or "",
                row.version,
                None,
                row.ext_fields,
                row.serialize_type,
            ),
            b"",
            # a log does not say how much of a cut body is missing: any number above 0 refuses it
            row.missing_bytes
            + sum(1 for message in messages if message.body_truncated or message.missing),
            tuple(self._message_of(message) for message in messages),
            header_length=sum(len(name) + len(text) for name, text in row.ext_fields.items()),
        )

    def _message_of(self, message: LogMessage) -> Message:
        if message.body_form == "text":
            body = message.body.encode()
        else:
            decoded = base64_of(message.body)
            if decoded is None:
                raise self._error(f"{self.name}, line {self._line}: the body is not base64")
            body = decoded
        return message_of(message.topic, body, message.properties, message.flag)
