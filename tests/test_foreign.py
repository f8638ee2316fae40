"""What others wrote is parsed in `dissectors.foreign` alone: parsing elsewhere is found here.

Told from the syntax tree: readers of JSON, MessagePack and TOML, evaluated text, Base64 and hex.
Told from the types, by mypy with a plugin: numbers in text. `EXCEPTIONS` says what else may parse.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests import foreign_plugin
from tests.foreign_plugin import CODE, SAID
from tests.sources import ROOT, SOURCES

GUARD = "dissectors/foreign.py"
PLUGIN = Path(foreign_plugin.__file__)
READERS = [path for path in SOURCES if str(path.relative_to(ROOT)) != GUARD]
PARSERS = {
    **dict.fromkeys(("json", "tomllib", "ast", "pickle", "marshal", "shelve", "yaml", "csv")),
    "msgspec": ("convert", "json.decode", "msgpack.decode", "toml.decode", "yaml.decode"),
    "base64": ("b64decode", "urlsafe_b64decode", "standard_b64decode", "b85decode", "decodebytes"),
    "binascii": ("unhexlify", "a2b_hex", "a2b_base64"),
}
"""module → what of it parses; None: all but what writes"""
WRITERS = ("dumps", "dump", "writer", "DictWriter")
EVALUATED = ("eval", "exec", "__import__", "compile")
EXCEPTIONS = {
    "dissectors/processes/shared_decode.py": "what processes of one run tell each other",
    "dissectors/processes/worker.py": "what processes of one run tell each other",
    "dissectors/processes/feeding.py": "what processes of one run tell each other",
    "analytics/reports/diagnosis_folding.py": "what the tasks of one Spark job tell each other",
    "analytics/reports/folding_on_spark.py": "what the tasks of one Spark job tell each other",
    "analytics/consuming/delivery.py": "items of its own, which tasks of one Spark job hand on",
    "analytics/consuming/group_fold.py": "items of its own, which tasks of one Spark job hand on",
    "analytics/isolation/isolation_input.py": "what the tasks of one Spark job tell each other",
    "rmqtool/ui/sorting.py": "rows of this run, in a file that has no name",
    "rmqtool/browse/model/disk.py": "rows of this run, in a file that has no name",
    "rmqtool/browse/model/frames.py": "frames of this run, in a file that has no name",
    "rmqtool/plugins.py": "a plug-in, the user's own Python file, named by the user",
    "replay/plan/rewrite.py": "the user's own Python file, named on the command line",
}
"""module → why it may parse"""
NUMBERS = {
    "dissectors/remoting/fastjson/reader.py": "the tolerant reader: a pattern bounds the digits",
    "rmqtool/owners.py": "pip's record, of few digits; `dissectors` may be somebody else's there",
}
"""module → why it may read numbers from text"""


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return f"{_name_of(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def _imported(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """Return local name → whole name of what a module imports."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update({alias.asname or alias.name: alias.name for alias in node.names})
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


_SUSPECT = re.compile(rf"(?<![.\w])(?:{'|'.join((*PARSERS, *EVALUATED))})\b|\bfromhex\b")
"""a word that is in every source that parses; few need a syntax tree"""


def _nodes_of(text: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a source, outer ones first."""
    return tuple(ast.walk(ast.parse(text)))


def parsing_in(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Return what in a module parses, with its line."""
    imported = _imported(nodes)
    decoders = {
        _name_of(target)
        for node in nodes
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if any(_name_of(one).endswith(".Decoder") for one in ast.walk(node.value))
    }
    for node in nodes:
        if (
            isinstance(node, ast.Attribute)
            and node.attr == "decode"
            and _is_decoder(node, decoders)
        ):
            yield f"{node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.Attribute) and node.attr == "fromhex":
            yield f"{node.lineno}: {ast.unparse(node)}"
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        name = _name_of(node)
        if name in EVALUATED:
            yield f"{node.lineno}: {name}"
        first, _, rest = name.partition(".")
        whole = ".".join(filter(None, (imported.get(first, ""), rest)))
        module, _, what = whole.partition(".")
        if module in PARSERS and what:
            parsing = PARSERS[module]
            if what in parsing if parsing is not None else what not in WRITERS:
                yield f"{node.lineno}: {whole}"


def _is_decoder(node: ast.Attribute, decoders: set[str]) -> bool:
    value = node.value
    if isinstance(value, ast.Subscript):
        value = value.value
    if isinstance(value, ast.Call):
        return _name_of(value.func).endswith("Decoder") and "json" in ast.unparse(value.func)
    return _name_of(value) in decoders


def test_parsing_has_one_place() -> None:
    """Else an exception is missing, or is not needed any more."""
    parsing = {}
    for path in READERS:
        text = path.read_text()
        if _SUSPECT.search(text) and (found := list(parsing_in(_nodes_of(text)))):
            parsing[str(path.relative_to(ROOT))] = found
    assert {name: found for name, found in parsing.items() if name not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() - parsing.keys() == set()


@pytest.mark.parametrize(
    "text",
    [
        "import json\njson.loads(x)",
        "from json import load\nload(x)",
        "import tomllib as t\nt.loads(x)",
        "import msgspec\nmsgspec.json.decode(x)",
        "from msgspec import json\njson.decode(x)",
        "import msgspec\nD = msgspec.json.Decoder()\nD.decode(x)",
        "import msgspec\nD: Final = {1: msgspec.json.Decoder()}\nD[1].decode(x)",
        "import msgspec\nread = msgspec.json.Decoder().decode",
        "import msgspec\nmsgspec.convert(x, int)",
        "import pickle\npickle.loads(x)",
        "from ast import literal_eval\nliteral_eval(x)",
        "eval(x)",
        "import base64\nbase64.b64decode(x)",
        "bytes.fromhex(x)",
    ],
)
def test_parsing_is_told(text: str) -> None:
    assert _SUSPECT.search(text)
    assert list(parsing_in(_nodes_of(text)))


def test_numbers_in_text_have_one_place() -> None:
    """mypy finds the others, and comments that are not needed: `make types`."""
    allowed = f"# type: ignore[{CODE.code}]"
    places = {str(path.relative_to(ROOT)) for path in SOURCES if allowed in path.read_text()}
    assert places == {GUARD, *NUMBERS}
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]
    assert settings["plugins"] == [str(PLUGIN.relative_to(ROOT))]
    assert settings["strict"]


@pytest.mark.slow
def test_numbers_in_text_are_found(tmp_path: Path) -> None:
    config, source = tmp_path / "mypy.ini", tmp_path / "source.py"
    config.write_text(f"[mypy]\nplugins = {PLUGIN}\nstrict = true\n")
    source.write_text(
        "def read(text: str, number: float) -> float:\n"
        "    wrong = int(text)\n"
        "    real = float(text.encode())\n"
        f"    allowed = int(text)  # type: ignore[{CODE.code}]\n"
        f"    needless = int(number)  # type: ignore[{CODE.code}]\n"
        "    return wrong + real + allowed + needless\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", config, source]
    command += ["--cache-dir", ROOT / ".mypy_cache" / "foreign"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.findall(r"^[^:]+:(\d+): error: ([^[]+)  \[", ran.stdout, re.MULTILINE)
    assert found == [("2", SAID), ("3", SAID), ("5", 'Unused "type: ignore" comment')], ran.stdout
