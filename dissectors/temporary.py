"""Temporary files and folders of this process, removed also if a signal ends it.

Rules: a name is new and registered before anything is created under it, so registered names are our
own. A file is created only if its name is free, never through a link.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

PRIVATE: Final = 0o600
"""mode of files with captured or sent data"""
PUBLIC: Final = 0o666
"""mode of other files, before the user's umask"""

_noted: set[Path] = set()


def temporary_beside(path: Path) -> Path:
    """Return a new name in the folder of `path`, to be renamed to it."""
    return temporary_in(path.parent, f".{path.name}.")


def temporary_in(folder: Path, prefix: str) -> Path:
    """Return a new name in a folder."""
    path = folder / f"{prefix}{os.urandom(6).hex()}.tmp"
    _noted.add(path)
    return path


def create_new(path: Path, mode: int = PUBLIC, buffering: int = -1) -> BinaryIO:
    """Create a file for writing; raise FileExistsError if the name exists, even as a link."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, mode), "wb", buffering)


def create_like(path: Path, former: Path, mode: int = PUBLIC) -> BinaryIO:
    """Create a file that will replace `former` with its mode, or `mode` if there is none."""
    kept = mode_of(former)
    file = create_new(path, mode if kept is None else kept)
    if kept is not None:
        with suppress(OSError):  # a file system without modes
            os.fchmod(file.fileno(), kept)
    return file


def mode_of(path: Path) -> int | None:
    """Return the mode of a file or folder, or None if it does not exist."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def forget(path: Path) -> None:
    """Forget a name that has been renamed or removed."""
    _noted.discard(path)


def remove(path: Path) -> None:
    """Remove the file or folder of a name, if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    _noted.discard(path)


def remove_all() -> None:
    """Remove all remaining temporary files at exit."""
    for path in list(_noted):
        try:
            remove(path)
        except OSError:
            continue
