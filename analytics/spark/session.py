"""The SparkSession of the reports: local by default, quiet, and ready to use.

Rules: a session already running in this process is used unchanged; output of Java and Spark goes to
a file that `-V` shows. Python workers use this interpreter. A local session listens only on the
loopback interface. With a Spark Connect server (`sc://`) there is no local Java, and only this
module has code that needs the Java of a classic session.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..errors import ReportError, reason_of
from .connect import RunningTasks, TaskCount, connected, disconnect, is_connect
from .java import OPTIONS, java_of
from .launch import Launch, spark_home
from .master import CONNECT, check_master
from .workers import SAFE_PATH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
"""Default master."""
_PARTITIONS = "spark.sql.shuffle.partitions"
_PARTITION_ROWS = 500_000
"""Exchanges per shuffle partition."""
_LEAST_MEMORY, _MOST_MEMORY = 1 << 30, 8 << 30
_LONGEST_END = 20
"""Seconds that Java may take to exit."""
_MOST_ABORT = 3.0
"""Seconds that Spark may take to stop before its Java is killed."""
_LOGGING = """\
status = error
appender.file.type = Console
appender.file.name = file
appender.file.target = SYSTEM_ERR
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Options to start a session."""

    master: str = LOCAL
    """as for `spark-submit --master`"""
    memory: str | None = None
    """heap of the driver in Java's syntax (`8g`); None: an eighth of the machine, 1 to 8 GiB"""
    verbose: bool = False
    """show the output of Spark and Java on standard error"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark settings that override ours"""

    @property
    def is_local(self) -> bool:
        """Whether everything runs on this machine, in one Java."""
        return self.master.startswith("local")

    @property
    def is_connect(self) -> bool:
        """Whether Spark already runs, as a Spark Connect server."""
        return self.master.startswith(CONNECT)


class Session:
    """A SparkSession started here; end it with `stop`."""

    def __init__(
        self,
        spark: SparkSession,
        launch: Launch | None = None,
        log: IO[bytes] | None = None,
        asked: Mapping[str, str] | None = None,
    ) -> None:
        """Initialize; `launch` is the Java of the session, `asked` are settings of the user."""
        self.spark = spark
        """the Spark session"""
        self.log = log
        """output of Java and Spark; None: it went to standard error"""
        self._launch = launch
        self._asked = asked or {}

    def size_shuffles(self, rows: int) -> None:
        """Set the number of shuffle partitions for an input of this number of exchanges.

        With Spark's default of 200, each task would do next to nothing. The user's setting has
        priority.
        """
        if _PARTITIONS not in self._asked:
            self.spark.conf.set(_PARTITIONS, str(-(-max(1, rows) // _PARTITION_ROWS)))

    def tasks(self) -> TaskCount:
        """Return the progress of the running query; called from another thread."""
        tracker = self.spark.sparkContext.statusTracker()
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [info for info in infos if info is not None]
        done = sum(info.numCompletedTasks for info in known)
        return TaskCount(done, sum(info.numTasks for info in known))

    def stop(self) -> None:
        """Stop Spark and Java."""
        self._stop_spark()
        self._end_java(_LONGEST_END)

    def abort(self) -> None:
        """Stop Spark and Java within seconds, even during a query."""
        ending = threading.Thread(target=self._stop_spark, daemon=True)
        ending.start()
        ending.join(_MOST_ABORT)
        self._end_java(0.0)

    def _stop_spark(self) -> None:
        with suppress(Exception):  # a failed call may have left the connection unusable
            self.spark.stop()

    def _end_java(self, seconds: float) -> None:
        from pyspark import SparkContext

        gateway = SparkContext._gateway
        # At an abort Java is killed at once; nothing is asked of it.
        if gateway is not None and seconds:
            with suppress(Exception):
                gateway.shutdown()
        _forget_gateway()
        if self._launch is not None:
            self._launch.end(seconds)
        if self.log is not None:
            self.log.close()


class ConnectSession(Session):
    """A session on a Spark Connect server; `stop` ends the session, not the server."""

    def __init__(self, spark: SparkSession, asked: Mapping[str, str]) -> None:
        super().__init__(spark, asked=asked)
        self._running = RunningTasks()
        spark.registerProgressHandler(self._running)

    def tasks(self) -> TaskCount:
        """Return the progress of the query that this process waits for."""
        return self._running.count

    def stop(self) -> None:
        """Stop the session and its queries."""
        disconnect(self.spark)

    def abort(self) -> None:
        """End the session with `stop`, which takes only seconds."""
        self.stop()


class SubmittedSession(Session):
    """The session of a spark-submit job; its Java exits by itself."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        if not os.environ.get("SPARK_HOME"):  # set by spark-submit
            os.environ["SPARK_HOME"] = spark_home()
        builder = SparkSession.builder.appName("rmqtool report")
        for name, value in SAFE_PATH.items():
            builder.config(f"spark.executorEnv.{name}", value)
        spark = builder.getOrCreate()
        asked = dict(spark.sparkContext.getConf().getAll())
        super().__init__(spark, asked=asked)
        for name, value in settings_of(SessionOptions(), 1).items():
            if name.startswith("spark.sql.") and name not in asked:
                spark.conf.set(name, value)

    def stop(self) -> None:
        """Stop Spark."""
        self._stop_spark()


@contextmanager
def safe_workers(spark: SparkSession) -> Iterator[None]:
    """Prevent workers of functions defined meanwhile from importing from the current directory.

    This is for sessions of other programs, whose own functions are unaffected. On a Spark Connect
    server the workers belong to the server.
    """
    if is_connect(spark):
        yield
        return
    environment = spark.sparkContext.environment
    before = {name: environment.get(name) for name in SAFE_PATH}
    environment.update(SAFE_PATH)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                environment.pop(name, None)
            else:
                environment[name] = value


def settings_of(options: SessionOptions, cores: int) -> dict[str, str]:
    """Return the Spark settings of a session of our own."""
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",  # `size_shuffles` adapts partitions
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        # In ANSI mode one invalid number of a peer fails the whole report, and without Java's
        # optimizing compiler it takes a tenth longer: each checked addition allocates an object.
        "spark.sql.ansi.enabled": "false",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.debug.maxToStringFields": "200",
        "spark.driver.memory": options.memory or _memory_of_machine(),
        "spark.log.level": "WARN" if options.verbose else "ERROR",
        # 2^31 - 1 means no limit: with any other one, Spark measures the batch after each row
        "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
        # of 64 MiB by default, of which each sort of a few rows would take and clear one
        "spark.buffer.pageSize": "4m",
        # more rows of this process would be part of each plan, and compared and hashed with it
        "spark.sql.execution.arrow.localRelationThreshold": "64KB",
        # with Hadoop's defaults, an unreachable store is reported after more than five minutes
        "spark.hadoop.fs.s3a.attempts.maximum": "2",
        "spark.hadoop.fs.s3a.retry.limit": "2",
        **{f"spark.executorEnv.{name}": value for name, value in SAFE_PATH.items()},
    }
    if options.is_local:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.default.parallelism": str(cores),
        }
    return {**settings, **options.settings}


def start_session(
    options: SessionOptions | None = None,
    launch: Launch | None = None,
) -> Session:
    """Start Spark; raise NoJavaError or ReportError if that fails.

    `launch` becomes the Java of the session: `Launch.kill` in another thread aborts the start.
    """
    options = options or SessionOptions()
    check_master(options.master)
    if options.is_connect:
        return _connected(options)
    java = java_of()
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    conf = SparkConf(loadDefaults=False)
    conf.setMaster(options.master).setAppName("rmqtool report")
    for name, value in settings_of(options, os.cpu_count() or 1).items():
        conf.set(name, value)
    log = None if options.verbose else tempfile.TemporaryFile(prefix="rmqtool-spark-")  # noqa: SIM115
    launch = launch or Launch()
    with _environment(_variables(java.home, options)), _logging_file() as logging:
        java_options = (
            *OPTIONS,
            f"-Dlog4j2.configurationFile={logging}",
            f"-Djava.io.tmpdir={launch.folder()}",
        )
        quoted = (f'"{option}"' for option in java_options)
        conf.set("spark.driver.extraJavaOptions", " ".join(quoted))
        try:
            gateway = launch.gateway(conf, log)
            context = SparkContext(conf=conf, gateway=gateway)
            return Session(SparkSession(context), launch, log, options.settings)
        except Exception as error:
            _forget_gateway()
            launch.end(0.0)
            raise _not_started(error, log) from error


def _connected(options: SessionOptions) -> ConnectSession:
    """Return a session on a running server; raise ReportError if it is unusable."""
    settings = settings_of(replace(options, settings={}), os.cpu_count() or 1)
    ours = {name: value for name, value in settings.items() if name.startswith("spark.sql.")}
    try:
        spark = connected(options.master, ours, options.settings)
        try:
            return ConnectSession(spark, options.settings)
        except BaseException:
            disconnect(spark)
            raise
    except ReportError:
        raise
    except Exception as error:
        raise reason_of(error) from error


def _variables(java_home: str, options: SessionOptions) -> dict[str, str]:
    """Return the environment for Spark and its Python workers."""
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {
        **SAFE_PATH,
        "JAVA_HOME": java_home,
        "SPARK_HOME": os.environ.get("SPARK_HOME") or spark_home(),
        # PySpark reads the environment, spark-submit only the setting
        "PYSPARK_PYTHON": options.settings.get("spark.pyspark.python", sys.executable),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path),
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    }
    if options.is_local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while Spark starts; workers keep them."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _logging_file() -> Iterator[str]:
    """Yield the name of a log4j configuration, which Java reads at startup."""
    with tempfile.NamedTemporaryFile("w", prefix="rmqtool-log4j-", suffix=".properties") as file:
        file.write(_LOGGING)
        file.flush()
        yield file.name


def _forget_gateway() -> None:
    """Make PySpark start a new Java next time: it normally reuses the first one forever."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None


def _not_started(error: Exception, log: IO[bytes] | None) -> ReportError:
    """Return why Spark did not start, from Java's log."""
    output = ""
    if log is not None:
        with suppress(OSError, ValueError):
            log.seek(0)
            output = log.read().decode("utf-8", "replace").strip()
            log.close()
    if not output:
        return reason_of(error)
    lines = [line for line in output.splitlines() if "Error" in line or "Exception" in line]
    return ReportError(f"Spark did not start: {(lines or output.splitlines())[0]}", "-V shows more")


def _memory_of_machine() -> str:
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole = 4 * _LEAST_MEMORY
    chosen = min(max(whole // 8, _LEAST_MEMORY), _MOST_MEMORY)
    return f"{chosen >> 20}m"
