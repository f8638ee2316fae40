"""The sources of a replay as they can be read: more than once, or as packets come.

Rules: a replay reads its sources before it sends, for their addresses. What can be read but once, a
pipe, is therefore copied to a file first, which only the user may read and which is removed in the
end. A live source is read once, as it comes, and by no more than that is known.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, Final, cast

from dissectors.tcp.source import FIRST_READ, STDIN, FileSource, Source, expand_sources
from dissectors.temporary import PRIVATE, create_new, remove, temporary_in

Input = str | Source
"""a capture or log by name, or what is read in its place"""
_PORTION: Final = 1 << 20


class CopyError(Exception):
    """A pipe cannot be copied; the text says why."""


class CopiedSource(FileSource):
    """What was read from a pipe, under the pipe's name."""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(str(path))
        self.name = name
        self.path = path
        """the copy"""

    def _open(self) -> IO[bytes]:
        self._file = self.path.open("rb", FIRST_READ)
        return self._file


@contextmanager
def repeatable(
    names: Sequence[str], tick: Callable[[int], None] = lambda _: None
) -> Iterator[list[Input]]:
    """Copy what can be read but once; the copies are removed with the block.

    `tick` is told how many bytes were copied. Raises CaptureError as `expand_sources`, CopyError
    where something cannot be copied.
    """
    copies: list[Path] = []
    try:
        found: list[Input] = []
        for name in expand_sources(names):
            if not is_read_once(name):
                found.append(name)
                continue
            path = temporary_in(Path(tempfile.gettempdir()), "rmqtool-replay-")
            copies.append(path)
            _copy(name, path, tick)
            found.append(CopiedSource(name, path))
        yield found
    finally:
        for path in copies:
            remove(path)


def is_read_once(name: str) -> bool:
    """Return whether a name stands for a pipe, a terminal or another device."""
    if name == STDIN:
        return True
    try:
        mode = os.stat(name).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def names_of(inputs: Iterable[Input]) -> list[str]:
    """Return what the inputs are called."""
    return [one if isinstance(one, str) else one.name for one in inputs]


def _copy(name: str, path: Path, tick: Callable[[int], None]) -> None:
    size = 0
    try:
        with create_new(path, PRIVATE) as target, _opened(name) as source:
            while data := source.read1(_PORTION):
                target.write(data)
                size += len(data)
                tick(size)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CopyError(f"{name} cannot be copied to {path.parent}: {reason}") from None


@contextmanager
def _opened(name: str) -> Iterator[BufferedReader]:
    if name == STDIN:
        yield cast(BufferedReader, sys.stdin.buffer)
        return
    with open(name, "rb") as file:
        yield file
