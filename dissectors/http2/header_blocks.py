"""Header blocks of one direction: HPACK with a table that may have been joined in the middle.

Rules: what a block becomes is bounded, by its own bytes, too: references of a byte each may stand
for very much. A direction of which a block could not be decoded gives no more headers: every later
block may refer to what was in it. Where the start was not captured, entries that were there before
are `UNKNOWN`; those that come later are right, because references count from the newest. RFC 7541.
"""

from __future__ import annotations

from typing import Final

from hpack import Decoder
from hpack.exceptions import HPACKError
from hpack.table import HeaderTable

LARGEST_BLOCK: Final = 64 * 1024
"""bytes of one header block, with its continuations"""
LARGEST_LIST: Final = 64 * 1024
"""bytes that the headers of one block may become"""
LARGEST_TABLE: Final = 64 * 1024
"""bytes of the table that a peer may ask for; 4 KiB unless it does"""
FREE_BYTES: Final = 64 * 1024
"""bytes that the headers of a direction may become whatever was read"""
EACH: Final = 4096
"""bytes that those of a block may become besides; gRPC's are half of that, mostly references"""
MOST_TIMES: Final = 4
"""bytes that each byte of a block may become besides: Huffman codes make 1.6 of one"""
HEADER_BYTES: Final = 64
"""bytes that a header takes beside its name and value"""
UNKNOWN: Final = ("", "")
"""a header that stands in a block which was not captured"""
_ENTRY: Final = 32
"""bytes that an entry of the table takes beside name and value"""

Headers = list[tuple[str, str]]


class HeaderBlocks:
    """Decodes the header blocks of one direction, in their order."""

    def __init__(self, joined: bool) -> None:
        """Begin with an empty table, or where it was `joined`, with one of unknown entries."""
        self.problem: str | None = None
        """why there are no more headers in this direction; None: there are"""
        self._room = FREE_BYTES
        self._decoder = Decoder(LARGEST_LIST)
        self._decoder.max_allowed_table_size = LARGEST_TABLE
        if joined:
            table = self._decoder.header_table
            for _ in range(HeaderTable.DEFAULT_SIZE // _ENTRY):
                table.add(b"", b"")

    def decode(self, block: bytes) -> Headers | None:
        """Return names and values; None where they cannot be known any more."""
        if self.problem is not None:
            return None
        if len(block) > LARGEST_BLOCK:
            self.problem = f"a header block of more than {LARGEST_BLOCK} bytes"
            return None
        try:
            found = self._decoder.decode(block, raw=True)
        except HPACKError as error:
            self.problem = f"a header block that does not decode: {type(error).__name__}"
            return None
        except Exception as error:  # the library's own, such as an index into a text
            self.problem = f"a header block that does not decode: {type(error).__name__}"
            return None
        headers = [(_text(name), _text(value)) for name, value in found]
        self._room += EACH + MOST_TIMES * len(block) - bytes_of(headers)
        if self._room < 0:
            self.problem = "header blocks that become far more than their bytes"
            return None
        return headers


def bytes_of(headers: Headers) -> int:
    """Return about how many bytes headers take."""
    return sum(HEADER_BYTES + len(name) + len(value) for name, value in headers)


def _text(data: bytes) -> str:
    return bytes(data).decode("utf-8", "replace")
