"""What each folder's `__init__.py` says that it may import, held to the table and to the imports.

The sentence begins with "May import" or "Imports nothing" and names folders and modules in
backquotes, within their package without its name; "the modules beside" are those of the package or
of the folder around that are no folders.
"""

from __future__ import annotations

import ast
import re

import pytest

from tests.modules import MODULES, imports_of, is_folder
from tests.sources import PACKAGES, tree_of
from tests.units import EVERYWHERE, UNITS

FOLDERS = [module for module in MODULES if is_folder(module)]
SENTENCE = re.compile(r"(?:May import|Imports nothing)\b.*?(?:[.;:](?= |$))")
BESIDE = "the modules beside"


def _sentence_of(folder: str) -> str:
    """Return what a folder says of its imports; empty where it says nothing."""
    text = " ".join((ast.get_docstring(tree_of(MODULES[folder])) or "").split())
    match = SENTENCE.search(text)
    return match[0] if match else ""


def _resolve(folder: str, name: str) -> str | None:
    """Return the module of a name: in the folders around a folder, or in another package."""
    around = "" if name.split(".")[0] in PACKAGES else folder.rpartition(".")[0]
    while around:
        if f"{around}.{name}" in MODULES:
            return f"{around}.{name}"
        around = around.rpartition(".")[0]
    return name if name in MODULES else None


def _names_in(folder: str) -> dict[str, str | None]:
    return {name: _resolve(folder, name) for name in re.findall(r"`([^`]+)`", _sentence_of(folder))}


def _is_under(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other}.")


def _is_beside(folder: str, name: str) -> bool:
    """Return whether a module is none of a folder, but of the package or of the folder around."""
    around = name.rpartition(".")[0]
    return around in (folder.split(".")[0], folder.rpartition(".")[0]) and not is_folder(name)


def _is_named(folder: str, name: str) -> bool:
    """Return whether a folder says that it imports something of our packages."""
    if _is_under(name, folder) or name.split(".")[0] not in PACKAGES:
        return True
    named = [one for one in _names_in(folder).values() if one is not None]
    if any(_is_under(name, one) for one in (*named, *EVERYWHERE)):
        return True
    return BESIDE in _sentence_of(folder) and _is_beside(folder, _module_of(name))


def _allowed_of(folder: str) -> set[str]:
    """Return what the units in a folder, or the one that it is in, may import."""
    around = max((unit for unit in UNITS if _is_under(folder, unit)), key=len)
    units = [around, *(unit for unit in UNITS if _is_under(unit, folder))]
    return {around, folder, *(name for unit in units for name in UNITS[unit])}


def _module_of(name: str) -> str:
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_says_what_it_may_import(folder: str) -> None:
    assert _sentence_of(folder)
    assert [name for name, module in _names_in(folder).items() if module is None] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_a_folder_names_is_allowed(folder: str) -> None:
    allowed = _allowed_of(folder)
    assert [
        name
        for name, module in _names_in(folder).items()
        if module and not any(_is_under(module, one) or _is_under(one, module) for one in allowed)
    ] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_names_what_it_imports(folder: str) -> None:
    modules = [name for name in MODULES if name == folder or name.rpartition(".")[0] == folder]
    if folder in PACKAGES:
        modules = [name for name in MODULES if _is_under(name, folder)]
    assert [
        f"{module} imports {name}"
        for module in modules
        if module == folder or not is_folder(module)
        for name, _ in imports_of(module)
        if not _is_named(folder, name)
    ] == []
