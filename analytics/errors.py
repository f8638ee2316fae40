"""Errors of the reports as values for the command line; never a Java stack trace.

Rules: exceptions of Spark, Java or a Python worker become a `ReportError` at the edge
(`reason_of`), which keeps the one line with the cause and drops the rest.
"""

from __future__ import annotations

import glob
import os
import re
from importlib.util import find_spec

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
_DISK_FULL = "No space left on device"
_GRPC = re.compile(r'StatusCode\.(?P<code>[A-Z_]+)\s+details = "(?P<text>[^"\n]*)')
_OTHER_PYTHON = re.compile(
    r"PYTHON_VERSION_MISMATCH\] .*?version: (?P<there>[\d.]+).*?: (?P<here>[\d.]+)", re.DOTALL
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'")
_NO_FILE_SYSTEM = re.compile(
    r"No FileSystem for scheme \"?(?P<scheme>\w+)"
    r"|Class org\.apache\.hadoop\.fs\.\S*?(?P<class>S3A)FileSystem not found"
)
_CONNECTORS = {
    **dict.fromkeys(("s3a", "s3", "s3n"), "org.apache.hadoop:hadoop-aws:{hadoop}"),
    **dict.fromkeys(("abfs", "abfss", "wasb"), "org.apache.hadoop:hadoop-azure:{hadoop}"),
    "gs": "com.google.cloud.bigdataoss:gcs-connector:hadoop3-VERSION",
    "oss": "org.apache.hadoop:hadoop-aliyun:{hadoop}",
}
"""Scheme of a file system -> Maven package that reads it."""
_NAME_NODE = re.compile(
    r"Call From \S+ to (?P<server>\S+) failed on (?:connection|socket timeout) exception:"
    r" (?P<why>[^\n;]*)"
)
_AWAY = (
    (
        re.compile(
            r"Cannot find catalog plugin class for catalog"
            r" '?(?P<name>[^':\s]+)'?: (?P<class>[\w.$]+)"
        ),
        "Spark has no class {class} of the catalog {name}",
        "add its package, such as --conf spark.jars.packages="
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:VERSION",
    ),
    (
        re.compile(
            r"UnknownHostException: (?:Invalid host name: .*?\(unknown\)|)\s*"
            r"(?:java\.net\.UnknownHostException: )?\"?(?P<host>[\w.-]+)"
        ),
        "there is no host {host}",
        "check the name of the input",
    ),
    (
        re.compile(r"PATH_NOT_FOUND\] Path does not exist: (?P<path>.*?)\.? SQLSTATE"),
        "{path}: no such file or folder",
        "",
    ),
    (
        re.compile(r"TABLE_OR_VIEW_NOT_FOUND\] The table or view (?P<name>\S+) cannot be found"),
        "there is no table {name}",
        "name it table:CATALOG.DATABASE.TABLE; --conf spark.sql.catalog.CATALOG=… adds a catalog",
    ),
    (
        re.compile(r"REQUIRES_SINGLE_PART_NAMESPACE\][^\n]*?got `(?P<name>[^`]+)`"),
        "there is no catalog {name}",
        "--conf spark.sql.catalog.NAME=… adds one, as docs/reports.md shows",
    ),
    (
        re.compile(r"(?:NoAuthWithAWSException|No AWS Credentials provided)"),
        "there are no credentials for S3",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    (
        re.compile(
            r"(?:AWSBadRequestException|UnknownStoreException|NoSuchBucket)[^\n]*"
            r"(?:s3\w?://|bucket (?!does))(?P<bucket>[\w.-]+)",
            re.I,
        ),
        "S3 has no bucket {bucket}",
        "check the name of the input, and fs.s3a.endpoint",
    ),
    (
        re.compile(r"AccessDeniedException: (?P<path>[^\s:]+(?:://[^\s:]+)?)"),
        "access to {path} is denied",
        "check the credentials and rights",
    ),
    (
        re.compile(r"SdkClientException[^\n]*|Connect to (?P<host>\S+) (?:\[[^]]*\] )?failed"),
        "the S3 endpoint does not answer",
        "check --conf spark.hadoop.fs.s3a.endpoint=URL, and the network",
    ),
)
"""Error text of file systems and catalogs -> meaning and remedy."""
_LONGEST = 300


class ReportError(Exception):
    """A report cannot be computed, with the reason and a remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        """the reason, with the name of the input"""
        self.hint = hint
        """the remedy; may be empty"""


class NoJavaError(ReportError):
    """Java is missing or unusable for Spark."""


def reason_of(error: BaseException) -> ReportError:
    """Return an error of Spark, py4j or a Python worker in one line."""
    text = _text_of(error)
    # the last one is the error that the worker raised; those before are its causes
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
    if _DISK_FULL in text:
        return ReportError(
            "the disk for Spark's temporary files is full", "SPARK_LOCAL_DIRS names another"
        )
    away = _reason_away(text)
    if away is not None:
        return away
    if "ConnectException" in text or "All masters are unresponsive" in text:
        return ReportError("the Spark master cannot be reached", "check --master")
    damaged = _DAMAGED.search(text)
    if damaged is not None and ("parquet" in text.lower()):
        return damaged_parquet((damaged[1] or "").removeprefix("file://").removeprefix("file:"))
    causes = _JAVA_CAUSE.findall(text)
    cause = causes[-1] if causes else next(iter(text.strip().splitlines()), type(error).__name__)
    return ReportError(f"Spark could not finish: {_short(cause)}", "-V shows what Spark said")


def reason_here(error: BaseException) -> ReportError:
    """Return an error of DuckDB in one line."""
    text = str(error)
    if type(error).__name__ == "OutOfMemoryException":
        return ReportError(
            "there is too little memory for this input",
            "fewer rows: --where, --since, --until; or Spark: --engine spark",
        )
    if _DISK_FULL in text:
        return ReportError(
            "the disk for temporary files is full", "the environment variable TMPDIR names another"
        )
    damaged = _FILE.search(text)
    if damaged is not None:
        return damaged_parquet(damaged[0])
    first = next(iter(text.strip().splitlines()), type(error).__name__)
    return ReportError(f"DuckDB could not finish: {_short(first)}", "--engine spark may")


def damaged_parquet(name: str = "") -> ReportError:
    """Return the error about an incomplete Parquet file."""
    where = f"{name}: " if name else ""
    return ReportError(
        f"{where}the Parquet file is damaged or cut short", "write the decoded log again"
    )


def _reason_elsewhere(text: str) -> ReportError | None:
    """Return the error of a Spark Connect server or of the Python of Spark's workers."""
    status = _GRPC.search(text)
    if status is not None:
        status_text = _short(status["text"])
        if status["code"] in ("UNAUTHENTICATED", "PERMISSION_DENIED"):
            return ReportError(
                f"the Spark Connect server refuses the connection: {status_text}",
                "a token follows its address: sc://HOST:PORT/;token=TOKEN",
            )
        if status["code"] in ("UNAVAILABLE", "UNIMPLEMENTED"):
            return ReportError(
                f"the Spark Connect server does not answer: {status_text}",
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


def _reason_away(text: str) -> ReportError | None:
    """Return the error of a file system or catalog that Spark reads, or of its name."""
    match = _NO_FILE_SYSTEM.search(text)
    if match is not None:
        scheme = match["scheme"] or match["class"].lower()
        package = _CONNECTORS.get(scheme, "")
        return ReportError(
            f"Spark has no connector for {scheme}://",
            f"add --conf spark.jars.packages={package.format(hadoop=_hadoop_version())}; with"
            f" spark-submit, --packages"
            if package
            else "add its package: --conf spark.jars.packages=GROUP:NAME:VERSION",
        )
    match = _NAME_NODE.search(text)
    if match is not None:
        why = _short(match["why"]).partition(": ")
        return ReportError(
            f"the NameNode {match['server']} does not answer: {(why[2] or why[0]).lower()}",
            "check its host and port, as fs.defaultFS has them: hdfs://HOST:PORT/…",
        )
    for pattern, message, hint in _AWAY:
        match = pattern.search(text)
        if match is not None:
            names = {name: text.replace("`", "") for name, text in match.groupdict("").items()}
            return ReportError(message.format(**names), hint)
    return None


def _hadoop_version() -> str:
    """Return the Hadoop version of Spark, which connectors must match."""
    spec = find_spec("pyspark")
    places = spec.submodule_search_locations if spec is not None else None
    home = os.environ.get("SPARK_HOME") or next(iter(places or ()), "")
    names = glob.glob(os.path.join(glob.escape(home), "jars", "hadoop-client-api-*.jar"))
    version = re.search(r"([\d.]+)\.jar$", names[0]) if names else None
    return version[1] if version else "VERSION"


def _text_of(error: BaseException) -> str:
    """Return the full text of an error, including the separate Java trace."""
    parts = [str(error)]
    for name in ("desc", "_desc", "stackTrace", "_stackTrace", "_stacktrace"):
        value = getattr(error, name, None)
        if isinstance(value, str):
            parts.append(value)
    return "\n".join(parts)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"
