"""Who may import whom, stated as data and checked; and that the command line stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dissectors", "replay", "analytics", "rmqtool")

MAY_IMPORT: dict[str, set[str]] = {
    "dissectors.remoting": {"dissectors.expert", "dissectors.remoting"},
    "dissectors.tcp": {"dissectors.expert", "dissectors.tcp"},
    "dissectors": {"dissectors"},
    "replay": {"dissectors", "replay"},
    "analytics": {"dissectors", "analytics", "replay.fault"},
    "rmqtool": {"dissectors", "replay", "analytics", "rmqtool"},
}
"""Package → what of the project its modules may import; the longest name that fits counts."""

ONLY_IN: dict[str, tuple[str, ...]] = {
    "scapy": ("dissectors/live.py", "dissectors/scapy_layer.py"),
    "pyspark": ("analytics/",),
    "typer": ("rmqtool/",),
    "rich": ("rmqtool/",),
    "socket": ("replay/transport.py", "replay/replayer.py", "replay/sandbox/"),
    "asyncio": ("replay/transport.py", "replay/replayer.py", "replay/sandbox/"),
    "pyarrow": ("dissectors/parquet.py", "analytics/"),
    "pandas": ("analytics/",),
}
"""Module → where it may be imported, as file or folder."""

NO_PRINT = ("dissectors", "replay", "analytics")
HEAVY = ("scapy", "pyspark", "pandas", "pyarrow", "numpy")


def modules() -> list[Path]:
    return [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    """Full names of what a module imports, relative imports resolved."""
    name = name_of(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node.module or ""
                continue
            base = package.split(".")
            base = base[: len(base) - node.level + 1]
            source = ".".join([*base, node.module] if node.module else base)
            yield from (
                [source] if node.module else [f"{source}.{alias.name}" for alias in node.names]
            )


def _within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_arrows_go_one_way(path: Path) -> None:
    name = name_of(path)
    rule = max((rule for rule in MAY_IMPORT if _within(name, rule)), key=len)
    for imported in imports_of(path):
        if any(_within(imported, package) for package in PACKAGES):
            allowed = any(_within(imported, package) for package in MAY_IMPORT[rule])
            assert allowed, f"{name} imports {imported}"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_each_library_has_its_place(path: Path) -> None:
    place = str(path.relative_to(ROOT))
    for imported in imports_of(path):
        for library, places in ONLY_IN.items():
            if _within(imported, library):
                assert place.startswith(places), f"{place} imports {imported}"


def test_no_import_goes_in_a_circle() -> None:
    graph = {name_of(path): set(imports_of(path)) for path in modules()}
    names = set(graph)
    edges = {
        name: {i for i in imported if i in names and i != name} for name, imported in graph.items()
    }
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " → ".join((*way[way.index(name) :], name))
        if name in done:
            return
        for imported in sorted(edges[name]):
            visit(imported, (*way, name))
        done.add(name)

    for name in sorted(names):
        visit(name, ())


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_only_the_command_line_prints(path: Path) -> None:
    if name_of(path).startswith(NO_PRINT):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id == "print"), path


def test_the_command_line_loads_nothing_heavy() -> None:
    code = (
        "import sys, rmqtool.cli;"
        f"print(*[m for m in {HEAVY!r} if m in sys.modules or any(n.startswith(m + '.')"
        " for n in sys.modules)])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert loaded.stdout.strip() == ""
