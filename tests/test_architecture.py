"""Who may import whom, as data: section 4 of docs/architecture.md, checked in the sources.

A module that is in no unit, or imports what its unit may not, fails: a new file gets its line here
when it gets its line there.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("dissectors", "replay", "analytics", "rmqtool")

MODULES_A_FOLDER = 16
"""modules on one level of a folder, at most"""
LINES_A_MODULE = 400
LINES_A_FUNCTION = 60
LONG_MODULES = {
    "analytics.reports.diagnosis": "rules on Spark, and their tables",
}
"""module that may be longer → what it holds that belongs together"""

REMOTING_FACTS = tuple(
    f"dissectors.remoting.{name}"
    for name in (
        "code_names",
        "code_sets",
        "codes",
        "command",
        "row_bodies",
        "sysflag",
        "versions",
    )
)
"""modules of the protocol that most of its folders need"""
ENDPOINT = "dissectors.endpoint"
"""how addresses are written, for all packages"""
ACTIVE_VALUES = tuple(
    f"replay.{name}" for name in ("acl", "config", "errors", "hooks", "message", "namespace")
)
"""modules on top of `replay` that hold values: settings, messages, errors"""
ACTIVE_EDGES = ("replay.unique_id", "replay.validators", "replay.wire_capture")
SANDBOX_VALUES = tuple(
    f"replay.sandbox.{name}"
    for name in ("answer", "clients", "durations", "errors", "events", "groups", "long_polling")
) + tuple(
    f"replay.sandbox.{name}"
    for name in ("offsets", "options", "request", "server", "state", "store", "topics")
)
REPORT_CONTRACT = ("analytics.report", "analytics.schema", "analytics.derived", "analytics.spark")
VIEWS = ("rmqtool.ui", "rmqtool.decode", "rmqtool")

UNITS: dict[str, tuple[str, ...]] = {
    # dissectors: what knows nothing of the rest
    "dissectors": (),
    **{
        f"dissectors.{leaf}": ()
        for leaf in (
            "endpoint",
            "expert",
            "histogram",
            "printable",
            "quantities",
            "temporary",
            "times",
        )
    },
    "dissectors.owned_folder": ("dissectors.temporary",),
    # the protocol and the captures do not know each other
    "dissectors.tcp": ("dissectors.expert",),
    "dissectors.remoting": ("dissectors.remoting",),
    "dissectors.remoting.bodies": ("dissectors.remoting", "dissectors.expert"),
    "dissectors.remoting.header_tables": (),
    "dissectors.remoting.operation_tables": (),
    "dissectors.remoting.fastjson": (),
    "dissectors.remoting.ids": (ENDPOINT,),
    "dissectors.remoting.messages": (*REMOTING_FACTS, "dissectors.remoting.ids", ENDPOINT),
    "dissectors.remoting.row_facts": (
        *(f"dissectors.remoting.{name}" for name in ("codes", "code_sets", "send_fields")),
        "dissectors.remoting.fastjson",
        "dissectors.remoting.messages",
    ),
    "dissectors.remoting.framing": (
        *REMOTING_FACTS,
        "dissectors.remoting.header_codec",
        "dissectors.expert",
    ),
    "dissectors.replication": ("dissectors.expert", "dissectors.histogram"),
    # rows: what is written and filtered, without a capture
    "dissectors.rows": ("dissectors.printable", "dissectors.times"),
    "dissectors.where": (
        "dissectors.rows",
        "dissectors.remoting",
        ENDPOINT,
        "dissectors.expert",
        "dissectors.quantities",
        "dissectors.times",
    ),
    # the way of a datum
    "dissectors.conversations": (
        "dissectors.tcp",
        "dissectors.remoting",
        "dissectors.replication",
        "dissectors.rows",
        ENDPOINT,
        "dissectors.expert",
    ),
    "dissectors.decode": (
        "dissectors.conversations",
        "dissectors.tcp",
        "dissectors.remoting",
        "dissectors.replication",
        "dissectors.rows",
        "dissectors.where",
        ENDPOINT,
        "dissectors.expert",
        "dissectors.owned_folder",
        "dissectors.times",
    ),
    # edges: live capture, crafting, other tools
    "dissectors.live": (),
    "dissectors.scapy_layer": ("dissectors.remoting", "dissectors.tcp", "dissectors.expert"),
    "dissectors.wireshark": ("dissectors.remoting", "dissectors.rows", "dissectors.expert"),
    # replay: values, then connections, the cluster, sending
    **dict.fromkeys(ACTIVE_VALUES, (*ACTIVE_VALUES, "dissectors.remoting")),
    "replay.config": (
        *ACTIVE_VALUES,
        *ACTIVE_EDGES,
        "replay.fault",
        "dissectors.remoting",
        ENDPOINT,
    ),
    "replay.safety": ("dissectors.printable", ENDPOINT),
    "replay.unique_id": (),
    "replay.validators": ("replay.message", "dissectors.remoting"),
    "replay.wire_capture": ("dissectors.tcp", ENDPOINT),
    "replay.fault": ("dissectors.remoting.versions",),
    "replay.wire": (*ACTIVE_VALUES, "replay.wire_capture", "dissectors"),
    "replay.transport": (*ACTIVE_VALUES, "replay.wire", ENDPOINT),
    "replay.cluster": (
        *ACTIVE_VALUES,
        "replay.fault",
        "replay.wire",
        "dissectors.remoting",
        ENDPOINT,
    ),
    "replay.sending": (
        *ACTIVE_VALUES,
        *ACTIVE_EDGES,
        "replay.fault",
        "replay.wire",
        "replay.cluster",
        "dissectors.remoting",
        "dissectors.rows",
    ),
    **{
        f"replay.{facade}": (
            *ACTIVE_VALUES,
            "replay.fault",
            "replay.wire",
            "replay.cluster",
            "replay.sending",
            "replay.transport",
        )
        for facade in ("producer", "async_producer")
    },
    "replay.send_many": (*ACTIVE_VALUES, "replay.async_producer"),
    "replay": ("replay",),
    # replay: what was captured, what is sent again, how that goes
    "replay.captured": ("replay.message", "replay.safety", "dissectors"),
    "replay.plan": ("replay.captured", "replay.message", "dissectors"),
    "replay.run": (
        *ACTIVE_VALUES,
        *ACTIVE_EDGES,
        "replay.async_producer",
        "replay.captured",
        "replay.cluster",
        "replay.plan",
        "replay.safety",
        "replay.sandbox",
        "replay.sending",
        "replay.transport",
        "replay.wire",
        "dissectors",
    ),
    # the sandbox: no part of the producer but the layout of its ids
    "replay.sandbox": ("replay.sandbox", "dissectors"),
    "replay.sandbox.store": (
        "replay.sandbox.errors",
        "replay.sandbox.groups",
        "replay.sandbox.topics",
        "dissectors.remoting",
    ),
    "replay.sandbox.injection": (
        *(f"replay.sandbox.{name}" for name in ("answer", "durations", "errors", "events")),
        *(f"replay.sandbox.{name}" for name in ("request", "server")),
        "dissectors.remoting",
    ),
    "replay.sandbox.handlers": (
        *SANDBOX_VALUES,
        "replay.unique_id",
        "dissectors.remoting",
        ENDPOINT,
    ),
    "replay.sandbox.pop": (
        *SANDBOX_VALUES,
        "replay.sandbox.handlers",
        "dissectors.remoting",
        ENDPOINT,
    ),
    # analytics
    "analytics": (),
    "analytics.errors": (),
    "analytics.kept": (),
    "analytics.schema": ("dissectors.decode", "dissectors.rows"),
    "analytics.spark": ("analytics.errors", "dissectors.histogram", ENDPOINT),
    "analytics.derived": ("analytics.schema", "analytics.spark", "dissectors.rows"),
    "analytics.report": ("analytics.kept", "analytics.schema"),
    "analytics.result": ("analytics.report",),
    "analytics.tables": ("analytics.result",),
    "analytics.csv_tables": ("analytics.result", "dissectors.rows", "dissectors.times"),
    "analytics.compare": ("analytics.report", "analytics.result"),
    "analytics.inputs": (*REPORT_CONTRACT, "analytics.errors", "dissectors"),
    "analytics.sends": (*REPORT_CONTRACT, "dissectors.remoting"),
    "analytics.isolation": (
        "analytics.report",
        "analytics.sends",
        "dissectors.remoting",
        "replay.fault",
    ),
    "analytics.diagnosis": (
        "analytics.sends.attempts",
        "analytics.sends.chains",
        "analytics.isolation.producer_attempts",
        "analytics.isolation.strategy_replay",
        "analytics.isolation.strategy_verdict",
        "replay.fault",
        "dissectors",
    ),
    "analytics.reports.diagnosis": (
        *REPORT_CONTRACT,
        "analytics.diagnosis",
        "analytics.inputs.rows",
        "analytics.sends",
        "dissectors",
    ),
    "analytics.reports": (
        *REPORT_CONTRACT,
        "analytics.sends",
        "analytics.isolation",
        "dissectors.remoting",
    ),
    "analytics.page": (
        "analytics.report",
        "analytics.result",
        "analytics.compare",
        "dissectors.printable",
    ),
    "analytics.job": ("analytics", "dissectors.times"),
    # the command line: a folder for each command, what they share in `ui`
    "rmqtool": (),
    "rmqtool.__main__": ("rmqtool.cli",),
    "rmqtool.cli": ("rmqtool", "dissectors.temporary"),
    "rmqtool.ui": (
        *("rmqtool", "dissectors.printable", "dissectors.temporary", "dissectors.times"),
    ),
    "rmqtool.summary": ("rmqtool.ui", "analytics.diagnosis", "dissectors"),
    "rmqtool.decode": (
        "rmqtool.summary",
        "rmqtool.ui",
        "rmqtool",
        "analytics.diagnosis",
        "dissectors",
    ),
    "rmqtool.diagnose": (
        *VIEWS,
        "rmqtool.live",
        "rmqtool.summary",
        "analytics.diagnosis",
        "analytics.inputs",
        "dissectors",
    ),
    "rmqtool.live": (*VIEWS, "dissectors"),
    "rmqtool.hex": (*VIEWS, "dissectors"),
    "rmqtool.help": ("rmqtool.ui", "dissectors.rows", "dissectors.where"),
    "rmqtool.codes": ("rmqtool.ui", "dissectors.remoting"),
    "rmqtool.wireshark": ("rmqtool.ui", "rmqtool", "dissectors"),
    "rmqtool.broker": (*VIEWS, "replay.sandbox", "dissectors"),
    "rmqtool.send": (*VIEWS, "replay", "dissectors"),
    "rmqtool.replay": (*VIEWS, "rmqtool.send", "replay", "dissectors"),
    "rmqtool.report": (*VIEWS, "analytics", "dissectors"),
}
"""unit → units that it may import; a module belongs to the unit with the longest name"""

NETWORK = (
    "replay.transport",
    "replay.run.read_ahead",
    "replay.run.replayer",
    "replay.send_many",
    "replay.sandbox",
)
MASTER = "analytics.spark.master"
"""what asks whether a Spark master is there"""
ONLY_IN: dict[str, tuple[str, ...]] = {
    "scapy": ("dissectors.live", "dissectors.scapy_layer"),
    "pyspark": ("analytics",),
    "pandas": ("analytics",),
    "pyarrow": ("dissectors.rows.parquet", "analytics"),
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


def _is_folder(module: str) -> bool:
    return module in MODULES and MODULES[module].name == "__init__.py"


def _unit_of(module: str) -> str | None:
    units = [unit for unit in UNITS if module == unit or module.startswith(f"{unit}.")]
    return max(units, key=len, default=None)


def _is_in(module: str, units: tuple[str, ...]) -> bool:
    return any(module == unit or module.startswith(f"{unit}.") for unit in units)


@every_module
def test_units_import_only_what_they_may(module: str) -> None:
    unit = _unit_of(module)
    assert unit is not None
    allowed = (*UNITS[unit], *([unit] if _is_folder(unit) else []))
    for name, _ in _imports_of(module):
        if name.split(".")[0] in PACKAGES and name != module:
            if name == "rmqtool" and "rmqtool" in allowed:
                continue
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
        for name, _ in _imports_of(module):
            if name in MODULES and place(name) != place(module):
                graph.setdefault(place(module), set()).add(place(name))
    return graph


def test_no_circle_of_modules() -> None:
    """Imports for types and within functions count as well."""
    assert _circles_of(_graph_of(lambda module: module)) == []


def test_no_circle_of_folders() -> None:
    assert _circles_of(_graph_of(_folder_of)) == []


def test_folders_are_small() -> None:
    sizes = Counter(module.rpartition(".")[0] for module in MODULES if not _is_folder(module))
    assert {folder: n for folder, n in sizes.items() if n > MODULES_A_FOLDER} == {}


def test_modules_are_short() -> None:
    long = {
        module
        for module, path in MODULES.items()
        if len(path.read_text().splitlines()) > LINES_A_MODULE
    }
    assert long == set(LONG_MODULES), "split it by meaning, or take it from LONG_MODULES"


def test_functions_are_short() -> None:
    assert [
        (module, node.name)
        for module in MODULES
        for node in ast.walk(_tree_of(module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= LINES_A_FUNCTION
    ] == []


def test_every_folder_says_what_belongs_there() -> None:
    for module in MODULES:
        if _is_folder(module):
            assert ast.get_docstring(_tree_of(module)), f"{module} has no docstring"


def test_the_document_names_every_folder() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text()
    tree = document[document.index("## 3. ") : document.index("## 4. ")]
    folders = [module for module in MODULES if _is_folder(module)]
    assert [name for name in folders if f"{name.rpartition('.')[2]}/" not in tree] == []


def _names_in(module: str) -> set[str]:
    """Return the names that a module defines or imports on its top level, late imports included."""
    names = {
        node.value
        for node in ast.walk(_tree_of(module))
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
    "analytics/diagnosis/test_robustness",
    "analytics/diagnosis/test_samples",
    "dissectors/decode/test_any_traffic",
    "dissectors/decode/test_command_row_parts",
    "dissectors/decode/test_damaged_samples",
    "dissectors/decode/test_last_defence",
    "dissectors/decode/test_shared_captures",
    "dissectors/remoting/bodies/test_samples",
    "dissectors/remoting/bodies/classes/test_all_classes",
    "dissectors/tcp/test_tshark",
    "dissectors/wireshark/",
    "replay/test_docs",
    "replay/sandbox/test_docs",
    "replay/sandbox/test_robustness",
    "replay/sending/test_send_chaos",
    "replay/transport/test_transport",
    "analytics/spark/test_standalone_cluster",
    "rmqtool/replay/test_targets",
    "rmqtool/send/test_docs",
    "rmqtool/send/test_send_options_and_lines",
    "rmqtool/send/test_tls",
)
"""tests of several modules, or of what no module is: documents, samples, other programs"""


def test_tests_mirror_the_packages() -> None:
    strangers = []
    for package in PACKAGES:
        for path in sorted((ROOT / "tests" / package).rglob("test_*.py")):
            test = path.relative_to(ROOT / "tests").with_suffix("").as_posix()
            module = test.replace("/test_", "/").replace("/", ".")
            if module not in MODULES and not test.startswith(ACROSS_MODULES):
                strangers.append(test)
    assert strangers == [], "name it after its module, or add it to ACROSS_MODULES"
