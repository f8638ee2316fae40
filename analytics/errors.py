"""Errors of the reports, as values that a command line can say; never a Java stack trace.

Rules: what Spark, Java or a Python worker raises is turned into `ReportError` at the edge
(`reason_of`), which keeps the one line that says what happened and drops the rest.
"""

from __future__ import annotations

import re

_PYTHON_ERROR = re.compile(
    r"^(?:[A-Za-z_][\w.]*\.)?(?P<type>[A-Z]\w*(?:Error|Exception)): (?P<text>.*)$", re.MULTILINE
)
_OURS = ("CaptureError", "CaptureOptionError", "DecodedLogError", "MissingLibraryError")
_JAVA_CAUSE = re.compile(
    r"^(?:Caused by: )?[\w.$]+(?:Exception|Error): (?P<text>.+)$", re.MULTILINE
)
_DAMAGED = re.compile(
    r"(file:\S+\.parquet)[^\n]*|(?:not a Parquet file|corrupt|ParquetDecodingException)", re.I
)
_FILE = re.compile(r"/[^\n'\"]*\.parquet")
_GRPC = re.compile(r'StatusCode\.(?P<code>[A-Z_]+)\s+details = "(?P<text>[^"\n]*)')
_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\] .*?version: (?P<there>[\d.]+).*?: (?P<here>[\d.]+)", re.DOTALL
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'")
_LONGEST = 300


class ReportError(Exception):
    """A report cannot be made: what is wrong, and the way out."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        """what is wrong, with the name of the input"""
        self.hint = hint
        """the way out; may be empty"""


class NoJavaError(ReportError):
    """There is no Java, or one that Spark cannot use."""


def reason_of(error: BaseException) -> ReportError:
    """Return what an error of Spark, py4j or a Python worker comes to, in one line."""
    text = _text_of(error)
    for match in reversed(list(_PYTHON_ERROR.finditer(text))):
        if match["type"] in _OURS:
            return ReportError(_short(match["text"]))
    elsewhere = _reason_elsewhere(text)
    if elsewhere is not None:
        return elsewhere
    if "OutOfMemoryError" in text or "GC overhead limit" in text:
        return ReportError(
            "Spark has too little memory for this input",
            "give it more: --memory 8g; or fewer rows: --where, --since, --until",
        )
    if "No space left on device" in text:
        return ReportError(
            "the disk for Spark's temporary files is full", "SPARK_LOCAL_DIRS names another"
        )
    if "ConnectException" in text or "All masters are unresponsive" in text:
        return ReportError("the Spark master cannot be reached", "check --master")
    damaged = _DAMAGED.search(text)
    if damaged is not None and ("parquet" in text.lower()):
        return damaged_parquet((damaged[1] or "").removeprefix("file://").removeprefix("file:"))
    causes = _JAVA_CAUSE.findall(text)
    said = causes[-1] if causes else next(iter(text.strip().splitlines()), type(error).__name__)
    return ReportError(f"Spark could not finish: {_short(said)}", "-V shows what Spark said")


def reason_here(error: BaseException) -> ReportError:
    """Return what an error of DuckDB comes to, in one line."""
    text = str(error)
    if type(error).__name__ == "OutOfMemoryException":
        return ReportError(
            "there is too little memory for this input",
            "fewer rows: --where, --since, --until; or Spark: --engine spark",
        )
    damaged = _FILE.search(text)
    if damaged is not None:
        return damaged_parquet(damaged[0])
    first = next(iter(text.strip().splitlines()), type(error).__name__)
    return ReportError(f"DuckDB could not finish: {_short(first)}", "--engine spark may")


def damaged_parquet(name: str = "") -> ReportError:
    """Return the error about a file that is no Parquet file to its end."""
    where = f"{name}: " if name else ""
    return ReportError(
        f"{where}the Parquet file is damaged or cut short", "write the decoded log again"
    )


def _reason_elsewhere(text: str) -> ReportError | None:
    """Return what is wrong with a Spark Connect server or with the Python of Spark's workers."""
    status = _GRPC.search(text)
    if status is not None:
        said = _short(status["text"])
        if status["code"] in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            return ReportError(
                f"the Spark Connect server refuses the connection: {said}",
                "a token follows its address: sc://HOST:PORT/;token=TOKEN",
            )
        if status["code"] in ("UNAVAILABLE", "UNIMPLEMENTED"):
            return ReportError(
                f"the Spark Connect server does not answer: {said}",
                "check --master, and whether the server takes TLS: ;use_ssl=true, or a token",
            )
    python = _OTHER_PYTHON.search(text)
    if python is not None:
        return ReportError(
            f"Spark's workers run Python {python['there']}, this is Python {python['here']}",
            "both must be the same; PYSPARK_PYTHON of the cluster names its Python",
        )
    module = _NO_MODULE.search(text)
    if module is not None:
        return ReportError(
            f"the Python of Spark's workers has no {module['name']}",
            "install rmqtool's extra `spark` there, too",
        )
    return None


def _text_of(error: BaseException) -> str:
    """Return all that an error knows: the Java trace is kept apart."""
    parts = [str(error)]
    for name in ("desc", "_desc", "stackTrace", "_stackTrace", "_stacktrace"):
        value = getattr(error, name, None)
        if isinstance(value, str):
            parts.append(value)
    return "\n".join(parts)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
