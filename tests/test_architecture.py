"""Who may import whom, as data: section 4 of docs/architecture.md, checked in the sources.

A module that is in no unit, or imports what its unit may not, fails: a new file gets its line here
when it gets its line there.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache

from tests.modules import MODULES, imports_of, is_folder
from tests.sources import PACKAGES, ROOT, nodes_of, tree_of
from tests.units import EVERYWHERE, UNITS

MODULES_A_FOLDER = 30
LINES_A_MODULE = 800

NETWORK = (
    "replay.transport",
    "replay.run.read_ahead",
    "replay.run.replayer",
    "replay.send_many",
    "replay.sandbox",
)
MASTER = "analytics.spark.master"
"""what asks whether a Spark master is there"""
API = "rmqtool.api"
ONLY_IN: dict[str, tuple[str, ...]] = {
    "scapy": ("dissectors.with_scapy",),
    "pyspark": ("analytics", API),
    "pandas": ("analytics", API),
    "pyarrow": ("dissectors.rows.parquet", "dissectors.rows.encoded", "analytics", API),
    "typer": ("rmqtool",),
    "rich": ("rmqtool.ui.screen", "rmqtool.ui.console", "rmqtool.browse.views"),
    "textual": ("rmqtool.browse.views",),
    "socket": (*NETWORK, MASTER),
    **dict.fromkeys(("socketserver", "selectors", "ssl"), NETWORK),
    "asyncio": (
        *NETWORK,
        *("replay.async_producer", "replay.send_queue", "replay.consent", "replay.run.jobs"),
        "rmqtool.browse.views.ending",
    ),
    **dict.fromkeys(("http", "urllib", "requests", "pytest", "hypothesis", "atheris"), ()),
}
"""module → the only units that import it"""

PRINTS = ("rmqtool",)
"""units that call `print`"""
HEAVY = ("scapy", "pyspark", "pandas", "pyarrow", "numpy", "duckdb", "asyncio", "py4j", "textual")
"""what `import rmqtool.cli` must not load"""


def _tree_of(module: str) -> ast.Module:
    return tree_of(MODULES[module])


def _nodes_of(module: str) -> tuple[ast.AST, ...]:
    return nodes_of(MODULES[module])


@cache
def unit_of(module: str) -> str | None:
    units = [unit for unit in UNITS if module == unit or module.startswith(f"{unit}.")]
    return max(units, key=len, default=None)


def _is_in(module: str, units: tuple[str, ...]) -> bool:
    return any(module == unit or module.startswith(f"{unit}.") for unit in units)


def test_every_module_is_in_a_unit() -> None:
    assert [module for module in MODULES if unit_of(module) is None] == []


def _is_allowed(module: str, name: str) -> bool:
    """Return whether a module may import something of our packages."""
    unit = unit_of(module)
    assert unit is not None
    allowed = (*UNITS[unit], *EVERYWHERE, *([unit] if is_folder(unit) else []))
    return name == module or (name == "rmqtool" and name in allowed) or _is_in(name, allowed)


def test_units_import_only_what_they_may() -> None:
    assert [
        f"{module} imports {name}"
        for module in MODULES
        for name, _ in imports_of(module)
        if name.split(".")[0] in PACKAGES and not _is_allowed(module, name)
    ] == []


def test_libraries_have_their_places() -> None:
    assert [
        f"{module} imports {name}"
        for module in MODULES
        for name, _ in imports_of(module)
        if not _is_in(module, ONLY_IN.get(name.split(".")[0], (module,)))
    ] == []


def test_only_a_classic_session_reaches_into_java() -> None:
    """A Spark Connect server has no SparkContext and no frames of Java for its clients."""
    words = ("sparkContext", "_jvm", "_jdf", "_jsc", "py4j.", ".rdd")
    texts = {name: path.read_text() for name, path in MODULES.items()}
    found = {name for name, text in texts.items() if any(word in text for word in words)}
    assert found == {"analytics.spark.session"}


def test_print_has_its_place() -> None:
    assert [
        f"{module} prints in line {node.lineno}"
        for module in MODULES
        if not _is_in(module, PRINTS)
        for node in _nodes_of(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    ] == []


def test_imports_are_relative_within_a_package_and_absolute_across() -> None:
    assert [
        f"{module} imports {name}"
        for module in MODULES
        for name, level in imports_of(module)
        if name.split(".")[0] in PACKAGES
        and (level > 0) != (name.split(".")[0] == module.split(".")[0])
    ] == []


def _folder_of(module: str) -> str:
    """Return the folder of a module; modules beside folders are units of their own."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    beside = package in MIXED and package != module
    return module if beside else package


MIXED = ("dissectors", "dissectors.remoting", "replay", "replay.sandbox", "analytics", "rmqtool")
"""folders with modules beside subfolders"""


def _circles_of(graph: dict[str, set[str]]) -> list[str]:
    """Return one way round for each circle that a depth-first search meets."""
    found: list[str] = []
    done: set[str] = set()

    def visit(node: str, way: tuple[str, ...]) -> None:
        if node in way:
            found.append(" → ".join([*way[way.index(node) :], node]))
            return
        if node in done:
            return
        done.add(node)
        for name in sorted(graph.get(node, ())):
            visit(name, (*way, node))

    for node in sorted(graph):
        visit(node, ())
    return found


def _graph_of(place: Callable[[str], str]) -> dict[str, set[str]]:
    """Return who imports whom, for types and within functions too; `place` groups modules."""
    graph: dict[str, set[str]] = {}
    for module in MODULES:
        for name, _ in imports_of(module):
            if name in MODULES and place(name) != place(module):
                graph.setdefault(place(module), set()).add(place(name))
    return graph


def test_no_circle_of_modules() -> None:
    """Imports for types and within functions count as well."""
    assert _circles_of(_graph_of(lambda module: module)) == []


def test_no_circle_of_folders() -> None:
    assert _circles_of(_graph_of(_folder_of)) == []


def test_sizes_invite_a_second_look() -> None:
    """Warn, never fail: whether a long file or a full folder should be split is a judgment."""
    sizes = Counter(module.rpartition(".")[0] for module in MODULES if not is_folder(module))
    large = [f"{folder}: {n} modules" for folder, n in sizes.items() if n > MODULES_A_FOLDER]
    for module, path in MODULES.items():
        lines = len(path.read_text().splitlines())
        if lines > LINES_A_MODULE:
            large.append(f"{module}: {lines} lines")
    if large:
        warnings.warn(f"consider splitting: {', '.join(large)}", stacklevel=1)


def test_every_folder_says_what_belongs_there() -> None:
    for module in MODULES:
        if is_folder(module):
            assert ast.get_docstring(_tree_of(module)), f"{module} has no docstring"


def test_the_document_names_every_folder() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text()
    tree = document[document.index("## 3. ") : document.index("## 4. ")]
    folders = [module for module in MODULES if is_folder(module)]
    assert [name for name in folders if f"{name.rpartition('.')[2]}/" not in tree] == []


def _names_in(module: str) -> set[str]:
    """Return the names that a module defines or imports on its top level, late imports included."""
    names = {
        node.value
        for node in _nodes_of(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    for node in _tree_of(module).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


def test_documents_import_what_is_there() -> None:
    line = re.compile(rf"^from ((?:{'|'.join(PACKAGES)})[\w.]*) import ([\w, ]+)$", re.MULTILINE)
    imports = [
        (path.name, module, name.strip())
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
        for module, names in line.findall(path.read_text())
        for name in names.split(",")
    ]
    assert len(imports) > 10
    assert [
        one for one in imports if one[1] not in MODULES or one[2] not in _names_in(one[1])
    ] == []


def test_every_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for module in MODULES:
        for node in _tree_of(module).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, rmqtool.cli; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []


def test_the_units_are_those_of_the_sources() -> None:
    assert [unit for unit in UNITS if unit not in MODULES] == []


ACROSS_MODULES = (
    "analytics/diagnosis/test_public_reports",
    "analytics/diagnosis/test_robustness",
    "analytics/diagnosis/test_samples",
    "analytics/diagnosis/test_watched",
    "analytics/life/test_truth",
    "dissectors/decode/test_any_traffic",
    "dissectors/decode/test_command_row_parts",
    "dissectors/decode/test_damaged_samples",
    "dissectors/decode/test_last_defence",
    "dissectors/decode/test_shared_captures",
    "dissectors/remoting/bodies/test_samples",
    "dissectors/tcp/test_tshark",
    "dissectors/test_interrupted",
    "dissectors/wireshark/",
    "replay/test_docs",
    "replay/sandbox/test_docs",
    "replay/sandbox/test_robustness",
    "replay/sending/test_send_chaos",
    "replay/transport/test_transport",
    "analytics/spark/test_standalone_cluster",
    "rmqtool/api/test_docs",
    "rmqtool/api/test_examples",
    "rmqtool/replay/test_targets",
    "rmqtool/send/test_docs",
    "rmqtool/summary/test_relayed",
    "rmqtool/summary/test_reported",
    "rmqtool/send/test_send_options_and_lines",
    "rmqtool/send/test_tls",
)
"""tests of several modules, or of what no module is: documents, samples, other programs"""


def test_tests_mirror_the_packages() -> None:
    """A test is named after its module, or after that and what of it is tested."""
    strangers = []
    for package in PACKAGES:
        for path in sorted((ROOT / "tests" / package).rglob("test_*.py")):
            test = path.relative_to(ROOT / "tests").with_suffix("").as_posix()
            module = test.replace("/test_", "/").replace("/", ".")
            of_module = any(module == one or module.startswith(f"{one}_") for one in MODULES)
            if not of_module and not test.startswith(ACROSS_MODULES):
                strangers.append(test)
    assert strangers == [], "name it after its module, or add it to ACROSS_MODULES"
