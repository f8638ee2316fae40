"""The rules of docs/architecture.md that hold over all sources.

Who may import whom is in `pyproject.toml`, as contracts of import-linter.
"""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import warnings
from collections import Counter

from tests.sources import MODULES, PACKAGES, ROOT, is_folder

MODULES_A_FOLDER = 30
LINES_A_MODULE = 800
HEAVY = ("scapy", "pyspark", "pandas", "pyarrow", "numpy", "duckdb", "asyncio", "py4j", "textual")
"""what `import rmqtool.cli` must not load"""


def test_imports_keep_the_contracts() -> None:
    code = "from importlinter.cli import lint_imports; exit(lint_imports(no_cache=True))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, rmqtool.cli; print(*sorted(set({HEAVY!r}) & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == []


def test_only_a_classic_session_reaches_into_java() -> None:
    """A Spark Connect server has no SparkContext and no frames of Java for its clients."""
    words = ("sparkContext", "_jvm", "_jdf", "_jsc", "py4j.", ".rdd")
    texts = {name: path.read_text() for name, path in MODULES.items()}
    found = {name for name, text in texts.items() if any(word in text for word in words)}
    assert found == {"analytics.spark.session"}


def test_every_public_class_has_a_name_of_its_own() -> None:
    places: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE):
            places.setdefault(name, []).append(module)
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}


def test_the_document_names_every_folder() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text()
    tree = document[document.index("## 3. ") : document.index("## 4. ")]
    folders = [module for module in MODULES if is_folder(module)]
    assert [name for name in folders if f"{name.rpartition('.')[2]}/" not in tree] == []


def test_documents_import_what_is_there() -> None:
    line = re.compile(rf"^from ((?:{'|'.join(PACKAGES)})[\w.]*) import ([\w, ]+)$", re.MULTILINE)
    imports = [
        (path.name, module, name.strip())
        for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
        for module, names in line.findall(path.read_text())
        for name in names.split(",")
    ]
    assert len(imports) > 10
    assert [one for one in imports if not hasattr(importlib.import_module(one[1]), one[2])] == []


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


def test_tests_mirror_the_packages() -> None:
    """The folder of a test is the folder of what it tests, or the module itself."""
    folders = {
        path.parent.relative_to(ROOT / "tests").as_posix().replace("/", ".")
        for package in PACKAGES
        for path in (ROOT / "tests" / package).rglob("test_*.py")
    }
    assert sorted(folders - MODULES.keys()) == []
