"""The list of tests that take long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import lengthy

ROOT = Path(__file__).resolve().parents[1]


def test_what_is_listed_exists() -> None:
    """A renamed test would run in `make test-fast` unnoticed."""
    gone = [
        function
        for function in lengthy.listed()
        if not _defines(ROOT / function.partition("::")[0], function.rpartition("::")[2])
    ]
    assert gone == []


def _defines(file: Path, name: str) -> bool:
    return file.is_file() and f"def {name}(" in file.read_text(encoding="utf-8")


def test_a_run_becomes_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durations, made = tmp_path / "durations", tmp_path / "lengthy.txt"
    durations.write_text(
        "0.400 a.py::test_two[1]\n0.300 a.py::test_two[2]\n0.200 a.py::test_quick\n"
    )
    monkeypatch.setattr(lengthy, "LIST", made)
    monkeypatch.setattr("sys.argv", ["lengthy", str(durations)])
    assert lengthy.main() == 0
    assert lengthy.listed() == {"a.py::test_two": 0.7}
