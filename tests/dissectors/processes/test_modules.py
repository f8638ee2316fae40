"""A module in another process: this code, whatever the working directory contains."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from dissectors.processes.children import start_module

ROOT = Path(__file__).resolve().parents[3]


def test_the_working_directory_has_no_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in ("json.py", "rmqtool.py"):
        (tmp_path / name).write_text("print('of the working directory')")
    process = start_module("rmqtool", "--version", cwd=tmp_path, stdout=subprocess.PIPE)
    said = process.communicate()[0]
    assert process.returncode == 0
    assert said.startswith(b"rmqtool ")


def test_no_other_place_starts_python() -> None:
    places = [
        path.name
        for package in ("dissectors", "replay", "rmqtool")
        for path in (ROOT / package).rglob("*.py")
        if "sys.executable" in path.read_text()
    ]
    assert places == ["children.py"]
