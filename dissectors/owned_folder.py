"""A folder of results that is whole or not there, and that replaces only what rmqtool wrote itself.

Rules: a folder is filled beside its name and renamed when it is whole. A marker in it lists its
files; only such a folder of the same kind is replaced, only where that was asked for, and not where
anything else is in it or an input of the run is. What is removed is what the marker lists. Only the
user may read a private folder that is new; one that replaces another has the modes of that one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from .foreign import Unreadable, json_of
from .temporary import PRIVATE, forget, mode_of, remove, temporary_beside

MARKER: Final = ".rmqtool-files.json"
FORMAT: Final = "rmqtool-files"
_PRIVATE_FOLDER: Final = 0o700
_PUBLIC_FOLDER: Final = 0o777
"""less what the user's umask takes away"""
_MAX_MARKER: Final = 1 << 28
"""bytes of a marker that are read: ten million files"""


class FolderRefused(Exception):
    """A folder may not be written or replaced; the text says why and what to do."""


class Marker(msgspec.Struct):
    """Content of the marker."""

    kind: str
    """what the folder is, such as `decoded log`"""
    files: list[str]
    """paths inside the folder, `/` between the parts; the marker itself is not listed"""
    format: str = FORMAT
    """always `rmqtool-files`"""


class OwnedFolder:
    """A folder that is being filled: nothing has its name before `finish`."""

    def __init__(
        self,
        folder: Path,
        kind: str,
        replace: bool = False,
        inputs: Sequence[str] = (),
        private: bool = False,
    ) -> None:
        """`kind` is what the folder is; `replace` allows to replace one of the same kind.

        `inputs` are names of what the run reads; `private`: only the user may read what is new.
        Raise FolderRefused where `folder` may not be written, OSError where it cannot.
        """
        self.folder = folder
        """where it will be"""
        self._kind = kind
        self._replace = replace
        self._inputs = inputs
        check_folder(folder, kind, replace, inputs)
        self.path = temporary_beside(folder)
        """where its files are written meanwhile"""
        self._private = private
        self.path.mkdir(_PRIVATE_FOLDER if private else _PUBLIC_FOLDER)

    def finish(self) -> None:
        """Give the folder, which is written, its name and remove the one that it replaces."""
        files = sorted(_files_in(self.path))
        marker = Marker(self._kind, files)
        (self.path / MARKER).write_bytes(msgspec.json.encode(marker) + b"\n")
        former = check_folder(self.folder, self._kind, self._replace, self._inputs)
        if self._private:
            kept = mode_of(self.folder / MARKER) if former is not None else None
            for name in (*files, MARKER):
                (self.path / name).chmod(PRIVATE if kept is None else kept)
        mode = mode_of(self.folder)
        if mode is not None:  # a folder keeps the mode of what it replaces
            self.path.chmod(mode)
        if former is None:  # not there, or empty
            self.path.rename(self.folder)
            forget(self.path)
            return
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
        """Remove what was written so far."""
        remove(self.path)


def check_folder(
    folder: Path, kind: str, replace: bool, inputs: Sequence[str] = ()
) -> Marker | None:
    """Return the marker of the folder that is replaced; None where there is nothing to replace.

    Raise FolderRefused where `folder` may not be written.
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
    if marker is None or marker.kind != kind:
        raise FolderRefused(
            f"{folder} exists and is not a {kind} that rmqtool wrote; give another name"
        )
    if not replace:
        raise FolderRefused(f"{folder} is a {kind} already; --force replaces it")
    listed = {*marker.files, MARKER}
    for name in _files_in(folder):
        if name not in listed:
            raise FolderRefused(
                f"{folder}/{name} was not written by rmqtool; move it away or give another name"
            )
    _refuse_inputs(folder, marker, inputs)
    return marker


def _refuse_inputs(folder: Path, marker: Marker, inputs: Sequence[str]) -> None:
    """Refuse where an input is the folder, lies in it, or is one of its files by another name."""
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
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _marker_of(folder: Path) -> Marker | None:
    """Return the marker of a folder; None where there is none that can be trusted."""
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


def is_inside(name: str) -> bool:
    """Return whether a path is one inside of a folder, in its plain spelling."""
    parts = PurePosixPath(name).parts
    return bool(parts) and "/".join(parts) == name and ".." not in parts and "\0" not in name


def _files_in(folder: Path, prefix: str = "") -> Iterator[str]:
    """Yield the paths of all that is in a folder; folders only where they are empty.

    A link, a device or a pipe is named with a `/` behind it, so that no marker lists it.
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
    """Remove the files that a marker lists, and folders that are empty then."""
    for name in (*marker.files, MARKER):
        (folder / name).unlink(missing_ok=True)
    inner = {parent for name in marker.files for parent in PurePosixPath(name).parents}
    for one in sorted(inner, key=lambda path: len(path.parts), reverse=True):
        if one.parts:
            _remove_empty(folder / one)
    _remove_empty(folder)
    if folder.exists():
        raise FolderRefused(f"{folder} keeps files that came while {marker.kind} was written")


def _remove_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
