"""Saved settings of the browser: columns and named views.

Rules: they are stored in one file under XDG_CONFIG_HOME. An unreadable file is ignored; a failure
to write is only reported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from dissectors.foreign import read_json
from dissectors.temporary import PRIVATE, create_new, remove, temporary_beside

FILE: Final = "browse.json"


class SavedView(msgspec.Struct):
    """A named view."""

    table: str
    filter: str = ""
    columns: list[str] = []
    sort: str = ""
    descending: bool = False


class Settings(msgspec.Struct):
    """The saved settings."""

    columns: dict[str, list[str]] = {}
    """table → its columns; absent: the usual ones"""
    views: dict[str, SavedView] = {}
    """by name"""


_DECODER: Final = msgspec.json.Decoder(Settings)


def settings_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the settings file."""
    base = environment.get("XDG_CONFIG_HOME", "")
    folder = Path(base) if os.path.isabs(base) else Path.home() / ".config"
    return folder / "rmqtool" / FILE


def read_settings(path: Path) -> Settings:
    """Return the saved settings."""
    try:
        return read_json(_DECODER, path.read_bytes()) or Settings()
    except OSError:
        return Settings()


def write_settings(path: Path, settings: Settings) -> None:
    """Save the settings; raise OSError if they cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_beside(path)
    try:
        with create_new(temporary, PRIVATE) as file:
            file.write(msgspec.json.format(msgspec.json.encode(settings)) + b"\n")
        temporary.replace(path)
    finally:
        remove(temporary)
