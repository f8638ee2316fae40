"""Starts processes of Spark from PySpark's own scripts, for tests."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pyspark

from analytics.spark.java import ClassArchive, cache_folder, java_of, options_of

SPARK_SCRIPTS = Path(pyspark.__file__).parent / "bin"
_QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Java that starts with less work: what Spark's jars have is taken as it is"""
_PATIENCE = 120


def quick_java() -> str:
    """Return options of Java for a quick start."""
    return " ".join((_QUICK, *archive_options()))


def archive_options() -> tuple[str, ...]:
    """Return options that use the archive of Spark's classes; none where nothing has made it yet.

    A small report makes it: one test of such a report is the first of all.
    """
    installed = str(Path(pyspark.__file__).parent)
    small = options_of(small=True, quick=True)
    archive = ClassArchive(java_of(), pyspark.__version__, installed, small, cache_folder())
    if not archive.exists:
        return ()
    return ("-Xlog:disable", "-Xlog:all=error:stderr", *archive.options())


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
