"""The output of a result: standard output, or a file that is renamed when complete.

Rules: a file that exists is replaced only with `--force`, at the end, so a stopped run leaves it as
it was. A pipe, a device and a file that somebody follows are written directly. An input is never
overwritten, by whatever name it is given.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Self, TextIO, cast

from dissectors.temporary import (
    PRIVATE,
    PUBLIC,
    create_like,
    forget,
    remove,
    temporary_beside,
)

from .errors import reason_of
from .status import CommandError, ExitStatus

_PAGES: Final = (".html", ".htm", ".xhtml", ".xht")
_PIECES: Final = 1024
"""most buffers per `writev` on all systems"""
_DESCRIPTORS: Final = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")
"""prefixes of files that the shell has opened, and perhaps truncated"""
JOURNAL_MARK: Final = "run.json"
"""marker of a replay journal folder"""


class Output:
    """Writes bytes to standard output or a file.

    A context manager: the output is finished at the end of the block, and discarded after an error.
    """

    def __init__(
        self, target: str, direct: bool = False, private: bool = False, force: bool = False
    ) -> None:
        """`target` is a path or ``-``; `direct` writes to the path itself, as the rows come.

        `private`: only the user may read a file that is new. `force`: a file that exists is
        replaced; otherwise it is a CommandError.
        """
        self.name = "standard output" if target == "-" else target
        """name in messages"""
        self.path: Path | None = None if target == "-" else Path(target)
        """the file; None: standard output"""
        self.written = 0
        """bytes written so far"""
        self._temporary: Path | None = None
        self._force = force
        self._mode = PRIVATE if private else PUBLIC
        self.stream = self._open(direct)
        """the open file, for writers that need a file object"""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.discard()
            return
        try:
            self.finish()
        except BaseException:
            self.discard()
            raise

    def _open(self, direct: bool) -> BinaryIO:
        if self.path is None:
            return sys.stdout.buffer
        if self.path.is_dir() or self.name.endswith("/"):
            hint = (
                "give a file name; only decode pcap and decode live write a folder (a decoded log),"
                " with -T jsonl, or with -T parquet and a name without .parquet"
            )
            raise CommandError(f"{self.name} is a folder", hint, ExitStatus.USAGE)
        refuse_existing(self.name, self._force)
        is_file = not self.path.exists() or self.path.is_file()
        if not direct and is_file and not self.name.startswith(_DESCRIPTORS):
            self._temporary = temporary_beside(self.path)
        with naming(self.name):
            if self._temporary is not None:
                return create_like(self._temporary, self.path, self._mode)
            # What a descriptor refers to is not emptied: the shell may append to it.
            mode = "ab" if self.name.startswith(_DESCRIPTORS) else "wb"
            return cast(BinaryIO, open(self.path, mode, opener=self._opened))

    def _opened(self, path: str, flags: int) -> int:
        return os.open(path, flags, self._mode)

    @property
    def is_direct(self) -> bool:
        """Whether writes reach their destination at once."""
        return self._temporary is None

    def write(self, data: bytes) -> None:
        """Write all of `data`."""
        self.written += len(data)
        with naming(self.name):
            written = self.stream.write(data)
            while written < len(data):  # a signal interrupted a write to a full pipe
                written += self.stream.write(data[written:])

    def write_pieces(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Write several buffers without joining them."""
        try:
            number = self.stream.fileno()
        except (OSError, ValueError):  # not a file of the system
            self.write(b"".join(pieces))
            return
        with naming(self.name):
            self.stream.flush()
            for first in range(0, len(pieces), _PIECES):
                some = pieces[first : first + _PIECES]
                written = os.writev(number, some)
                self.written += written
                if written < sum(map(len, some)):  # a signal interrupted it
                    self.write(b"".join(some)[written:])
                    self.stream.flush()

    def flush(self) -> None:
        """Flush, so that readers see all writes."""
        self.stream.flush()

    def finish(self) -> None:
        """Complete the file and rename it to its final name."""
        if self.path is None:
            self.stream.flush()
            return
        with naming(self.name):
            self.stream.close()
            if self._temporary is not None:
                refuse_existing(self.name, self._force)  # created in the meantime
                self._temporary.replace(self.path)
                forget(self._temporary)

    def discard(self) -> None:
        """Remove the partial file after an aborted run."""
        if self.path is None:
            return
        with contextlib.suppress(OSError):  # flushing also fails after a failed write
            self.stream.close()
        if self._temporary is not None:
            remove(self._temporary)


def write_text(target: str, lines: Sequence[str], force: bool) -> None:
    """Write printable lines to an output."""
    with Output(target, force=force) as output:
        output.write(("\n".join(lines) + "\n").encode("utf-8", "replace"))


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn an OSError of a write into an error that names the output."""
    try:
        yield
    except BrokenPipeError:  # the reader has seen enough, as `head` does: no failure
        raise
    except OSError as error:
        reason = reason_of(error)
        raise CommandError(f"{name} cannot be written: {reason}") from error


def refuse_existing(target: str | None, force: bool) -> None:
    """Raise CommandError if `target` is an existing file that may not be replaced.

    None, ``-``, devices and pipes are nothing that could be lost. Folders have checks of their own.
    """
    if force or target is None or target == "-" or target.startswith(_DESCRIPTORS):
        return
    if Path(target).is_file():
        raise CommandError(
            f"{target} already exists", "add --force to replace it", ExitStatus.USAGE
        )


def refuse_text_as_page(target: str, hint: str) -> None:
    """Raise CommandError if text or rows would get the name of an HTML page."""
    # A browser would interpret captured text as HTML and run its scripts.
    if target.lower().endswith(_PAGES):
        raise CommandError(f"{target} is an HTML file name", hint, ExitStatus.USAGE)


def refuse_same_file(keep: str | None, output: str, what: str) -> None:
    """Raise CommandError if output and packet file are the same."""
    if keep is not None and os.path.realpath(keep) == os.path.realpath(output):
        message = f"-o and -w: {keep} cannot hold both {what} and packets"
        raise CommandError(message, status=ExitStatus.USAGE)


def refuse_inputs(target: str, inputs: Iterable[str], option: str = "-o") -> None:
    """Raise CommandError if `target` is one of the inputs; empty names are none.

    Files are compared by identity, not by name; ``-`` is the redirected file. A folder that rmqtool
    wrote includes all its files.
    """
    place = _place_of(target, sys.stdout)
    if place is None:
        return
    for name in filter(None, inputs):
        if place == _place_of(name, sys.stdin) or _is_part(target, name):
            shown = "standard output" if target == "-" else target
            raise CommandError(
                f"{shown} is also an input and would be overwritten",
                f"give another name to {option}",
                ExitStatus.USAGE,
            )


def _place_of(name: str, standard: TextIO) -> tuple[int, int] | None:
    """Return the identity of a regular file, or None if it is missing or not regular."""
    try:
        status = os.fstat(standard.fileno()) if name == "-" else os.stat(name)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _is_part(target: str, folder: str) -> bool:
    """Return whether a file is in a folder that rmqtool wrote, such as a decoded log or journal."""
    from dissectors.owned_folder import MARKER  # imports msgspec, which is too slow for help

    marks = (os.path.join(folder, name) for name in (MARKER, JOURNAL_MARK))
    if target == "-" or folder == "-" or not any(map(os.path.isfile, marks)):
        return False
    return os.path.realpath(target).startswith(os.path.realpath(folder) + os.sep)
