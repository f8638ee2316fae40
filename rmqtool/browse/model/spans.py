"""Byte ranges of the fields of a frame, to highlight them in a hex dump.

Rules: fields that are not found have no range; nothing raises. Credentials are found by the same
names as in masked text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from dissectors.remoting.framing.frame import PREFIX
from dissectors.remoting.header_codec import BINARY_TYPE, MIN_BINARY_HEADER
from dissectors.remoting.headers import mask_secret

# A string without an end is one token: searching its end again at each quote is quadratic.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_FIXED: Final = (
    ("code", 0, 2),
    ("language", 2, 3),
    ("version", 3, 5),
    ("opaque", 5, 9),
    ("flag", 9, 13),
)
_PROBE: Final = "a value that is long enough"
"""a value that is masked if its field is a credential"""


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


def secret_spans(spans: dict[str, Span]) -> list[Span]:
    """Return the ranges of credentials."""
    return [
        span
        for name, span in spans.items()
        if mask_secret(name.removeprefix("body."), _PROBE) != _PROBE
    ]


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
