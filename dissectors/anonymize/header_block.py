"""Rewrite HPACK header blocks: same representations and references, other texts.

Rules: table entries keep their sizes or become smaller, so every reference keeps its meaning. A
block keeps its length: the difference is padding, or is cut from texts whose length does not
matter. RFC 7541.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hpack.exceptions import HPACKDecodingError
from hpack.hpack import decode_integer, encode_integer
from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH

from ..foreign import Unreadable
from ..http2.header_blocks import Headers

_INDEXED, _ADDED, _SIZE = 0x80, 0x40, 0x20
_MOST_MORE: Final = 4
"""maximum bytes of a number after its prefix"""


class _Text:
    """A text of a block."""

    __slots__ = ("data", "free", "huffman")

    def __init__(self, data: bytes, huffman: bool, free: bool) -> None:
        self.data = data
        self.huffman = huffman
        self.free = free

    def encoded(self) -> bytes:
        data = _huffman(self.data) if self.huffman else self.data
        return _length(len(data), 0x80 if self.huffman else 0) + data

    def cut(self, over: int) -> int:
        """Shorten it by so many bytes; return the bytes that are still too many."""
        bits = [REQUEST_CODES_LENGTH[byte] if self.huffman else 8 for byte in self.data]
        whole = sum(bits)
        wanted = self._size(whole) - over
        size = len(bits)
        while size and self._size(whole) > wanted:
            size -= 1
            whole -= bits[size]
        self.data = self.data[:size]
        return max(self._size(whole) - wanted, 0)

    @staticmethod
    def _size(bits: int) -> int:
        size = (bits + 7) // 8
        return len(_length(size)) + size


def rewritten(
    block: bytes,
    headers: Headers,
    change: Callable[[str, str], tuple[str, str, bool]],
) -> tuple[bytes, int]:
    """Return a block with other texts, at most as long, and the number of texts cut for that.

    `headers`: the decoded headers. `change`: name and value → replacements, and whether the value
    may be cut. Raise Unreadable for an invalid block.
    """
    parts: list[bytes | _Text] = []
    at = place = 0
    while at < len(block):
        first = block[at]
        start = at
        if first & _INDEXED:
            _, at = _read(block, at, 7)  # a header of the table
            place += 1
        elif not first & _ADDED and first & _SIZE:
            _, at = _read(block, at, 5)  # a new size of the table
        else:
            # A name of the table, or 0 and a name; then a value.
            index, at = _read(block, at, 6 if first & _ADDED else 4)
            if place >= len(headers):
                raise Unreadable("a block with more headers than it decodes to")
            name, value = headers[place]
            new_name, new_value, free = change(name, value)
            parts.append(block[start:at])
            start = at
            if not index:
                at = _add(parts, block, at, None if new_name == name else new_name, False)
            at = _add(parts, block, at, None if new_value == value else new_value, free)
            place += 1
            continue
        parts.append(block[start:at])
    return _fitted(parts, len(block))


def _fitted(parts: list[bytes | _Text], size: int) -> tuple[bytes, int]:
    whole = _joined(parts)
    cut, over = 0, len(whole) - size
    if over <= 0:
        return whole, 0
    texts = [part for part in parts if isinstance(part, _Text)]
    # Cut values whose length does not matter first, then the longest ones.
    for text in sorted(texts, key=lambda text: (not text.free, -len(text.data))):
        cut += not text.free
        over = text.cut(over)
        if not over:
            break
    return _joined(parts), cut


def _joined(parts: list[bytes | _Text]) -> bytes:
    return b"".join(part.encoded() if isinstance(part, _Text) else part for part in parts)


def _huffman(data: bytes) -> bytes:
    """Return a text in HPACK's Huffman code; the library takes quadratic time for that."""
    out = bytearray()
    bits = count = 0
    for byte in data:
        size = REQUEST_CODES_LENGTH[byte]
        bits = bits << size | REQUEST_CODES[byte]
        count += size
        while count >= 8:
            count -= 8
            out.append(bits >> count & 0xFF)
        bits &= (1 << count) - 1
    if count:
        out.append(bits << (8 - count) & 0xFF | 0xFF >> count)  # padded with ones: RFC 7541, 5.2
    return bytes(out)


def _add(parts: list[bytes | _Text], block: bytes, at: int, text: str | None, free: bool) -> int:
    """Add the replacement of the text at a place (None: unchanged); return its end."""
    if at >= len(block):
        raise Unreadable("a text is missing")
    huffman = bool(block[at] & 0x80)
    size, start = _read(block, at, 7)
    stop = start + size
    if stop > len(block):
        raise Unreadable("a text that is cut")
    if text is None:
        parts.append(block[at:stop])
    else:
        parts.append(_Text(text.encode("utf-8", "replace"), huffman, free))
    return stop


def _read(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """Return a number with a prefix of so many bits, and its end."""
    try:
        value, size = decode_integer(block[at : at + 1 + _MOST_MORE], bits)
    except HPACKDecodingError:
        raise Unreadable("a number that does not end") from None
    return value, at + size


def _length(size: int, mark: int = 0) -> bytes:
    """Return the length of a text; `mark` is the bit before it, which is set for Huffman code."""
    out = encode_integer(size, 7)
    out[0] |= mark
    return bytes(out)
