"""The sources of the packages, for all tests that look at them."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dissectors", "replay", "analytics", "rmqtool")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def _name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name_of(path): path for path in SOURCES}
"""the modules of the packages by name"""


def is_folder(module: str) -> bool:
    """Return whether a module is the `__init__.py` of a folder."""
    return module in MODULES and MODULES[module].name == "__init__.py"
