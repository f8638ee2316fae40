"""Columns that several reports derive from the exchanges, each in one place.

Rules: a broker is called by its name where the requests to its address agree on one; a name that a
request carries is that of the broker it was meant for, which an asynchronous retry leaves as it was
(https://github.com/apache/rocketmq/issues/1497), so single requests are outvoted. A proxy is sent
requests for many brokers and has no such name: it is called by its address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.outcome import LONG_POLLS, NORMAL_ANSWERS

from .schema import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OK, FAILED, NO_ANSWER, UNKNOWN = "ok", "failed", "no answer", "unknown"
OUTCOMES = (OK, FAILED, NO_ANSWER, UNKNOWN, "oneway", "orphan")
"""What became of an exchange: answered, answered with a failure, never answered, not answered as
far as the capture goes, no answer expected, an answer of which the request was not captured."""

NOT_TO_A_BROKER = (
    "REGISTER_BROKER",
    "UNREGISTER_BROKER",
    "BROKER_HEARTBEAT",
    "QUERY_DATA_VERSION",
    "GET_BROKER_MEMBER_GROUP",
    "CONTROLLER_REGISTER_BROKER",
    "CONTROLLER_APPLY_BROKER_ID",
    "CONTROLLER_GET_NEXT_BROKER_ID",
    "CONTROLLER_GET_REPLICA_INFO",
    "CONTROLLER_ALTER_SYNC_STATE_SET",
    "CONTROLLER_ELECT_MASTER",
)
"""Requests to a name server or controller: the broker that they name is the one that asks."""

AGREEMENT = 0.8
"""Share of the requests to an address that must name the same broker."""


def address(endpoint: str) -> Column:
    """Return a column ``address:port`` without the port, IPv6 without brackets."""
    return F.regexp_extract(F.col(endpoint), r"^\[?(.*?)\]?:\d+$", 1)


def waits_on_purpose() -> Column:
    """Return whether the broker may hold the request back until there is a message."""
    return F.coalesce(F.col("request_name").isin(*sorted(LONG_POLLS)), F.lit(False))


def is_failure() -> Column:
    """Return whether the answer says that something is wrong; an exchange without answer: no."""
    failed = ~F.col("response_name").isin(*sorted(NORMAL_ANSWERS))
    return F.coalesce((F.col("status") == "answered") & failed, F.lit(False))


def with_outcome(exchanges: DataFrame, conversations: DataFrame | None) -> DataFrame:
    """Return the exchanges with a column `outcome`, one of `OUTCOMES`.

    `no answer` is said only where the packets show it: the connection ended, both directions were
    captured, and nothing of it is missing. All else that was not answered is `unknown`: the
    capture ended first, has holes, or does not say how connections went.
    """
    if conversations is None:
        sound = exchanges.withColumn("_sound", F.lit(False))
    else:
        whole = conversations.where(
            (F.col("directions") == "both") & (F.coalesce("gaps", F.lit(0)) == 0)
        )
        keys = whole.select(
            SOURCE, "conversation", F.lit(True).alias("_sound")
        )  # numbers are unique within a source, so no exchange is doubled
        sound = exchanges.join(F.broadcast(keys), [SOURCE, "conversation"], "left")
    ended = F.col("end").isin("reset", "closed") & F.coalesce("_sound", F.lit(False))
    outcome = (
        F.when(F.col("status") == "answered", F.when(is_failure(), FAILED).otherwise(OK))
        .when(F.col("status") == "unanswered", F.when(ended, NO_ANSWER).otherwise(UNKNOWN))
        .otherwise(F.col("status"))
    )
    return sound.withColumn("outcome", outcome).drop("_sound")


def happened() -> Column:
    """Return when an exchange began, or ended where only that was seen."""
    return F.coalesce(F.col("request_time"), F.col("response_time"))


def broker_names(counted: DataFrame) -> DataFrame:
    """Return (responder, broker) for the addresses whose requests agree on a broker name.

    `counted` has `operation`, `responder`, `broker_name` and `exchanges`, a count; addresses that
    no request names are not in the result.
    """
    telling = (F.col("broker_name") != "") & ~F.col("operation").isin(*NOT_TO_A_BROKER)
    named = (
        counted.where(telling)
        .groupBy("responder", "broker_name")
        .agg(F.sum("exchanges").alias("exchanges"))
    )
    chosen = named.groupBy("responder").agg(
        F.max_by("broker_name", F.struct("exchanges", "broker_name")).alias("broker"),
        (F.max("exchanges") / F.sum("exchanges")).alias("agreement"),
    )
    return chosen.where(F.col("agreement") >= AGREEMENT).select("responder", "broker")


def with_broker(exchanges: DataFrame) -> DataFrame:
    """Return the exchanges with a column `broker`: the responder's name, else its address."""
    one = {"exchanges": F.lit(1), "operation": F.coalesce("request_name", F.lit("?"))}
    names = broker_names(exchanges.withColumns(one))
    joined = exchanges.join(F.broadcast(names), "responder", "left")
    return joined.withColumn("broker", F.coalesce("broker", "responder"))
