"""Rows of JSON as one array, written while rows still arrive.

Rules: rows are on lines of their own. A run that ends early (Ctrl-C, an error) closes the array,
unless it ends inside a row because nobody reads. No signal ends a run inside a row: `interrupt`
waits for this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from .output import Output, naming
from .status import CommandError


class ArrayText:
    """The text of an array, made of JSON lines as they come."""

    def __init__(self) -> None:
        self._between = b"[\n"
        self._is_empty = True

    def rows(self, lines: bytes) -> bytes:
        """Return the next part of the array; `lines` are complete."""
        if not lines:
            return b""
        text = self._between + lines.removesuffix(b"\n").replace(b"\n", b",\n")
        self._between, self._is_empty = b",\n", False
        return text

    def end(self) -> bytes:
        """Return the end of the array."""
        return b"[]\n" if self._is_empty else b"\n]\n"


# `interrupt` knows this module by its file: its code is not interrupted.
class JsonArray(Output):
    """An output that converts JSON lines to an array."""

    _text: ArrayText | None = None
    _is_whole = True

    def write(self, data: bytes) -> None:
        """Write rows, one per line."""
        text = self._text = self._text or ArrayText()
        self._put(text.rows(data))

    def write_pieces(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Write rows from several buffers."""
        self.write(b"".join(pieces))

    def finish(self) -> None:
        """Close the array and complete the file."""
        self._close()
        super().finish()

    def discard(self) -> None:
        """Close the array if its rows were already written to their destination."""
        if self.is_direct and self._is_whole:
            with suppress(OSError, CommandError):
                self._close()
                self.flush()
        super().discard()

    def _close(self) -> None:
        self._put((self._text or ArrayText()).end())

    def _put(self, data: bytes) -> None:
        with naming(self.name):
            self._is_whole = False
            stream, written = self.stream, 0
            while written < len(data):  # a signal interrupts a write to a full pipe
                written += stream.write(data[written:])
            self.written += written
            self._is_whole = True


def rows_output(
    target: str,
    as_array: bool,
    direct: bool = False,
    private: bool = False,
    force: bool = False,
) -> Output:
    """Return the output of rows that are written as JSON lines, or else; `as_array`: as an array.

    The other arguments are those of `Output`.
    """
    return (JsonArray if as_array else Output)(target, direct, private, force)
