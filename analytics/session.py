"""The SparkSession of the reports: local by default, quiet, and without settings to be made.

Rules: whoever asks gets what is already running in this process; what the user set (spark-submit,
`SPARK_CONF_DIR`) is left as it is. Python workers are this interpreter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
"""Master unless another is asked for."""

SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
"""What is set for a session of our own."""


def session_of(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return the running session, else a new one on `master`; `settings` go over `SETTINGS`."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("rmqtool report").master(master or LOCAL)
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
