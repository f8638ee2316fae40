"""Decode header blocks of one direction: HPACK with a table that may be joined in the middle.

After a block that cannot be decoded, a direction gives no more headers, because later blocks may
refer to it. RFC 7541.
"""

from __future__ import annotations

from typing import Final

from hpack import Decoder
from hpack.exceptions import HPACKError
from hpack.table import HeaderTable

LARGEST_BLOCK: Final = 64 * 1024
"""maximum bytes of a header block with its continuations"""
LARGEST_LIST: Final = 64 * 1024
"""maximum bytes of decoded headers of a block"""
LARGEST_TABLE: Final = 64 * 1024
"""maximum table bytes that a peer may ask for (HPACK default: 4 KiB)"""
FREE_BYTES: Final = 64 * 1024
"""decoded header bytes that a direction may always have"""
EACH: Final = 4096
"""further decoded bytes per block; gRPC needs half of that, mostly references"""
MOST_TIMES: Final = 4
"""further decoded bytes per byte of a block: Huffman codes expand by 1.6"""
HEADER_BYTES: Final = 64
"""overhead bytes of a header beside its name and value"""
_ENTRY: Final = 32
"""overhead bytes of a table entry beside its name and value"""

Headers = list[tuple[str, str]]


class HeaderBlocks:
    """Decodes the header blocks of one direction, in order."""

    def __init__(self, joined: bool) -> None:
        """Start with an empty table, or with unknown entries if the capture `joined` the
        connection.
        """
        self.problem: str | None = None
        """why this direction gives no more headers, or None"""
        self._room = FREE_BYTES
        self._decoder = Decoder(LARGEST_LIST)
        self._decoder.max_allowed_table_size = LARGEST_TABLE
        if joined:
            # As many unnamed entries as the table may have at first: references count from the
            # newest entry, so those to entries since then are right.
            table = self._decoder.header_table
            for _ in range(HeaderTable.DEFAULT_SIZE // _ENTRY):
                table.add(b"", b"")

    def decode(self, block: bytes) -> Headers | None:
        """Return the headers of a block, or None if they cannot be decoded any more."""
        if self.problem is not None:
            return None
        if len(block) > LARGEST_BLOCK:
            self.problem = f"a header block of more than {LARGEST_BLOCK} bytes"
            return None
        try:
            decoded = self._decoder.decode(block, raw=True)
        except HPACKError as error:
            self.problem = f"a header block that does not decode: {type(error).__name__}"
            return None
        except Exception as error:  # errors inside hpack, such as an index into a text
            self.problem = f"a header block that does not decode: {type(error).__name__}"
            return None
        headers = [(_text(name), _text(value)) for name, value in decoded]
        # References of one byte may expand to large headers, block after block.
        self._room += EACH + MOST_TIMES * len(block) - bytes_of(headers)
        if self._room < 0:
            self.problem = "header blocks that become far more than their bytes"
            return None
        return headers


def bytes_of(headers: Headers) -> int:
    """Return the approximate bytes of headers in memory."""
    return sum(HEADER_BYTES + len(name) + len(value) for name, value in headers)


def _text(data: bytes) -> str:
    return bytes(data).decode("utf-8", "replace")
