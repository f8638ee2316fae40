"""Where a result goes: standard output, or a file that has its name only when it is whole.

Rules: a file is written beside its name and renamed at the end, so a stopped run leaves the former
file as it was; a pipe, a device and a file that somebody follows are written directly. An input is
never overwritten.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from dissectors.temporary import forget, remove, temporary_beside

from .status import CommandError, ExitStatus


class Output:
    """Bytes to standard output or to a file."""

    def __init__(self, target: str, direct: bool = False) -> None:
        """`target` is a path or ``-``; `direct` writes to the path itself, as the rows come."""
        self.name = "standard output" if target == "-" else target
        """how it is called in messages"""
        self.path: Path | None = None if target == "-" else Path(target)
        """the file; None: standard output"""
        self.written = 0
        """bytes so far"""
        self._temporary: Path | None = None
        self._stream = self._open(direct)

    def _open(self, direct: bool) -> BinaryIO:
        if self.path is None:
            return sys.stdout.buffer
        if self.path.is_dir():
            hint = "a folder takes --format parquet; for the other formats name a file"
            raise CommandError(f"{self.path} is a folder", hint, ExitStatus.USAGE)
        if not direct and (not self.path.exists() or self.path.is_file()):
            self._temporary = temporary_beside(self.path)
        with naming(self.name):
            if self._temporary is not None:
                return self._temporary.open("xb")
            return self.path.open("wb")

    @property
    def stream(self) -> BinaryIO:
        """The open file, for writers that want one."""
        return self._stream

    def write(self, data: bytes) -> None:
        """Write all of `data`."""
        self.written += len(data)
        with naming(self.name):
            written = self._stream.write(data)
            while written < len(data):  # a signal interrupted a write to a full pipe
                written += self._stream.write(data[written:])

    def flush(self) -> None:
        """Let readers see what was written."""
        self._stream.flush()

    def finish(self) -> None:
        """Everything is written: give the file its name."""
        if self.path is None:
            self._stream.flush()
            return
        with naming(self.name):
            self._stream.close()
            if self._temporary is not None:
                self._temporary.replace(self.path)
                forget(self._temporary)

    def discard(self) -> None:
        """Clean up after a run that was stopped: leave no half file."""
        if self.path is None:
            return
        with contextlib.suppress(OSError):  # what could not be written cannot be flushed either
            self._stream.close()
        if self._temporary is not None:
            remove(self._temporary)


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
    """Turn what the system says about a write into an error that names the output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(f"{name} cannot be written: {reason}") from error


def refuse_inputs(target: str, inputs: Iterable[str]) -> None:
    """Raise CommandError where `target` is one of the files that are read."""
    if target == "-" or not os.path.exists(target):
        return
    for name in inputs:
        if name != "-" and os.path.exists(name) and os.path.samefile(target, name):
            raise CommandError(
                f"{target} is an input; it would be overwritten",
                "give another name to -o",
                ExitStatus.USAGE,
            )
