"""The details of an exchange: the tree of `decode -V`, its bytes, and bodies, as lines.

Rules: the tree has the same lines as `decode pcap -V`. For decoded logs, which have only rows, the
tree has the columns with their meaning. Lines are printable; credentials are masked in text and
bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from analytics.life.life import lives_found
from analytics.life.search import MessageSearch
from dissectors.budget import Budget
from dissectors.decode.command_row import body_of, shown_body, shown_messages
from dissectors.decode.exchange import Exchange
from dissectors.decode.pipeline import CommandSeen
from dissectors.foreign import Unreadable, json_of
from dissectors.quantities import counted
from dissectors.remoting.bodies.body import ShownMessage, message_dict
from dissectors.remoting.bodies.custom import NamedDecoder, decoding_with
from dissectors.remoting.bodies.secrets import secrets_in, unescaped_name
from dissectors.remoting.framing.frame import PREFIX
from dissectors.remoting.header_codec import BINARY_TYPE, MIN_BINARY_HEADER
from dissectors.remoting.headers import shown_letters
from dissectors.rows.column import Column
from dissectors.tcp.capture import packet_number

from ...decode.follow_lines import printed_lines
from ...decode.row_run import cell_of
from ...decode.tree import Tree
from ...trace.ladder_lines import ladder_lines
from ...ui.console import UNLIMITED, Terminal, one_line
from .frames import KeptExchange, KeptFrame, exchange_of
from .session import BrowseSession

# A string without an end is one token: searching its end again at each quote is quadratic.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_FIXED: Final = (
    ("code", 0, 2),
    ("language", 2, 3),
    ("version", 3, 5),
    ("opaque", 5, 9),
    ("flag", 9, 13),
)


class Span(NamedTuple):
    """A range of bytes in a frame."""

    start: int
    end: int


def spans_of(serialize_type: int, header: bytes, body: bytes) -> dict[str, Span]:
    """Return field name → range in the frame; members of a body are ``body.NAME``."""
    spans = {"length": Span(0, 4), "serializeType": Span(4, 5)}
    pairs = _binary(header) if serialize_type == BINARY_TYPE else _members(header)
    for name, start, end in pairs:
        spans.setdefault(name, Span(PREFIX + start, PREFIX + end))
    at = PREFIX + len(header)
    if body:
        spans["body"] = Span(at, at + len(body))
        if body[:1] in (b"{", b"["):
            for name, start, end in _members(body):
                spans.setdefault(f"body.{name}", Span(at + start, at + end))
    return spans


def secret_spans(serialize_type: int, header: bytes, body: bytes) -> list[Span]:
    """Return the ranges of all credentials, in order and without overlaps."""
    found: list[Span] = []
    for at, data in ((PREFIX, header), (PREFIX + len(header), body)):
        binary = serialize_type == BINARY_TYPE and data is header
        pairs = chain(
            _binary(data) if binary else _members(data), secrets_in(data.decode("latin-1"))
        )
        found += [
            Span(at + start, at + end)
            for name, start, end in pairs
            if start < end and shown_letters(name) is not None
        ]
    spans: list[Span] = []
    for start, end in sorted(found):
        if spans and start <= spans[-1].end:
            # Objects contain objects: masking each of them would be quadratic.
            spans[-1] = Span(spans[-1].start, max(end, spans[-1].end))
        else:
            spans.append(Span(start, end))
    return spans


def _members(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the members of all JSON objects: name, start and end of the value."""
    opened: list[tuple[str, int]] = []
    name: str | None = None
    last = b""
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in (b"{", b"["):
            opened.append((name or "", match.start()))
            name = None
        elif token in (b"}", b"]"):
            if opened:
                outer, start = opened.pop()
                if outer:
                    yield outer, start, match.end()
            name = None
        elif token == b":":
            name = unescaped_name(last.strip(b"\"'").decode("utf-8", "replace"))
        elif token == b",":
            name = None
        elif name is not None:
            yield name, match.start(), match.end()
            name = None
        last = token
    for outer, start in opened:  # cut off: their ends are missing
        if outer:
            yield outer, start, len(data)


def _binary(header: bytes) -> Iterator[tuple[str, int, int]]:
    if len(header) < MIN_BINARY_HEADER:
        return
    yield from _FIXED
    # then the length of the remark, the remark, the length of all fields, and the fields
    at = 17 + int.from_bytes(header[13:17], "big")
    if at > 17:
        yield "remark", 17, at
    at += 4
    while at + 2 <= len(header):
        size = int.from_bytes(header[at : at + 2], "big")
        name = header[at + 2 : at + 2 + size].decode("utf-8", "replace")
        at += 2 + size
        size = int.from_bytes(header[at : at + 4], "big")
        yield name, at + 4, min(at + 4 + size, len(header))
        at += 4 + size


BODY_LIMIT: Final = 64 * 1024
"""bytes of a body that are shown"""
MOST_LINES: Final = 20_000
_DUMPED: Final = 16
_MASKED: Final = ord("*")
_LABEL: Final = re.compile(r"([^\s:\[]+)(?: \[([^\]]+)\])?:")
_JSON: Final = msgspec.json.Decoder()


@dataclass(slots=True)
class Node:
    """A line of the tree with its children."""

    text: str
    """printable"""
    children: list[Node] = field(default_factory=list)
    frame: int = -1
    """index of its frame: 0 request, 1 response; -1: of neither"""
    span: Span | None = None
    """range in the bytes of its frame"""


@dataclass(slots=True)
class FrameBytes:
    """A frame as sent."""

    name: str
    data: bytes
    """its bytes, credentials masked"""
    missing: int
    """number of further bytes that were not captured or kept"""


@dataclass(slots=True)
class Detail:
    """The details of a row."""

    title: str
    nodes: list[Node]
    frames: list[FrameBytes | None]
    """request and response"""
    note: str = ""
    """what is missing, and why"""
    sides: list[list[str]] = field(default_factory=list)
    """lines of request and response, for the side-by-side view"""
    bodies: list[str] = field(default_factory=list)
    """lines of the bodies, readable"""


def detail_of(
    kept: KeptExchange, captures: Sequence[str], plugins: Sequence[NamedDecoder] = ()
) -> Detail:
    """Return the details of an exchange."""
    with decoding_with(plugins):
        exchange = exchange_of(kept)
        lines = Tree(captures, False, BODY_LIMIT).exchange(exchange)
        bodies = list(_body_lines(exchange))
    title, *rest = [line for line in lines if line]
    nodes = _nodes(rest)
    frames: list[FrameBytes | None] = []
    for index, frame in enumerate((kept.request, kept.response)):
        name = ("Request", "Response")[index]
        match = next((node for node in nodes if node.text.startswith(f"{name}:")), None)
        frames.append(None)
        if frame is not None and match is not None and frame.header:
            # The body of a message is the user's: its members are no credentials of RocketMQ.
            carries = any(node.text.startswith("message 1 of") for node in _all(match))
            spans = spans_of(frame.serialize_type, frame.header, frame.body)
            frames[index] = _bytes_of(name, frame, masked=not carries)
            _place(match, index, spans)
    note = "" if kept.whole else "bodies were not kept: too many bytes"
    sides = [
        [line for node in nodes if node.frame == index for line in lines_of(node)]
        for index in (0, 1)
    ]
    return Detail(title, nodes, frames, note, sides, bodies)


def detail_of_row(row: Any, columns: Sequence[Column], title: str, note: str = "") -> Detail:
    """Return the details of a row: its columns with their meaning."""
    nodes = []
    for column in columns:
        value = getattr(row, column.name)
        if value is None or value == []:
            continue
        unit = f" {column.unit}" if column.unit else ""
        node = Node(f"{column.name}: {cell_of(value)}{unit}")
        meaning = column.meaning.replace("`", "")
        node.children.append(Node(one_line(f"{meaning} ({column.source})")))
        if isinstance(value, list):
            node.children += [Node(one_line(str(item))) for item in value]
        nodes.append(node)
    sides = [[node.text for node in nodes], []]
    return Detail(title, nodes, [None, None], note, sides)


def _nodes(lines: Sequence[str]) -> list[Node]:
    """Return lines as a tree, by indentation."""
    roots: list[Node] = []
    parents: list[tuple[int, Node]] = []
    for line in lines[:MOST_LINES]:
        text = line.lstrip(" ")
        depth = len(line) - len(text)
        node = Node(text)
        while parents and parents[-1][0] >= depth:
            parents.pop()
        (parents[-1][1].children if parents else roots).append(node)
        parents.append((depth, node))
    if len(lines) > MOST_LINES:
        roots.append(Node(f"… {len(lines) - MOST_LINES} more lines"))
    return roots


def _all(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _all(child)


def lines_of(node: Node, depth: int = 0) -> Iterator[str]:
    """Return a node and its descendants as indented lines."""
    yield "  " * depth + node.text
    for child in node.children:
        yield from lines_of(child, depth + 1)


def _place(root: Node, index: int, spans: dict[str, Span]) -> None:
    """Set the byte range of each node."""
    for top in root.children:
        in_body = top.text.startswith("body:")
        for node in _all(top):
            node.frame = index
            label = _LABEL.match(node.text)
            names = [] if label is None else [label[2] or label[1], label[1]]
            if in_body:
                names = [f"body.{name}" for name in names]
            node.span = next((spans[name] for name in names if name in spans), None)
            if node.span is None and in_body:
                node.span = spans.get("body")
    root.frame = index


def _bytes_of(name: str, frame: KeptFrame, masked: bool) -> FrameBytes:
    """Return the bytes of a frame; `masked`: also mask credentials in its body."""
    total = 4 + len(frame.header) + frame.body_length
    prefix = total.to_bytes(4, "big") + bytes((frame.serialize_type,))
    body = frame.body[:BODY_LIMIT]
    data = bytearray(prefix + len(frame.header).to_bytes(3, "big") + frame.header + body)
    for start, end in secret_spans(frame.serialize_type, frame.header, body if masked else b""):
        data[start:end] = bytes((_MASKED,)) * (end - start)
    return FrameBytes(name, bytes(data), frame.body_length - len(body))


def hex_lines(data: bytes, marked: Span | None) -> list[tuple[str, list[tuple[int, int]]]]:
    """Return a hex dump: each line with its marked ranges (start, end)."""
    lines = []
    for at in range(0, len(data), _DUMPED):
        part = data[at : at + _DUMPED]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        marks = []
        if marked is not None:
            first, end = max(marked.start - at, 0), min(marked.end - at, len(part))
            if first < end:
                marks = [(8 + 3 * first, 8 + 3 * end - 1), (57 + first, 57 + end)]
        lines.append((f"{at:06x}  {part.hex(' '):<47}  {text}", marks))
    return lines


def _body_lines(exchange: Exchange) -> Iterator[str]:
    """Yield both bodies in readable form."""
    request, response = exchange.request, exchange.response
    budget = Budget()
    for name, pdu, asked in (("Request", request, None), ("Response", response, request)):
        if pdu is None or not pdu.body_length:
            continue
        seen = CommandSeen(pdu, asked, None)
        budget.earn(len(pdu.header) + len(pdu.body))
        yield f"{name}: {counted(pdu.body_length, 'byte')}"
        try:
            body = body_of(seen, budget)
            messages = shown_messages(seen, body, BODY_LIMIT, budget)
            shown = shown_body(body, pdu.body, BODY_LIMIT)
        except Exception as error:  # last resort: a single body must not end the program
            yield f"  {one_line(str(error))}"
            continue
        for number, message in enumerate(messages or (), 1):
            yield f"  message {number} of {len(messages or ())}"
            yield from (f"    {line}" for line in _message_lines(message))
        if shown is not None and not messages:
            yield from (f"  {line}" for line in _readable(shown))
        yield ""


def _message_lines(shown: ShownMessage) -> Iterator[str]:
    message = message_dict(shown)
    content = message.get("content")
    if isinstance(content, dict) and content.get("value") is not None:
        yield f"by {one_line(str(content.get('kind')))}:"
        yield from pretty(content["value"])
        return
    yield from _readable(message)


def _readable(shown: dict[str, object]) -> Iterator[str]:
    """Yield a body: as indented JSON, as text, or as one line in its encoded form."""
    if shown.get("value") is not None:
        yield from pretty(shown["value"])
        return
    text = shown.get("body")
    if not isinstance(text, str):
        return
    if shown.get("bodyForm") == "text":
        try:
            yield from pretty(json_of(_JSON, text))
        except Unreadable:
            yield from (one_line(line, UNLIMITED) for line in text.splitlines())
    else:
        yield f"({shown.get('bodyForm')}) {one_line(text)}"
    if shown.get("bodyTruncated"):
        yield "…"


def pretty(value: object) -> Iterator[str]:
    """Yield a value in JSON types as indented, printable lines."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    for line in text.splitlines()[:MOST_LINES]:
        yield one_line(line, UNLIMITED)


MOST_LISTED: Final = 400
"""exchanges shown around the selected one"""
_BODY: Final = 2048


def life_lines(
    session: BrowseSession, key: str, width: int, wanted: Callable[[], bool]
) -> list[str]:
    """Return the traces of the messages of a key, as `trace` draws them.

    `wanted` returns False when the result is no longer needed.
    """
    search = MessageSearch(key, None)
    for messages in session.messages.whole():
        search.add(messages)
        if not wanted():
            return []
    for exchanges in session.exchanges.whole():
        search.add_exchanges(exchanges)
        if not wanted():
            return []
    for connections in session.connections.whole():
        search.attempts.add_connections(connections)
    stats = session.stats
    lives = lives_found(search, [] if stats is None else [stats])
    if not lives:
        return [f"no message has the key {one_line(key)}"]
    return ladder_lines(lives, Terminal(True, max(60, width), True))


def talk_lines(
    session: BrowseSession, conversation: int, number: int, wanted: Callable[[], bool]
) -> list[str]:
    """Return the commands of a conversation around an exchange, as text."""
    numbers = list(_numbers_of(session, conversation, wanted))
    before = [item for item in numbers if item <= number][-MOST_LISTED // 2 :]
    after = [item for item in numbers if item > number][: MOST_LISTED // 2]
    frames = session.frames
    commands: list[CommandSeen] = []
    for item in (*before, *after):
        kept = None if frames is None else frames.exchange(item)
        if kept is None:
            continue
        exchange = exchange_of(kept)
        if exchange.request is not None:
            commands.append(CommandSeen(exchange.request, None, None))
        if exchange.response is not None:
            commands.append(CommandSeen(exchange.response, exchange.request, exchange.latency))
    commands.sort(key=lambda item: (item.pdu.packet, item.pdu.offset))
    client = next((item.pdu.src for item in commands if not item.pdu.command.is_response), "")
    lines = [f"conversation {conversation}: → sent by {client}", ""]
    left_out = len(numbers) - len(before) - len(after)
    if left_out:
        lines[0] += f"; {counted(left_out, 'more exchange')} not shown"
    budget = Budget()
    for seen in commands:
        try:
            lines += printed_lines(seen, seen.pdu.src == client, _BODY, budget, True)
        except Exception as error:  # last resort: a single command must not end the program
            lines.append(f"packet {packet_number(seen.pdu.packet)}: {one_line(str(error))}")
    return lines


def _numbers_of(
    session: BrowseSession, conversation: int, wanted: Callable[[], bool]
) -> Iterator[int]:
    store = session.exchanges
    for first, rows in store.runs(store.first, store.count):
        if not wanted():
            return
        for place, row in enumerate(rows):
            if row.conversation == conversation:
                yield first + place
