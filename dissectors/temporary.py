"""Temporary files and folders of this process: none is left behind, wherever a signal ends it.

Rules: a name is new and noted before anything is made under it; what is noted is nobody else's. A
file is made where none is, and through no link: a name that somebody else has put there is refused.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

PRIVATE: Final = 0o600
"""mode of files with what was captured or sent"""
PUBLIC: Final = 0o666
"""mode of other files, less what the user's umask takes away"""

_noted: set[Path] = set()


def temporary_beside(path: Path) -> Path:
    """Return a new name in the folder of `path`, for a file or folder to be renamed to it."""
    return temporary_in(path.parent, f".{path.name}.")


def temporary_in(folder: Path, prefix: str) -> Path:
    """Return a new name in a folder."""
    found = folder / f"{prefix}{os.urandom(6).hex()}.tmp"
    _noted.add(found)
    return found


def create_new(path: Path, mode: int = PUBLIC, buffering: int = -1) -> BinaryIO:
    """Return a new file to write; raise FileExistsError where anything has the name, a link too."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, mode), "wb", buffering)


def create_like(path: Path, former: Path, mode: int = PUBLIC) -> BinaryIO:
    """Return a new file that will replace `former` and has its mode; `mode` where there is none."""
    kept = mode_of(former)
    file = create_new(path, mode if kept is None else kept)
    if kept is not None:
        with suppress(OSError):  # of a file system without modes
            os.fchmod(file.fileno(), kept)
    return file


def mode_of(path: Path) -> int | None:
    """Return the mode of a file or folder; None where there is none."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def forget(path: Path) -> None:
    """Forget a name that has been renamed or removed."""
    _noted.discard(path)


def remove(path: Path) -> None:
    """Remove what is under this name, if there is anything."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    _noted.discard(path)


def remove_all() -> None:
    """Remove what is left, at the end of the process."""
    for path in list(_noted):
        try:
            remove(path)
        except OSError:
            continue
