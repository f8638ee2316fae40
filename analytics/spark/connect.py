"""Sessions on a Spark Connect server: Spark is already running, and this process needs no Java.

Rules: it connects only to the server in the URL. Whatever follows host and port in the URL (tokens,
headers) appears in no message. The session is separate: other sessions of the server keep their
settings, and running queries of this one are interrupted when it ends.
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
"""Minimum Spark version: the reports use functions over Arrow arrays."""
_MODE: Final = "SPARK_CONNECT_MODE_ENABLED"
"""Environment variable by which PySpark's functions create columns for Connect."""
_NO_PROXY: Final = ("grpc.enable_http_proxy", 0)
"""Do not use the environment's web proxy for the connection."""
_RETRIES: Final = {"max_retries": 5, "max_backoff": 4_000}
"""Retry limit of about eight seconds; PySpark's own is ten minutes."""
_MOST_END: Final = 5.0
"""Seconds to end a session: gRPC waits forever for a call interrupted by Ctrl-C."""


class TaskCount(NamedTuple):
    """Tasks of the running query."""

    done: int
    total: int


class RunningTasks:
    """Progress of a server's running query: a PySpark handler."""

    def __init__(self) -> None:
        self.count = TaskCount(0, 0)
        """progress of the running query"""

    def __call__(
        self,
        stages: Iterable[StageInfo] | None,
        inflight_tasks: int,  # noqa: ARG002
        operation_id: str | None,  # noqa: ARG002
        done: bool,
    ) -> None:
        """Update the progress, in the thread that waits for the query."""
        running = [] if done else [stage for stage in stages or () if not stage.done]
        self.count = TaskCount(
            sum(stage.num_completed_tasks for stage in running),
            sum(stage.num_tasks for stage in running),
        )


def load_libraries() -> None:
    """Import the libraries of a session before several threads import parts of them."""
    # pyarrow and pandas import each other: one of two threads may see a partly initialized module
    import pandas  # noqa: F401


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session belongs to a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def connected(url: str, settings: Mapping[str, str], asked: Mapping[str, str]) -> SparkSession:
    """Return a new session on a server known to respond.

    `settings` are applied where the server allows it, `asked` are those of the user. Raise
    ReportError if the server is invalid, too old, or refuses one of the user's settings.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # its log repeats the errors it raises
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pyspark\.sql\.connect\.")
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client import DefaultChannelBuilder
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    try:
        channel = DefaultChannelBuilder(url, [_NO_PROXY])
        named = channel.session_id
    except PySparkException:  # its text contains the whole URL
        raise ReportError(
            f"{shown_master(url)} is followed by text that is not a connection parameter",
            "it is sc://HOST:PORT/;NAME=VALUE;NAME=VALUE",
        ) from None
    if named is not None:
        raise ReportError(
            f"{shown_master(url)} names a session, but a report uses its own",
            "remove session_id from --master",
        )
    # Only now: while it is set, PySpark's functions make no columns for a classic session.
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
    """Raise ReportError if the server is older than the reports require."""
    numbers = tuple(natural_of(part) or 0 for part in version.split(".")[:2])
    if numbers < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise ReportError(
            f"the server at {shown_master(url)} is Spark {version}; reports need {least} or newer",
            "name another server with --master, or omit it to run on this machine",
        )


def disconnect(spark: SparkSession) -> None:
    """End a session and its queries within seconds; never raise."""
    with suppress(Exception):
        # At exit, PySpark would query a server that may be gone, and wait for its response.
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
