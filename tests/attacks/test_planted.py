"""Programs and modules that somebody put beside a capture: none of them runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rmqtool.command import ROOT, capture_in

_TRAP = "open({trap!r}, 'a').write(__name__ + '\\n')\nraise ImportError('planted')\n"
_PLANTED = (
    *("socket", "json", "traceback", "selectors", "multiprocessing", "pyspark", "pandas"),
    *("pyarrow", "numpy", "zstandard", "analytics", "dissectors", "replay", "rmqtool"),
)
_OURS = """
import sys
from analytics.spark.session import SessionOptions, start_session
from tests.attacks.test_planted import counted
session = start_session(SessionOptions("local[1]", memory="1g"))
print(session.spark.range(3).mapInArrow(counted, "rows long").first()[0])
session.stop()
"""
_THEIRS = """
import os, sys
from analytics.spark.launch import spark_home
os.environ["SPARK_HOME"] = spark_home()
from pyspark.sql import SparkSession
import rmqtool
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
print(rmqtool.read(sys.argv[1]).to_spark(spark).count())
assert "PYTHONSAFEPATH" not in spark.sparkContext.environment
spark.stop()
"""
_JOB = """
import sys
from rmqtool.report.job import main
sys.exit(main(["latency", sys.argv[1], "-o", sys.argv[2], "-T", "csv"]))
"""
_DECODE = """
import sys
from threading import Event, Thread
{thread}
sys.argv = ["rmqtool", "decode", "pcap", sys.argv[1], "--jobs", "2", "-T", "jsonl"]
from rmqtool.cli import main
main()
"""


def counted(batches):  # type: ignore[no-untyped-def] # Spark looks at the types itself
    """Count rows in a worker of Spark."""
    import pyarrow

    rows = sum(batch.num_rows for batch in batches)
    yield pyarrow.RecordBatch.from_arrays([pyarrow.array([rows])], names=["rows"])


def _run(script: str, folder: Path) -> str:
    """Run a script in a folder of planted files; return what it printed."""
    trap, here = folder / "trap", folder / "incident" / "captures"
    (folder / "incident" / "jars").mkdir(parents=True)
    (folder / "incident" / "bin").mkdir()
    here.mkdir()
    capture = capture_in(here)
    for name in _PLANTED:
        (here / f"{name}.py").write_text(_TRAP.format(trap=str(trap)))
    for program in (folder / "incident" / "bin" / "spark-submit", here / "java", here / "ps"):
        program.write_text(f"#!/bin/sh\necho {program.name} >>{trap}\nexit 1\n")
        program.chmod(0o755)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment["PYSPARK_PYTHON"] = sys.executable
    environment.pop("SPARK_HOME", None)
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(capture), str(folder / "out")],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not trap.exists(), trap.read_text()
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(shutil.which("java") is None, reason="no Java")
@pytest.mark.parametrize("script", [_OURS, _THEIRS, _JOB], ids=["report", "to_spark", "job"])
def test_workers_of_spark_import_nothing_from_the_folder_of_a_capture(
    script: str, tmp_path: Path
) -> None:
    pytest.importorskip("pyspark")
    printed = _run(script, tmp_path)
    if script == _JOB:
        assert list((tmp_path / "out").iterdir())
    else:
        assert int(printed) > 0


def test_executors_of_a_cluster_import_nothing_from_their_folder() -> None:
    from analytics.spark.session import SessionOptions, settings_of

    settings = settings_of(SessionOptions("spark://127.0.0.1:7077"), 1)
    assert settings["spark.executorEnv.PYTHONSAFEPATH"] == "1"


@pytest.mark.slow
@pytest.mark.parametrize(
    "thread",
    ["", "Thread(target=Event().wait, daemon=True).start()"],
    ids=["forked", "spawned"],
)
def test_decoding_processes_import_nothing_from_the_folder_of_a_capture(
    thread: str, tmp_path: Path
) -> None:
    assert _run(_DECODE.format(thread=thread), tmp_path).count("\n") > 0
