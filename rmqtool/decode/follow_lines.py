"""One conversation as text, both directions in the order seen.

Rules: a command is shown as title, header as sent, and body as text or hex dump, each marked with
the direction. Credentials are masked, control characters escaped.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Sequence

from dissectors.budget import Budget
from dissectors.decode.command_fields import command_fields
from dissectors.decode.command_row import (
    body_of,
    kind_of,
    name_of,
    request_name_of,
    shown_ext_fields,
)
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.remoting.bodies.secrets import (
    data_without_secrets,
    text_without_secrets,
)
from dissectors.remoting.headers import shown_remark
from dissectors.tcp.capture import packet_number

from ..ui.console import MOST_OF_VALUE, UNLIMITED, Style, one_line, styled
from ..ui.figures import clock, duration, size
from .options import DecodeRequest
from .row_run import RowSource, compiled, output_of, output_terminal
from .sinks import TextSink

BODY_LIMIT = 4096
"""default bytes of a body that are shown"""
_DUMPED = 16
_FROM_CLIENT, _FROM_SERVER = "→", "←"


def follow_rows(request: DecodeRequest, decode: Decode) -> RowSource[CommandSeen]:
    """Return the commands of the requested conversation."""
    number = request.follow_conversation

    def batches() -> Iterator[Sequence[CommandSeen]]:
        for batch in decode.commands():
            yield [seen for seen in batch if seen.pdu.conversation == number]

    return RowSource(
        batches,
        compiled(request, lambda: command_fields(decode.sources)),
        lambda seen: seen.pdu.ts,
        lambda: FollowSink(request),
        "commands",
    )


class FollowSink(TextSink[CommandSeen]):
    """A conversation as text."""

    def __init__(self, request: DecodeRequest) -> None:
        output = output_of(request)
        super().__init__(output, list)
        self._colour = output_terminal(request).colour
        self._limit = BODY_LIMIT if request.body_limit is None else request.body_limit
        self._client: str | None = None
        self._budget = Budget()

    def write(self, rows: Sequence[CommandSeen]) -> None:
        for seen in rows:
            if self._client is None:
                self._client = self._begin(seen)
            self.write_lines(self._lines_of(seen))

    def _begin(self, seen: CommandSeen) -> str:
        """Print the head of the conversation; return its client."""
        pdu = seen.pdu
        conversation = pdu.direction.conversation
        # Without a handshake in the capture, the sender of the first command.
        client = (conversation.client or pdu.direction).src
        server = pdu.dst if pdu.src == client else pdu.src
        self.write_lines(
            [
                f"Conversation {pdu.conversation}: {client} {_FROM_CLIENT} {server}",
                f"{_FROM_CLIENT} sent by {client}, {_FROM_SERVER} sent by {server}",
                "",
            ]
        )
        return client

    def _lines_of(self, seen: CommandSeen) -> list[str]:
        from_client = seen.pdu.src == self._client
        return printed_lines(seen, from_client, self._limit, self._budget, self._colour)


def printed_lines(
    seen: CommandSeen, from_client: bool, limit: int, budget: Budget, colour: bool
) -> list[str]:
    """Return the text of a command: title, header, and body; `limit`: bytes of the body."""
    pdu, command = seen.pdu, seen.pdu.command
    arrow = _FROM_CLIENT if from_client else _FROM_SERVER
    took = "" if seen.latency is None else f" after {duration(seen.latency // 1000)}"
    asked = request_name_of(seen)
    name = name_of(seen) if asked is None else f"{asked} {name_of(seen)}"
    title = f"{kind_of(pdu)} {one_line(name)} #{command.opaque}{took}"
    where = f"{clock(pdu.ts)} packet {packet_number(pdu.packet)}, {size(pdu.frame_bytes)}"
    lines = [f"{title}  {where}", _header_text(seen)]
    body = pdu.body[:limit]
    budget.earn(pdu.header_length + len(pdu.body))
    is_cut = pdu.missing > 0 or len(body) < len(pdu.body)
    lines += _body_lines(body, is_cut, not body_of(seen, budget).messages)
    if pdu.missing:
        lines.append(f"… {pdu.missing} bytes were not captured")
    elif len(body) < len(pdu.body):
        lines.append(f"… {len(pdu.body) - len(body)} more bytes; --body-limit shows more")
    style = Style.CYAN if arrow == _FROM_CLIENT else Style.GREEN
    marked = [f"{arrow} {line}" for line in lines]
    if colour:
        marked = [styled(line, style) for line in marked]
    return [*marked, ""]


def _header_text(seen: CommandSeen) -> str:
    """Return the header as one line of JSON, whatever its encoding."""
    command = seen.pdu.command
    header: dict[str, object] = {
        "code": command.code,
        "language": command.language,
        "version": command.version,
        "opaque": command.opaque,
        "flag": command.flag,
    }
    if command.remark is not None:
        header["remark"] = shown_remark(command.remark)
    if command.ext_fields:
        header["extFields"] = shown_ext_fields(command.ext_fields)
    if command.serialize_type != "JSON":
        header["serializeType"] = command.serialize_type
    return one_line(json.dumps(header, ensure_ascii=False), MOST_OF_VALUE)


def _body_lines(body: bytes, is_cut: bool, masked: bool) -> list[str]:
    """Return the lines of a body; `masked`: mask credentials, except in messages."""
    if not body:
        return []
    try:
        text = codecs.utf_8_decode(body, "strict", not is_cut)[0]  # a cut may be in a character
    except UnicodeDecodeError:
        return _dump(data_without_secrets(body) if masked else body)
    if any(char < " " and char not in "\t\r\n" for char in text):
        return _dump(data_without_secrets(body) if masked else body)
    shown = text_without_secrets(text) if masked else text
    return [one_line(line, UNLIMITED) for line in shown.splitlines()]


def _dump(data: bytes) -> list[str]:
    """Return a hex dump: offset, bytes, and printable ASCII."""
    lines = []
    for at in range(0, len(data), _DUMPED):
        part = data[at : at + _DUMPED]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        # 47 cells: 16 bytes with two digits each, and the blanks between them
        lines.append(f"{at:08x}  {part.hex(' '):<47}  {text}")
    return lines
