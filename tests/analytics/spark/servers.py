"""Starts processes of Spark from PySpark's own scripts, for tests."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pyspark

SPARK_SCRIPTS = Path(pyspark.__file__).parent / "bin"
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Java that starts with less work: what Spark's jars have is taken as it is"""
_PATIENCE = 120


def logging_to_output(folder: Path) -> str:
    """Return the option of Java by which Spark says on its output when it is ready."""
    logging = folder / "log4j2.properties"
    logging.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    return f"-Dlog4j2.configurationFile={logging}"


def waited_for(log: Path, pattern: str) -> str:
    """Return what a log says, in the last group of a pattern, as soon as it says it."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[found.lastindex or 0]
        time.sleep(0.3)
    raise AssertionError(log.read_text(errors="replace")[-2000:])
