"""The inputs of a replay: readable more than once, or live.

Rules: a replay reads its sources before it sends, to learn their addresses. A pipe can be read only
once, so it is copied to a private temporary file first. A live source is read once, and only the
addresses seen so far are known.
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

from dissectors.tcp.source import STDIN, FileSource, Source, expand_sources
from dissectors.temporary import PRIVATE, create_new, remove, temporary_in

Input = str | Source
"""name of a capture or log, or an open source"""
_PORTION: Final = 1 << 20


class CopyError(Exception):
    """A pipe cannot be copied; the text says why."""


class CopiedSource(FileSource):
    """The copy of a pipe, under the pipe's name."""

    def __init__(self, name: str, path: Path) -> None:
        super().__init__(str(path))
        self.name = name
        self.path = path
        """the copy"""

    def _open(self) -> IO[bytes]:
        self._file = self.path.open("rb", 0)
        return self._file


@contextmanager
def repeatable(
    names: Sequence[str], tick: Callable[[int], None] = lambda _: None
) -> Iterator[list[Input]]:
    """Copy inputs that can be read only once; leaving the block removes the copies.

    `tick` gets the number of bytes copied. Raises CaptureError as `expand_sources`, CopyError if an
    input cannot be copied.
    """
    copies: list[Path] = []
    try:
        inputs: list[Input] = []
        for name in expand_sources(names):
            if not is_read_once(name):
                inputs.append(name)
                continue
            path = temporary_in(Path(tempfile.gettempdir()), "rmqtool-replay-")
            # before the copy: a part of one is removed, too
            copies.append(path)
            _copy(name, path, tick)
            inputs.append(CopiedSource(name, path))
        yield inputs
    finally:
        for path in copies:
            remove(path)


def is_read_once(name: str) -> bool:
    """Return whether a name is a pipe, a terminal, or another device."""
    if name == STDIN:
        return True
    try:
        mode = os.stat(name).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def names_of(inputs: Iterable[Input]) -> list[str]:
    """Return the names of the inputs."""
    return [item if isinstance(item, str) else item.name for item in inputs]


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
