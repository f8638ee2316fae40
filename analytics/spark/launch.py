"""The Java process of a session: PySpark launches it, and any thread can end it at any moment.

Rules: PySpark returns the process only after Java has responded, so the function that starts it is
wrapped meanwhile. Java's temporary files are in a separate folder, which is removed even if Java
was killed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkConf


def spark_home() -> str:
    """Return the folder of the Spark inside PySpark."""
    # Without SPARK_HOME, PySpark would first run `../bin/spark-submit`, which an attacker may have
    # placed beside a capture.
    import pyspark

    installed = os.path.dirname(os.path.abspath(pyspark.__file__))
    downloaded = os.path.join(installed, "spark-distribution")
    return downloaded if os.path.isdir(downloaded) else installed


class Launch:
    """One Java process, from launch to end."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._unwanted = False
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def folder(self) -> str:
        """Return Java's temporary folder; create it if necessary."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(
                prefix="rmqtool-spark-", ignore_cleanup_errors=True
            )
        return self._folder.name

    def gateway(self, conf: SparkConf, output: IO[bytes] | None) -> Any:  # py4j is untyped
        """Launch Java with settings; its output goes to `output`, or to standard error if None."""
        from pyspark.java_gateway import launch_gateway

        with self._noted():
            pipes = {} if output is None else {"stdout": output, "stderr": output}
            return launch_gateway(conf, dict(pipes))

    def kill(self) -> None:
        """Kill Java now, or as soon as it is launched; callable from any thread."""
        with self._lock:
            self._unwanted = True
            if self._process is not None:
                self._process.kill()

    def end(self, seconds: float) -> None:
        """Let Java exit, kill it after `seconds`, and remove its temporary files."""
        process = self._process
        if process is not None:
            with suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()  # Java exits at the end of its input
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    @contextmanager
    def _noted(self) -> Iterator[None]:
        """Record the process that PySpark starts meanwhile."""
        from pyspark import java_gateway

        start = java_gateway.Popen

        def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
            with self._lock:
                self._process = start(*arguments, **options)
                if self._unwanted:
                    self._process.kill()
                return self._process

        java_gateway.Popen = noted
        try:
            yield
        finally:
            java_gateway.Popen = start
