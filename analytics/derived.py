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

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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


def happened() -> Column:
    """Return when an exchange began, or ended where only that was seen."""
    return F.coalesce(F.col("request_time"), F.col("response_time"))


def broker_names(counted: DataFrame) -> DataFrame:
    """Return (responder, broker) for the addresses whose requests agree on a broker name.

    `counted` has `responder`, `broker_name` and `exchanges`, a count; addresses that no request
    names are not in the result.
    """
    named = (
        counted.where(F.col("broker_name").isNotNull() & (F.col("broker_name") != ""))
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
    names = broker_names(exchanges.withColumn("exchanges", F.lit(1)))
    joined = exchanges.join(F.broadcast(names), "responder", "left")
    return joined.withColumn("broker", F.coalesce("broker", "responder"))
