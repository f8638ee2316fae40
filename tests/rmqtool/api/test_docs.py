"""The examples of docs/api.md run, on a real capture."""

from __future__ import annotations

import inspect
import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import rmqtool

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "api.md"
TEXT = PAGE.read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


WITH_SPARK = {number for number, code in enumerate(EXAMPLES) if "pyspark" in code}
WITHOUT_SPARK = [number for number in range(len(EXAMPLES)) if number not in WITH_SPARK]


@pytest.mark.parametrize("number", WITHOUT_SPARK)
def test_an_example_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "samples" / "consumer-lag-5x.pcap", "incident.pcapng")
    shutil.copytree(ROOT / "samples", "captures", ignore=_all_but_one)
    exec(compile(EXAMPLES[number], f"{PAGE.name}, example {number + 1}", "exec"), {})


@pytest.mark.parametrize("number", sorted(WITH_SPARK))
def test_an_example_runs_on_spark(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    test_an_example_runs(number, tmp_path, monkeypatch)


def _all_but_one(_folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name != "send-sync-5x.pcap"]


def test_each_call_has_an_example() -> None:
    code = "\n".join(EXAMPLES)
    calls = [name for name, _ in inspect.getmembers(rmqtool.Capture, inspect.isfunction)]
    public = [name for name in calls if not name.startswith("_")]
    assert len(public) > 5
    assert [name for name in public if f".{name}(" not in code] == []
    assert [name for name in rmqtool.__all__ if name not in TEXT and name != "__version__"] == []
