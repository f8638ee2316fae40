"""Who may import whom, as data: section 4 of docs/architecture.md, checked in the sources.

A module that is in no unit, or imports what its unit may not, fails: a new file gets its line here
when it gets its line there.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dissectors", "replay", "analytics", "rmqtool")

LEAVES = ("expert", "histogram", "outcome", "printable", "times", "recognition", "record")
DECODING = ("conversation", "conversation_row", "table", "exchange", "row", "stages", "pipeline")
ROWS = ("tables", "timed_rows", "json_rows", "parquet", "where", "where_fields", "where_pattern")
PROTOCOL = ("remoting", "tcp", "replication", "conversation_record", *LEAVES)

UNITS: dict[str, tuple[str, ...]] = {
    # what knows nothing of the rest
    **{f"dissectors.{leaf}": () for leaf in LEAVES},
    "dissectors.conversation_record": ("dissectors.record",),
    # the protocol and the captures do not know each other
    "dissectors.remoting": ("dissectors.remoting", "dissectors.expert"),
    "dissectors.tcp": ("dissectors.tcp", "dissectors.expert"),
    "dissectors.replication": (
        "dissectors.replication",
        "dissectors.replication_streams",
        "dissectors.replication_layouts",
        "dissectors.expert",
        "dissectors.histogram",
    ),
    "dissectors.replication_streams": ("dissectors.replication_layouts",),
    "dissectors.replication_layouts": (),
    # the way of a datum, each stage after the ones before it
    **{
        f"dissectors.{stage}": tuple(
            f"dissectors.{name}" for name in (*PROTOCOL, *DECODING[: DECODING.index(stage)])
        )
        for stage in DECODING
    },
    "dissectors.shards": tuple(f"dissectors.{name}" for name in (*PROTOCOL, *DECODING)),
    # rows: what is written and filtered, without a capture
    **{
        f"dissectors.{name}": (
            "dissectors.remoting",
            *(f"dissectors.{other}" for other in (*LEAVES, *ROWS)),
        )
        for name in ROWS
    },
    "dissectors.command_row": tuple(f"dissectors.{name}" for name in (*PROTOCOL, *DECODING, *ROWS)),
    "dissectors.decoded_log": tuple(f"dissectors.{name}" for name in (*PROTOCOL, *DECODING, *ROWS)),
    # edges: live capture, crafting, other tools
    "dissectors.live": ("dissectors.packet_ring",),
    "dissectors.packet_ring": (),
    "dissectors.scapy_layer": ("dissectors.remoting", "dissectors.tcp", "dissectors.expert"),
    "dissectors.wireshark": (
        "dissectors.wireshark",
        "dissectors.remoting",
        "dissectors.expert",
        "dissectors.outcome",
    ),
    "dissectors": (),
    # the other packages
    "replay": ("replay", "dissectors"),
    "replay.fault": ("replay.fault", "dissectors.remoting"),
    "analytics": ("analytics", "dissectors", "replay.fault"),
    "rmqtool": ("rmqtool", "replay", "analytics", "dissectors"),
}
"""unit → units that it may import; a module belongs to the unit with the longest name"""

NETWORK = (
    "replay.transport",
    "replay.read_ahead",
    "replay.replayer",
    "replay.send_many",
    "replay.sandbox",
)
MASTER = "analytics.master"
"""what asks whether a Spark master is there"""
ONLY_IN: dict[str, tuple[str, ...]] = {
    "scapy": ("dissectors.live", "dissectors.scapy_layer"),
    "pyspark": ("analytics",),
    "pandas": ("analytics",),
    "pyarrow": ("dissectors.parquet", "analytics"),
    "typer": ("rmqtool",),
    "rich": ("rmqtool",),
    "socket": (*NETWORK, MASTER),
    **dict.fromkeys(("socketserver", "selectors", "ssl"), NETWORK),
    "asyncio": (*NETWORK, "replay.async_producer"),
    **dict.fromkeys(("http", "urllib", "requests", "pytest", "hypothesis", "atheris"), ()),
}
"""module → the only units that import it"""

PRINTS = ("rmqtool",)
"""units that call `print`"""
HEAVY = ("scapy", "pyspark", "pandas", "pyarrow", "numpy", "duckdb", "asyncio", "py4j")
"""what `import rmqtool.cli` must not load"""


def _name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    _name_of(path): path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
}
every_module = pytest.mark.parametrize("module", sorted(MODULES))


@cache
def _tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text())


def _imports_of(module: str, tree: ast.AST | None = None) -> Iterator[tuple[str, int]]:
    """Every name that a module imports, whole, and the level of the import statement."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree or _tree_of(module)):
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


def _unit_of(module: str) -> str | None:
    units = [unit for unit in UNITS if module == unit or module.startswith(f"{unit}.")]
    return max(units, key=len, default=None)


def _is_in(module: str, units: tuple[str, ...]) -> bool:
    return any(module == unit or module.startswith(f"{unit}.") for unit in units)


@every_module
def test_units_import_only_what_they_may(module: str) -> None:
    unit = _unit_of(module)
    assert unit is not None
    assert unit != "dissectors" or module == "dissectors", f"{module} has no line in UNITS"
    allowed = UNITS[unit]
    for name, _ in _imports_of(module):
        if name.split(".")[0] in PACKAGES and name != module:
            assert _is_in(name, allowed), f"{module} imports {name}"


@every_module
def test_libraries_have_their_places(module: str) -> None:
    for name, _ in _imports_of(module):
        library = name.split(".")[0]
        if library in ONLY_IN:
            assert _is_in(module, ONLY_IN[library]), f"{module} imports {library}"


@every_module
def test_print_has_its_place(module: str) -> None:
    calls = [
        node.lineno
        for node in ast.walk(_tree_of(module))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ]
    assert not calls or _is_in(module, PRINTS), f"{module} prints in lines {calls}"


@every_module
def test_imports_are_relative_within_a_package_and_absolute_across(module: str) -> None:
    package = module.split(".")[0]
    for name, level in _imports_of(module):
        if name.split(".")[0] in PACKAGES:
            assert (level > 0) == (name.split(".")[0] == package), f"{module} imports {name}"


def test_no_module_imports_itself_in_a_circle() -> None:
    """Counted are imports that run when the module is loaded, not those within functions."""
    graph = {
        module: {name for name, _ in _loaded_by(module) if name in MODULES and name != module}
        for module in MODULES
    }
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " → ".join([*way[way.index(module) :], module])
        if module in done:
            return
        for name in sorted(graph[module]):
            visit(name, (*way, module))
        done.add(module)

    for module in sorted(graph):
        visit(module, ())


def _loaded_by(module: str) -> Iterator[tuple[str, int]]:
    for node in _tree_of(module).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from _imports_of(module, ast.Module([node], []))


def test_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, rmqtool.cli; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []


def test_the_units_are_those_of_the_sources() -> None:
    """Every unit that the way of a datum names is there."""
    for unit in ("dissectors.remoting", "dissectors.tcp", *(f"dissectors.{s}" for s in DECODING)):
        assert any(module == unit or module.startswith(f"{unit}.") for module in MODULES), unit
