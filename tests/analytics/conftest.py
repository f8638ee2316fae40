"""One SparkSession for all tests of the reports; it takes some seconds to start."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The shared local session; skips where Spark or Java is not installed."""
    pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("no Java")
    from analytics.session import SessionOptions, start_session

    session = start_session(SessionOptions("local[2]"))
    yield session.spark
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """py4j leaves its sockets to the garbage collector."""
    quiet = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(quiet)
