"""The same tables from Spark's own Connect server, whose workers do not have our modules."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.analytics.spark.servers import (
    QUICK_JAVA,
    SPARK_SCRIPTS,
    logging_to_output,
    waited_for,
)
from tests.rmqtool.command import PROGRAM, Result, process

from .reported import CAPTURE, Tables, tables_in

pytest.importorskip("grpc_status")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java"),
]
ROOT = Path(__file__).resolve().parents[3]
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_WITHOUT_OURS = """
import sys
sys.meta_path[:] = [one for one in sys.meta_path if "editable" not in repr(one)]
"""
_AS_LARGE = """
import analytics.inputs.inputs as inputs
import analytics.inputs.capture_frame as capture_frame
inputs.SMALL_ROWS = 1
capture_frame.LARGE_BYTES = 1
"""
"""What makes a program take any input for a large one."""
_LARGE_TABLES = ("diagnosis_problems", "delivery_groups", "quality_connections")
"""Of folds in workers, of an Arrow function for each group, of a plan of SQL."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server on loopback; its Python is ours, without rmqtool."""
    folder = tmp_path_factory.mktemp("connect")
    (folder / "sitecustomize.py").write_text(_WITHOUT_OURS)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": f"{logging_to_output(folder)} {QUICK_JAVA}",
    }
    command = [str(SPARK_SCRIPTS / "spark-submit"), "--class", _CLASS, "--master", "local[2]"]
    command += [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    environment = os.environ | {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(folder),
    }
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=folder)
    try:
        yield "sc://" + waited_for(log, r"Connect server started at: (127\.0\.0\.1:\d+)")
    finally:
        process.terminate()
        process.wait()


def test_all_reports_of_a_small_capture(server: str, tables_here: Tables) -> None:
    """With a filter that lets all through."""
    asked = ("report", "all", CAPTURE, "--where", "client_address != '?'", "--format", "json", "-q")
    found = tables_in(process(*asked, "--master", f"{server}/;user_id=somebody"))
    assert len(found) > 40
    assert found == tables_here


def test_a_large_capture_is_decoded_and_folded_by_workers(server: str, tables_here: Tables) -> None:
    """They get our modules from here; the capture is named by its whole path, as here."""
    chosen = [part for name in _LARGE_TABLES for part in ("--table", name)]
    asked = ["report", "all", str(CAPTURE), *chosen, "--format", "json", "-q"]
    program, ours = PROGRAM[:2], "from rmqtool.cli"
    code = PROGRAM[2].replace(ours, f"{_AS_LARGE}{ours}")
    done = subprocess.run(
        [*program, code, *asked, "--master", server],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    found = tables_in(Result(done.returncode, done.stdout, done.stderr))
    assert found == {name: tables_here[name] for name in _LARGE_TABLES}


def test_a_setting_that_a_server_keeps_is_one_line(server: str) -> None:
    setting = ("--conf", "spark.executor.memory=1g")
    result = process("report", "latency", CAPTURE, "--master", server, *setting, "-q")
    assert result.status == 1
    assert "Cannot modify the value of the Spark config" in result.err
    assert len(result.err.splitlines()) == 2
