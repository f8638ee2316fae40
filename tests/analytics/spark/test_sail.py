"""Sail, an engine without Java, gives the tables that Spark gives."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.rmqtool.command import Result, process, rmqtool

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("grpc_status")
pytest.importorskip("pysail")
pytestmark = [pytest.mark.spark, pytest.mark.slow]
SAMPLES = Path(__file__).resolve().parents[3] / "samples"
_DIGITS = 1e-12
"""Sums of fractions are added in another order."""


def tables_in(result: Result) -> dict[str, list[dict[str, object]]]:
    """Return the tables of a report that was written as JSON."""
    assert result.err == ""
    assert result.status == 0
    reports = json.loads(result.out)["reports"]
    return {name: one["rows"] for report in reports for name, one in report["tables"].items()}


def check_same(found: object, expected: object, place: str) -> None:
    """Raise AssertionError where values differ by more than the last digits of a fraction."""
    if isinstance(expected, dict):
        assert isinstance(found, dict)
        assert found.keys() == expected.keys(), place
        for name, value in expected.items():
            check_same(found[name], value, f"{place}.{name}")
    elif isinstance(expected, list):
        assert isinstance(found, list)
        assert len(found) == len(expected), place
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            check_same(one, other, f"{place}[{number}]")
    elif isinstance(expected, float) and isinstance(found, float):
        assert found == pytest.approx(expected, rel=_DIGITS, abs=_DIGITS), place
    else:
        assert found == expected, place


@pytest.mark.parametrize("name", ["fault-kill-5x", "scaling-5x"])
def test_all_reports_of_a_small_capture(name: str, rmqtool_here: Callable[..., Result]) -> None:
    asked = ("report", "all", SAMPLES / f"{name}.pcap", "--format", "json", "-q")
    found = tables_in(process(*asked, "--master", "sail"))
    assert len(found) > 40
    check_same(found, tables_in(rmqtool_here(*asked)), "")


def test_rows_in_json_lines(
    tmp_path: Path, rmqtool_here: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a proxy is named for web pages: gRPC is not to go through it."""
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    rows = tmp_path / "rows.jsonl"
    rmqtool("decode", "pcap", SAMPLES / "fault-slow-5x.pcap", "-o", rows)
    asked = ("report", "latency", "quality", rows, "--format", "json", "-q")
    found = tables_in(process(*asked, "--master", "sail"))
    assert found["latency"]
    check_same(found, tables_in(rmqtool_here(*asked)), "")


def test_what_is_not_small_is_for_spark(tmp_path: Path) -> None:
    with (tmp_path / "large.jsonl").open("wb") as file:
        file.write(b'{"requester": "", "responder": "", "status": "", "opaque": 1}\n')
        file.truncate(60_000_001)
    result = rmqtool("report", tmp_path / "large.jsonl", "--master", "sail")
    assert result.status == 1
    assert "--master sail is for small inputs, up to 100,000 exchanges" in result.err


_INTERRUPTED = """
import os, signal, sys, time
from threading import Timer
from analytics.spark.sail import SailServer
signal.signal(signal.SIGINT, signal.default_int_handler)
server = None
try:
    Timer(float(sys.argv[1]), os.kill, (os.getpid(), signal.SIGINT)).start()
    server = SailServer(False)
    time.sleep(5)
except KeyboardInterrupt:
    print("interrupted")
time.sleep(0.2)
if server is not None:
    import socket
    socket.create_connection(server.url.rpartition("/")[2].split(":")).close()
    print("it goes on")
    server.stop()
"""


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 0.7, 1.5])
def test_an_interrupt_is_pythons_alone(seconds: float) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, str(seconds)], capture_output=True, check=True
    )
    assert done.stdout in (b"interrupted\n", b"interrupted\nit goes on\n")


@pytest.mark.parametrize("seconds", [0.8, 1.6, 2.4])
def test_ctrl_c_ends_a_report(seconds: float) -> None:
    """Whatever it is at: gRPC and Python's imports have places that an interrupt stops for ever."""
    command = [sys.executable, "-c", "from rmqtool.cli import main; main()", "report"]
    command += ["--master", "sail", SAMPLES / "fault-kill-5x.pcap"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err
    assert process.returncode in (130, -signal.SIGINT, 0), err  # the report may be over
