"""One SparkSession for all tests: it takes some seconds to start, and each query warms it up."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.rmqtool.command import Result


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The shared local session; skips where Spark or Java is not installed."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java")
    from analytics.spark.session import SessionOptions, start_session

    options = SessionOptions("local[2]", memory="1g", settings=_SETTINGS)
    with patch.dict(os.environ, JAVA_TOOL_OPTIONS=_LASTING):
        before = signal.getsignal(signal.SIGINT)
        session = start_session(options)
        # PySpark's handler asks Java to end all jobs. In a forked process, which shares the
        # connection, it would shift all later answers by one.
        signal.signal(signal.SIGINT, before)
    yield session.spark
    session.stop()


_ENDED = count(1)
_RELEASED_EVERY = 10
_SETTINGS = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ui.retainedExecutions": "5",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
}
"""Spark remembers little of ended queries, whose plans would fill the heap."""
_LASTING = (
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -Xmn512m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Java for hundreds of reports of few rows: its second compiler costs more than it saves, what is
compiled stays, garbage is collected less often, and what Spark's jars have is taken as it is."""


def _in_step(spark: SparkSession) -> None:
    """Replace the connection to Java if an answer was left unread: py4j would take each answer for
    that to the next question, and all later tests would fail.
    """
    context = spark.sparkContext
    assert context._jvm is not None
    try:
        answers = [context._jvm.Math.abs(-number) for number in (7, 8)]
    except Exception:  # whatever py4j makes of a wrong answer
        answers = []
    if answers != [7, 8]:
        assert context._gateway is not None
        context._gateway._gateway_client.thread_connection.connection = None


@pytest.fixture(autouse=True)
def released(request: pytest.FixtureRequest) -> Iterator[None]:
    """Free what ended tests left in the shared session.

    Spark drops broadcasts and cached tables of frames that nobody holds when Java collects its
    garbage; without that the heap is full after some hundred reports and jobs wait for ever.
    """
    if "spark" in request.fixturenames:
        _in_step(request.getfixturevalue("spark"))
    yield
    if "spark" in request.fixturenames and next(_ENDED) % _RELEASED_EVERY == 0:
        spark: SparkSession = request.getfixturevalue("spark")
        spark.catalog.clearCache()
        gc.collect()
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        jvm.System.gc()


@pytest.fixture
def rmqtool_here(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command in this process; a report computes in the shared session and leaves it on."""
    from analytics.spark import session
    from tests.rmqtool.command import rmqtool

    class Shared(session.Session):
        def stop(self) -> None:
            """Others go on with it."""

        abort = stop

    def start(options: session.SessionOptions, *_: object) -> session.Session:
        assert options.is_local
        return Shared(spark)

    monkeypatch.setattr(session, "start_session", start)

    def run(*arguments: str | Path) -> Result:
        return rmqtool(*arguments)

    return run
