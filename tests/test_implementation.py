"""Which implementation of the decode path the tests run: compiled modules, or their sources."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pure import SWITCH, implementation, wants_sources

ROOT = Path(__file__).resolve().parents[1]
RUNNING = implementation()


def _compiled_modules() -> list[str]:
    """The modules that setup.py compiles."""
    text = (ROOT / "setup.py").read_text()
    start = text.index("COMPILED_MODULES = [")
    names = text[start : text.index("]", start)].split('"')[1::2]
    return [name.removesuffix(".py").replace("/", ".") for name in names]


@pytest.mark.parametrize("which", [RUNNING])
def test_all_modules_are_of_one_kind(which: str) -> None:
    """The name of this test says which."""
    kinds = {
        "sources" if str(importlib.import_module(name).__file__).endswith(".py") else "compiled"
        for name in _compiled_modules()
    }
    assert kinds == {which}
    assert which == "sources" or not wants_sources()


@pytest.mark.slow
def test_the_switch_gives_the_sources() -> None:
    code = (
        "import tests.conftest, dissectors.decode.stages as s, dissectors.tcp.segment as t;"
        "print(s.__file__, t.__file__)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={SWITCH: "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [Path(name).suffix for name in found.stdout.split()] == [".py", ".py"]
