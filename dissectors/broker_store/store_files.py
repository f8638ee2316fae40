"""Open files of a store: only regular files, no symbolic links.

The folder is a copy from somebody else. A link could lead outside it, and reading a pipe or a
device might never end.
"""

from __future__ import annotations

import os
import re
import stat
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Final

from ..foreign import natural_of
from ..tcp.source import CaptureError

OFFSET_DIGITS: Final = 20
"""digits of a file name that is the offset of the file's first byte"""
MOST_OPEN: Final = 64
"""maximum open files"""
_NUMBERED: Final = re.compile(r"\d{1,20}")
_LONGEST_NAME: Final = 255


def open_regular(path: str) -> int:
    """Open a regular file; return its descriptor, or raise OSError for anything else."""
    # O_NONBLOCK: opening a pipe would wait for a writer.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(number).st_mode):
        return number
    os.close(number)
    raise OSError(0, "not a regular file", path)


def is_link(path: Path) -> bool:
    """Return whether a path is a symbolic link; False if nothing exists."""
    try:
        return stat.S_ISLNK(path.lstat().st_mode)
    except OSError:
        return False


def folder_in(folder: Path, *names: str) -> Path | None:
    """Return a subfolder, or None if it is missing or behind a link."""
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            return None
        if len(os.fsencode(name)) > _LONGEST_NAME:
            return None
        folder = folder / name
        try:
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return None
        except OSError:
            return None
    return folder


def base_of(path: str) -> int:
    """Return the offset of the first byte of a file, which is its name."""
    return natural_of(os.path.basename(path).lstrip("0")) or 0


def numbered_files(folder: Path, digits: int) -> list[str]:
    """Return the regular files of a folder with names of so many digits, in order.

    Raise CaptureError if the folder cannot be listed.
    """
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.path
                for entry in entries
                if len(entry.name) == digits
                and _NUMBERED.fullmatch(entry.name)
                and entry.is_file(follow_symlinks=False)
            )
    except OSError as error:
        raise CaptureError(str(folder), error.strerror or str(error)) from error


class StoreFiles:
    """Reads files; the latest ones stay open as long as this exists."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, int] = OrderedDict()
        # Nobody closes a store: it lives as long as the evidence that reads it on demand.
        weakref.finalize(self, _close_all, self._open)

    def read(self, path: str, size: int, at: int) -> bytes:
        """Return bytes of a file; fewer at its end, none if it is not a regular file."""
        try:
            return os.pread(self._number(path), size, at)
        except (OSError, OverflowError):  # a damaged record names any offset
            return b""

    def size(self, path: str) -> int:
        """Return the size of a file in bytes; 0 if it is not a regular file."""
        try:
            return os.fstat(self._number(path)).st_size
        except OSError:
            return 0

    def _number(self, path: str) -> int:
        number = self._open.get(path)
        if number is None:
            number = self._open[path] = open_regular(path)
            if len(self._open) > MOST_OPEN:
                os.close(self._open.popitem(last=False)[1])
        else:
            self._open.move_to_end(path)
        return number


def _close_all(files: OrderedDict[str, int]) -> None:
    while files:
        os.close(files.popitem()[1])
