"""The list of tests that take long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import lengthy

ROOT = Path(__file__).resolve().parents[1]
DURATIONS = """\
0.400 call a.py::test_two[1]
0.300 call a.py::test_two[2]
0.200 call a.py::test_quick
3.000 setup b.py::test_first
0.001 setup b.py::test_second
"""


def test_what_is_listed_exists() -> None:
    """A renamed test would run in `make test-fast` unnoticed."""
    assert [name for name in lengthy.listed() if not _exists(*name.partition("::")[::2])] == []


def _exists(name: str, function: str) -> bool:
    file = ROOT / name
    wanted = f"def {function.rpartition('::')[2]}(" if function else ""
    return file.is_file() and wanted in file.read_text(encoding="utf-8")


def test_a_run_becomes_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    durations = tmp_path / "durations"
    durations.write_text(DURATIONS)
    monkeypatch.setattr(lengthy, "LIST", tmp_path / "lengthy.txt")
    monkeypatch.setattr("sys.argv", ["lengthy", str(durations)])
    assert lengthy.main() == 0
    took = lengthy.listed()
    assert took == {"a.py::test_two": 0.7, "b.py": 3.0, "b.py::test_first": 3.0}
    assert lengthy.seconds_of("b.py::test_second", took) == 3.0
    assert lengthy.seconds_of("a.py::test_quick", took) == 0.0
