"""Where the fields of a frame lie in its bytes, so that they can be marked in a hex dump.

Rules: what cannot be found has no place; nothing raises. A credential's bytes are found by the same
names by which texts are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dissectors.remoting.framing.layout import PREFIX
from dissectors.remoting.header_codec import BINARY_TYPE, MIN_BINARY_HEADER
from dissectors.remoting.headers import mask_secret

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_FIXED: Final = (
    ("code", 0, 2),
    ("language", 2, 3),
    ("version", 3, 5),
    ("opaque", 5, 9),
    ("flag", 9, 13),
)
_PROBE: Final = "a value that is long enough"


class Span(NamedTuple):
    """Bytes of a frame, from its first one."""

    start: int
    end: int


def spans_of(serialize_type: int, header: bytes, body: bytes) -> dict[str, Span]:
    """Return name of a field → where it is in the frame; ``body.NAME`` of members of a body."""
    found = {"length": Span(0, 4), "serializeType": Span(4, 5)}
    pairs = _binary(header) if serialize_type == BINARY_TYPE else _members(header)
    for name, start, end in pairs:
        found.setdefault(name, Span(PREFIX + start, PREFIX + end))
    at = PREFIX + len(header)
    if body:
        found["body"] = Span(at, at + len(body))
        if body[:1] in (b"{", b"["):
            for name, start, end in _members(body):
                found.setdefault(f"body.{name}", Span(at + start, at + end))
    return found


def secret_spans(spans: dict[str, Span]) -> list[Span]:
    """Return where credentials are."""
    return [
        span
        for name, span in spans.items()
        if mask_secret(name.removeprefix("body."), _PROBE) != _PROBE
    ]


def _members(data: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield the members of JSON, of all objects: name, where the value begins and ends."""
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
            name = last.strip(b"\"'").decode("utf-8", "replace")
        elif token == b",":
            name = None
        elif name is not None:
            yield name, match.start(), match.end()
            name = None
        last = token


def _binary(header: bytes) -> Iterator[tuple[str, int, int]]:
    if len(header) < MIN_BINARY_HEADER:
        return
    yield from _FIXED
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
