"""Runs the modules of the decode path from their sources, although compiled ones lie beside them.

`RMQTOOL_PURE=1` asks for it. A path hook that is restricted to this project's folders offers only
the source loader; it must be installed before `dissectors` is imported.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = ("dissectors", "replay", "analytics", "rmqtool")
SWITCH = "RMQTOOL_PURE"


def wants_sources() -> bool:
    """Whether the environment asks for the sources."""
    return os.environ.get(SWITCH) == "1"


def _source_finder(path: str) -> FileFinder:
    """A finder that knows no extension modules; ImportError for folders that are not ours."""
    folder = Path(path).resolve()
    if not any(folder.is_relative_to(PROJECT / package) for package in PACKAGES):
        raise ImportError(path)
    return FileFinder(path, (SourceFileLoader, SOURCE_SUFFIXES))


def import_sources() -> None:
    """From now on this project's modules are imported from their sources."""
    loaded = [name for name in sys.modules if name.partition(".")[0] in PACKAGES]
    if loaded:
        raise RuntimeError(f"imported too early: {', '.join(sorted(loaded))}")
    sys.path_hooks.insert(0, _source_finder)
    sys.path_importer_cache.clear()


def implementation() -> str:
    """Which of the two is running: `compiled`, or `sources`."""
    from dissectors.tcp import reassembly

    return "sources" if str(reassembly.__file__).endswith(".py") else "compiled"
