"""Temporary files and folders of this process: none is left behind, wherever a signal ends it.

Rules: a name is new and noted before anything is made under it; what is noted is nobody else's.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_noted: set[Path] = set()


def temporary_beside(path: Path) -> Path:
    """Return a new name in the folder of `path`, for a file or folder to be renamed to it."""
    return temporary_in(path.parent, f".{path.name}.")


def temporary_in(folder: Path, prefix: str) -> Path:
    """Return a new name in a folder."""
    found = folder / f"{prefix}{os.urandom(6).hex()}.tmp"
    _noted.add(found)
    return found


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
