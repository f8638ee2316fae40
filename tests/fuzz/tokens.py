"""Texts of tokens: a few bytes of input stand for text that nests, repeats and is long."""

from __future__ import annotations

MAX_TEXT = 64 * 1024
"""bytes that a text expands to at most"""
TOKENS = (
    *(b"[", b"]", b"{", b"}", b'{"a":', b'{"$ref":"$"}', b'{"$ref":"$.a[0]"},', b"'", b'"', b"\\"),
    *(b"\\u00", b"\x01", b"\x02", b"\xff", b"9", b"-", b",", b":", b"/*", b"//", b"@", b"%", b"\n"),
    *(b"=", b";", b" ", b"Set[", b"\xc2\xb2", b"null", b'{"a":1,', b"\0", b'"groupName":"g"}'),
)
"""what a text repeats: brackets that nest, separators, escapes, digits that are not ASCII"""


def expanded(data: bytes) -> bytes:
    """Return a text of tokens: a byte below 32 names one, the next says how often it stands."""
    text = bytearray()
    at = 0
    while at < len(data) and len(text) < MAX_TEXT:
        one = data[at]
        at += 1
        if one < len(TOKENS):
            count = data[at] if at < len(data) else 1
            at += 1
            text += TOKENS[one] * (count if count < 128 else (count - 127) * 16)
        else:
            text.append(one)
    return bytes(text[:MAX_TEXT])
