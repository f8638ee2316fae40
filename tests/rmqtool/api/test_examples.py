"""The programs and notebooks of examples/ run, on real captures."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rmqtool
from tests import notebooks

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
BUSY, LAG = (ROOT / "samples" / f"{name}-5x.pcap" for name in ("busy-send-queue", "consumer-lag"))


def program(name: str) -> Callable[..., Any]:
    main: Callable[..., Any] = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]
    return main


def test_the_slowest_exchanges(capsys: pytest.CaptureFixture[str]) -> None:
    program("slow_exchanges")(str(BUSY), str(LAG))
    lines = capsys.readouterr().out.splitlines()
    times = [float(line.split()[0]) for line in lines]
    assert len(times) == 10
    assert times == sorted(times, reverse=True)
    assert not any("PULL_MESSAGE" in line for line in lines)
    program("slow_exchanges")(str(ROOT / "samples" / "grpc-ack-late-5x.pcap"))
    assert "ReceiveMessage" not in capsys.readouterr().out


def test_failures_by_client(capsys: pytest.CaptureFixture[str]) -> None:
    program("failures_by_client")(str(BUSY))
    out = capsys.readouterr().out
    assert "SYSTEM_BUSY" in out
    assert " 20 " in out
    program("failures_by_client")(str(LAG))
    assert "Empty DataFrame" in capsys.readouterr().out


def test_the_life_of_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    key = next(one.unique_key for one in rmqtool.read(LAG).messages("event = delivered"))
    assert key is not None
    program("message_life")(str(LAG), key)
    out = capsys.readouterr().out
    assert out.startswith(f"{key} of LagTopic\n")
    assert out.count("packet ") > 1


def test_an_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program("archive")(str(tmp_path / "log"), str(LAG))
    out = capsys.readouterr().out
    assert "LagTopic" in out
    (absent,) = (line for line in out.splitlines() if "(no topic)" in line)
    assert int(absent.split()[0]) > 0
    assert (tmp_path / "log" / "manifest.json").exists()


def test_a_gate(capsys: pytest.CaptureFixture[str]) -> None:
    main = program("gate")
    assert main(str(BUSY)) == 1
    assert capsys.readouterr().out.startswith("send-queue-timeout: ")
    assert main(str(ROOT / "samples" / "send-sync-5x.pcap")) == 0
    assert main("none.pcap") == 2
    assert "no such file" in capsys.readouterr().err


def test_an_incident_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(EXAMPLES)
    shown = notebooks.run(EXAMPLES / "incident.ipynb")
    assert sum(isinstance(one, str) and "<table" in one for one in shown) >= 5
    out = capsys.readouterr().out
    assert "error: broker-a refused 20 sends" in out
    assert "what to do: " in out


def test_a_spark_job_in_a_notebook(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.chdir(EXAMPLES)
    shown = notebooks.run(EXAMPLES / "spark_job.ipynb")
    assert spark is not None
    assert "SEND_MESSAGE_V2" in str(shown[1])
    assert "delivered" in str(shown[3])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_is_kept_without_what_it_showed(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None


def test_the_page_names_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text()
    names = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb")]
    assert len(names) >= 7
    assert [name for name in names if f"({name})" not in text] == []
