"""The SparkSession of the reports: local by default, quiet, quick, and without settings to be made.

Rules: whoever asks gets what is already running in this process, untouched; what Java and Spark say
goes to a file that `-V` shows. Python workers are this interpreter. A local session listens on the
loopback interface only. At a Spark Connect server (`sc://`) there is no Java here, and what needs
the one of a classic session is here and nowhere else.
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
"""Master unless another is asked for."""
_PARTITION_ROWS = 250_000
"""Exchanges for each partition of a shuffle."""
_LEAST_MEMORY, _MOST_MEMORY = 1 << 30, 8 << 30
_LONGEST_END = 20
"""Seconds that Java may take to end."""
_MOST_ABORT = 3.0
"""Seconds that Spark may take to end in order before its Java is ended."""
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
    """How a session is started."""

    master: str = LOCAL
    """as for `spark-submit --master`"""
    rows: int | None = None
    """exchanges of the input, about; None: unknown"""
    memory: str | None = None
    """heap of the driver, as Java writes it (`8g`); None: an eighth of the machine, 1 to 8 GiB"""
    verbose: bool = False
    """what Spark and Java say is shown on standard error"""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark settings over ours"""

    @property
    def is_local(self) -> bool:
        """Whether everything runs on this machine, in one Java."""
        return self.master.startswith("local")

    @property
    def is_connect(self) -> bool:
        """Whether Spark runs already, as a Spark Connect server."""
        return self.master.startswith(CONNECT)


class Session:
    """A SparkSession that was started here; `stop` it."""

    def __init__(
        self,
        spark: SparkSession,
        launch: Launch | None = None,
        log: IO[bytes] | None = None,
    ) -> None:
        """`launch` is the Java of the session."""
        self.spark = spark
        """the session"""
        self.log = log
        """what Java and Spark said; None: it went to standard error"""
        self._launch = launch

    def tasks(self) -> TaskCount:
        """Return how far Spark is with what it computes now; asked from another thread."""
        tracker = self.spark.sparkContext.statusTracker()
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [info for info in infos if info is not None]
        done = sum(info.numCompletedTasks for info in known)
        return TaskCount(done, sum(info.numTasks for info in known))

    def stop(self) -> None:
        """End Spark and Java."""
        self._stop_spark()
        self._end_java(_LONGEST_END)

    def abort(self) -> None:
        """End Spark and Java within seconds, whatever they are at."""
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
        if gateway is not None and seconds:
            with suppress(Exception):
                gateway.shutdown()
        _forget_gateway()
        if self._launch is not None:
            self._launch.end(seconds)
        if self.log is not None:
            self.log.close()


class ConnectSession(Session):
    """A session at a Spark Connect server; `stop` ends the session, not the server."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__(spark)
        self._running = RunningTasks()
        spark.registerProgressHandler(self._running)

    def tasks(self) -> TaskCount:
        """Return how far the server is with the query that this process waits for."""
        return self._running.count

    def stop(self) -> None:
        """End the session, with what runs in it."""
        disconnect(self.spark)

    def abort(self) -> None:
        """Do as `stop` does, which takes seconds at most."""
        self.stop()


@contextmanager
def safe_workers(spark: SparkSession) -> Iterator[None]:
    """Keep workers of what is built meanwhile from importing from the current directory.

    For a session of somebody else, whose own functions stay as they are. At a Spark Connect server
    workers belong to the server.
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
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
        # By ANSI one senseless number of a peer ends the whole report, and Java without its
        # optimising compiler takes a tenth longer: each checked addition makes an object.
        "spark.sql.ansi.enabled": "false",
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        "spark.sql.debug.maxToStringFields": "200",
        "spark.driver.memory": options.memory or _memory_of_machine(),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.log.level": "WARN" if options.verbose else "ERROR",
        # 2^31 - 1 is no limit: by any other Spark measures the whole batch after each row
        "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
        **{f"spark.executorEnv.{name}": value for name, value in SAFE_PATH.items()},
    }
    if options.is_local:
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.default.parallelism": str(cores),
        }
    if options.rows is not None:  # Spark's own 200 tasks would each do next to nothing
        settings |= {
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.shuffle.partitions": str(-(-max(1, options.rows) // _PARTITION_ROWS)),
        }
    return {**settings, **options.settings}


def start_session(
    options: SessionOptions | None = None,
    launch: Launch | None = None,
) -> Session:
    """Start Spark; raise NoJavaError or ReportError where that cannot be done.

    `launch` will be the Java of the session: `Launch.kill` ends the start from another thread.
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
            return Session(SparkSession(context), launch, log)
        except Exception as error:
            _forget_gateway()
            launch.end(0.0)
            raise _not_started(error, log) from error


def _connected(options: SessionOptions) -> ConnectSession:
    """Return a session at a server that answers; raise ReportError where it cannot be used."""
    every = settings_of(replace(options, settings={}), os.cpu_count() or 1)
    ours = {name: value for name, value in every.items() if name.startswith("spark.sql.")}
    try:
        spark = connected(options.master, ours, options.settings)
        try:
            return ConnectSession(spark)
        except BaseException:
            disconnect(spark)
            raise
    except ReportError:
        raise
    except Exception as error:
        raise reason_of(error) from error


def _variables(java_home: str, options: SessionOptions) -> dict[str, str]:
    """Return the environment that Spark and its Python workers are started with."""
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {
        **SAFE_PATH,
        "JAVA_HOME": java_home,
        "SPARK_HOME": os.environ.get("SPARK_HOME") or spark_home(),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path),
        "SPARK_LAUNCHER_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
    }
    if options.is_local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for as long as Spark starts; workers keep them."""
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
    """Give the name of a log4j configuration, which Java reads when it starts."""
    with tempfile.NamedTemporaryFile("w", prefix="rmqtool-log4j-", suffix=".properties") as file:
        file.write(_LOGGING)
        file.flush()
        yield file.name


def _forget_gateway() -> None:
    """Let PySpark start a new Java next time: it keeps the first one for ever."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None


def _not_started(error: Exception, log: IO[bytes] | None) -> ReportError:
    """Return why Spark did not start; Java says it in its log."""
    said = ""
    if log is not None:
        with suppress(OSError, ValueError):
            log.seek(0)
            said = log.read().decode("utf-8", "replace").strip()
            log.close()
    if not said:
        return reason_of(error)
    lines = [line for line in said.splitlines() if "Error" in line or "Exception" in line]
    return ReportError(f"Spark did not start: {(lines or said.splitlines())[0]}", "-V shows more")


def _memory_of_machine() -> str:
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        whole = 4 * _LEAST_MEMORY
    chosen = min(max(whole // 8, _LEAST_MEMORY), _MOST_MEMORY)
    return f"{chosen >> 20}m"
