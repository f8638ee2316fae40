"""The modules of the packages by name, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.sources import ROOT, SOURCES, nodes_of


def _name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_name_of(path): path for path in SOURCES}


@cache
def imports_of(module: str) -> tuple[tuple[str, int], ...]:
    """Return every name that a module imports, whole, and the level of the import statement."""
    return tuple(_imports_in(module))


def _imports_in(module: str) -> Iterator[tuple[str, int]]:
    package = module if is_folder(module) else module.rpartition(".")[0]
    for node in nodes_of(MODULES[module]):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, 0
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{name}.{alias.name}"
                yield (inner if inner in MODULES else name), node.level


def is_folder(module: str) -> bool:
    """Return whether a module is the `__init__.py` of a folder."""
    return module in MODULES and MODULES[module].name == "__init__.py"
