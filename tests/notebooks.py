"""Runs the code cells of a notebook, as a kernel would: in order, in one namespace.

jupyter and what it needs are some fifty packages, for which the tests have no other use.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path


def run(path: Path) -> list[object]:
    """Run a notebook in the current folder; return what its cells show, None for nothing.

    A value is shown as a notebook does: its HTML form where it has one.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    return [
        _run_cell(code, f"{path.name}, cell {at}", names) for at, code in enumerate(cells(path))
    ]


def cells(path: Path) -> list[str]:
    """Return the code cells."""
    notebook = json.loads(path.read_text())
    return ["".join(one["source"]) for one in notebook["cells"] if one["cell_type"] == "code"]


def _run_cell(code: str, name: str, names: dict[str, object]) -> object:
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), names)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    show = getattr(value, "_repr_html_", None)
    return show() if show is not None else value
