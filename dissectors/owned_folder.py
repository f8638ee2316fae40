"""Result folders that are complete or absent, and replace only what rmqtool itself wrote.

Rules: a folder is filled under a temporary name beside its target and renamed when complete. A
marker in it lists its files. Only a marked folder of the same kind is replaced, only on request,
and not if it contains anything else or an input of the run. Only listed files are removed. A new
private folder is readable by the user only; a replacement keeps the modes of the former folder.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from .foreign import Unreadable, json_of
from .temporary import PRIVATE, forget, mode_of, remove, temporary_beside

MARKER: Final = ".rmqtool-files.json"
LOCK: Final = ".rmqtool-lock"
FORMAT: Final = "rmqtool-files"
_PRIVATE_FOLDER: Final = 0o700
_PUBLIC_FOLDER: Final = 0o777
"""before the user's umask"""
_MAX_MARKER: Final = 1 << 28
"""maximum marker bytes: ten million files"""


class FolderRefused(Exception):
    """A folder cannot be written or replaced; the text says why and what to do."""


class Marker(msgspec.Struct):
    """Content of the marker."""

    kind: str
    """what the folder is, such as `decoded log`"""
    files: list[str]
    """paths inside the folder, with `/`; without the marker itself"""
    format: str = FORMAT
    """always `rmqtool-files`"""


class OwnedFolder:
    """A folder being filled; it gets its name in `finish`."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        replace: bool = False,
        inputs: Sequence[str] = (),
        private: bool = False,
    ) -> None:
        """`kind` is what the folder is; `replace` allows replacing one of the same kind.

        `inputs` are the input names of the run; `private`: only the user may read a new folder.
        Raise FolderRefused if `folder` may not be written, OSError if it cannot.
        """
        self.folder = folder
        """final path"""
        self._kind = kind
        self._replace = replace
        self._inputs = inputs
        check_folder(folder, kind, replace, inputs)
        self.path = temporary_beside(folder)
        """temporary path while it is filled"""
        self._private = private
        self.path.mkdir(_PRIVATE_FOLDER if private else _PUBLIC_FOLDER)

    def finish(self) -> None:
        """Rename the complete folder to its name and remove the folder that it replaces."""
        files = sorted(_files_in(self.path))
        marker = Marker(self._kind, files)
        (self.path / MARKER).write_bytes(msgspec.json.encode(marker) + b"\n")
        # Once more: the folder may have changed while this one was filled.
        former = check_folder(self.folder, self._kind, self._replace, self._inputs)
        if self._private:
            kept = mode_of(self.folder / MARKER) if former is not None else None
            for name in (*files, MARKER):
                (self.path / name).chmod(PRIVATE if kept is None else kept)
        mode = mode_of(self.folder)
        if mode is not None:  # keep the mode of the replaced folder
            self.path.chmod(mode)
        if former is None:  # missing or empty
            self.path.rename(self.folder)
            forget(self.path)
            return
        # A folder that is not empty cannot be replaced by one rename.
        aside = self.path.with_suffix(".old")
        self.folder.rename(aside)
        try:
            self.path.rename(self.folder)
        except OSError:
            aside.rename(self.folder)
            raise
        forget(self.path)
        _remove(aside, former)

    def discard(self) -> None:
        """Remove everything written so far."""
        remove(self.path)


def check_folder(
    folder: Path, kind: str, replace: bool, inputs: Sequence[str] = ()
) -> Marker | None:
    """Return the marker of the folder to replace, or None if there is none.

    Raise FolderRefused if `folder` may not be written.
    """
    if not folder.parent.is_dir():
        raise FolderRefused(f"{folder.parent} is not a folder, so {folder} cannot be written in it")
    if not os.path.lexists(folder):
        return None
    if folder.is_symlink() or not folder.is_dir():
        raise FolderRefused(f"{folder} exists and is not a folder; give another name")
    if not any(folder.iterdir()):
        return None
    marker = _marker_of(folder)
    article = "an" if kind[0] in "aeiou" else "a"
    if marker is None or marker.kind != kind:
        raise FolderRefused(
            f"{folder} exists and is not {article} {kind} that rmqtool wrote; give another name"
        )
    if not replace:
        raise FolderRefused(f"{folder} is {article} {kind} already; --force replaces it")
    listed = {*marker.files, MARKER}
    for name in _files_in(folder):
        if name not in listed:
            raise FolderRefused(
                f"{folder}/{name} was not written by rmqtool; move it away or give another name"
            )
    _refuse_inputs(folder, marker, inputs)
    return marker


def _refuse_inputs(folder: Path, marker: Marker, inputs: Sequence[str]) -> None:
    """Refuse inputs that are the folder, are in it, or are hard links to its files."""
    whole = os.path.realpath(folder)
    files = {_identity_of(folder / name) for name in marker.files}
    for name in inputs:
        if name == "-":
            continue
        path = os.path.realpath(name)
        inside = path == whole or path.startswith(whole + os.sep)
        if inside or (os.path.isfile(path) and _identity_of(Path(path)) in files):
            raise FolderRefused(f"{name} is an input inside of {folder}; give another name to -o")


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _marker_of(folder: Path) -> Marker | None:
    """Return the marker of a folder, or None if it has no trustworthy marker."""
    path = folder / MARKER
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            marker = json_of(msgspec.json.Decoder(Marker), file.read(_MAX_MARKER))
    except (OSError, Unreadable):
        return None
    if marker.format != FORMAT or not all(map(is_inside, marker.files)):
        return None
    return marker


def lock_in(folder: Path) -> int | None:
    """Lock a folder that runs append to; return the descriptor, or None if another run has it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    number = os.open(folder / LOCK, flags, PRIVATE)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        return None
    return number


def is_inside(name: str) -> bool:
    """Return whether a path is normalized and inside the folder."""
    parts = PurePosixPath(name).parts
    return bool(parts) and "/".join(parts) == name and ".." not in parts and "\0" not in name


def _files_in(folder: Path, prefix: str = "") -> Iterator[str]:
    """Yield the paths of everything in a folder; of folders only the empty ones.

    Links, devices, and pipes end with `/`, which no marker lists.
    """
    entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    if not entries and prefix:
        yield prefix
    for entry in entries:
        name = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _files_in(Path(entry.path), name + "/")
        else:
            yield name if entry.is_file(follow_symlinks=False) else name + "/"


def _remove(folder: Path, marker: Marker) -> None:
    """Remove the files in a marker, and folders that are then empty."""
    for name in (*marker.files, MARKER):
        (folder / name).unlink(missing_ok=True)
    inner = {parent for name in marker.files for parent in PurePosixPath(name).parents}
    for subfolder in sorted(inner, key=lambda path: len(path.parts), reverse=True):  # deepest first
        if subfolder.parts:
            _remove_empty(folder / subfolder)
    _remove_empty(folder)
    if folder.exists():
        raise FolderRefused(f"{folder} keeps files that came while {marker.kind} was written")


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
