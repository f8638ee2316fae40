"""Sessions at a Spark Connect server: Spark is there already, and this process has no Java.

Rules: it connects to the server that the URL names and to nothing else. What follows host and port
in the URL (tokens, headers) is in no message. The session is one of its own: other sessions of the
server keep their settings, and what runs in this one is interrupted when it ends.
"""

from __future__ import annotations

import atexit
import os
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from dissectors.foreign import natural_of

from ..errors import ReportError
from .master import shown_master

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import StageInfo

LEAST_VERSION: Final = (4, 1)
"""What the reports ask of Spark: functions over Arrow arrays."""
_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""Variable of the environment by which PySpark's functions make columns for Connect."""
_NO_PROXY: Final = ("grpc.enable_http_proxy", 0)
"""The proxy that the environment names for web pages is not used: nobody named it for this."""
_RETRIES: Final = {"max_retries": 5, "max_backoff": 4_000}
"""PySpark alone tries for ten minutes; this is about eight seconds."""
_MOST_END: Final = 5.0
"""Seconds that the end of a session may take: gRPC waits for ever for a call that Ctrl-C cut."""


class TaskCount(NamedTuple):
    """Tasks of what Spark computes now."""

    done: int
    total: int


class RunningTasks:
    """What a server says about the query that it computes: a handler of PySpark."""

    def __init__(self) -> None:
        self.count = TaskCount(0, 0)
        """of the query that runs now"""

    def __call__(
        self,
        stages: Iterable[StageInfo] | None,
        inflight_tasks: int,  # noqa: ARG002
        operation_id: str | None,  # noqa: ARG002
        done: bool,
    ) -> None:
        """Take what the server says, in the thread that waits for the query."""
        running = [] if done else [stage for stage in stages or () if not stage.done]
        self.count = TaskCount(
            sum(stage.num_completed_tasks for stage in running),
            sum(stage.num_tasks for stage in running),
        )


def load_libraries() -> None:
    """Import what a session needs, before several threads import parts of it.

    pyarrow and pandas import each other: of two threads, one may see the other's half loaded.
    """
    import pandas  # noqa: F401


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is one at a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def connected(url: str, settings: Mapping[str, str], asked: Mapping[str, str]) -> SparkSession:
    """Return a new session at a server that was found to answer.

    `settings` are set where the server lets them be set, `asked` are those of the user. Raise
    ReportError where the server is none, is too old, or refuses one of these.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what it says is in the errors that it raises
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pyspark\.sql\.connect\.")
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    try:
        channel = DefaultChannelBuilder(url, [_NO_PROXY])
        named = channel.session_id
    except PySparkException:  # its text has the whole URL
        raise ReportError(
            f"{shown_master(url)} is followed by what is no setting of a connection",
            "it is sc://HOST:PORT/;NAME=VALUE;NAME=VALUE",
        ) from None
    if named is not None:
        raise ReportError("a report has a session of its own", "leave session_id out of --master")
    os.environ[_MODE] = "1"
    spark = SparkSession.builder.channelBuilder(channel).create()
    try:
        spark.client.set_retry_policies([DefaultPolicy(**_RETRIES)])
        _check_version(spark.version, url)
        spark.conf._set_all(dict(settings), silent=True)
        for name, value in asked.items():
            spark.conf.set(name, value)
    except BaseException:
        disconnect(spark)
        raise
    return spark  # type: ignore[no-any-return, unused-ignore]


def _check_version(version: str, url: str) -> None:
    """Raise ReportError where a server is older than what the reports ask for."""
    numbers = tuple(natural_of(part) or 0 for part in version.split(".")[:2])
    if numbers < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise ReportError(
            f"the server at {shown_master(url)} is Spark {version}; reports need {least} or newer",
            "name another with --master; without it, the report runs on this machine",
        )


def disconnect(spark: SparkSession) -> None:
    """End what runs in a session, and the session, within seconds; never raise."""
    with suppress(Exception):
        # At the end of Python it would ask a server that may be gone, and wait for its answer.
        atexit.unregister(spark.client._cleanup_ml_cache)
    ending = threading.Thread(target=_end, args=(spark,), daemon=True)
    ending.start()
    ending.join(_MOST_END)
    os.environ.pop(_MODE, None)


def _end(spark: SparkSession) -> None:
    with suppress(Exception):
        spark.client.set_retry_policies([])  # the server may be gone
    with suppress(Exception):
        spark.interruptAll()
    with suppress(Exception):
        spark.stop()
