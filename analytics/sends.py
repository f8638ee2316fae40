"""The sends among the exchanges, with all that the retry and isolation reports ask of each.

Rules: a send is a request that carries a message of a producer; the client process is told by its
UNIQ_KEY (process id and class loader hash) and the requester's address. Only sends that may be
part of a retry are taken to Python (`telling_keys`): those of which the UNIQ_KEY was seen more than
once, that failed, or before which a connect of the same host failed.
RocketMQ: MessageClientIDSetter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from . import derived
from .attempts import STORED_CODES
from .schema import SOURCE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SEND_CODES = (10, 310, 320, 324, 325)
"""SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE, SEND_REPLY_MESSAGE and its V2."""
OF_CONSUMERS = (
    "(coalesce(contains(topic, '%RETRY%'), false) or coalesce(contains(topic, '%DLQ%'), false))"
)
"""SQL: the topic is one of the retries and dead letters of consumers."""
_KEY = r"^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})$"
_TAIL = 24
"""Hex digits of a UNIQ_KEY behind the address: process, loader, time of the month, count."""
_ZONES_US = 15 * 60 * 1_000_000
"""The month begins by the client's time zone; all zones are multiples of 15 minutes from UTC."""
_SLACK_US = 1_000_000
"""A clock that steps: a message may seem to be sent so long before it was born."""
_AT_HOME = 0.7
"""A name is at home where its share of the requests is at least this part of its largest share."""
_AFTER_S = 4
"""Seconds after a failed connect in which the message must be sent: a connect takes up to 3."""


def process_of(key: Column) -> Column:
    """Return the process that made a UNIQ_KEY as ``pid-loader``; null where it is no such key."""
    pid = F.conv(F.substr(key, -F.lit(_TAIL), F.lit(4)), 16, 10)
    return F.when(key.rlike(_KEY), F.concat_ws("-", pid, F.substr(key, -F.lit(20), F.lit(8))))


def lead_of(key: Column, time: Column) -> Column:
    """Return the µs from the birth of a UNIQ_KEY to a time; null where it does not say.

    What it says is the time of the month in the client's zone, so the answer is known but for
    multiples of 15 minutes, of which the smallest is taken.
    """
    born_ms = F.conv(F.substr(key, -F.lit(12), F.lit(8)), 16, 10).cast("long")
    of_month = F.unix_micros(time) - F.unix_micros(F.date_trunc("month", time))
    lead = F.pmod(of_month - born_ms * 1000, F.lit(_ZONES_US))
    signed = F.when(lead > _ZONES_US - _SLACK_US, lead - _ZONES_US).otherwise(lead)
    return F.when(key.rlike(_KEY), signed)


def broker_homes(exchanges: DataFrame) -> DataFrame:
    """Return (responder, broker): the name of the broker at an address.

    A name goes to the address where its share is largest, so that retries of asynchronous sends,
    which keep the first broker's name, do not rename the broker they were sent to. An address at
    home to several names, a proxy, has the one that nearly all ask for, or none.
    """
    named = (
        exchanges.where((F.col("broker_name") != "") & F.col("responder").isNotNull())
        .where(~F.col("request_name").isin(*derived.NOT_TO_A_BROKER))
        .groupBy("responder", "broker_name")
        .agg(F.count("*").alias("asked"))
    )
    at_address = Window.partitionBy("responder")
    shares = named.withColumn("share", F.col("asked") / F.sum("asked").over(at_address))
    best = F.max("share").over(Window.partitionBy("broker_name"))
    homes = shares.withColumn("best", best).where(F.col("share") >= F.col("best") * _AT_HOME)
    chosen = homes.groupBy("responder").agg(
        F.max_by("broker_name", F.struct("asked", "broker_name")).alias("broker"),
        F.max("share").alias("share"),
        F.count("*").alias("names"),
    )
    telling = (F.col("names") == 1) | (F.col("share") >= derived.AGREEMENT)
    return chosen.where(telling).select("responder", "broker")


def sends_of(exchanges: DataFrame, homes: DataFrame) -> DataFrame:
    """Return the sends with `host`, `process`, `broker`, `lead`, `begin` and `end` (µs)."""
    sends = exchanges.where(
        F.col("request_code").isin(*SEND_CODES)
        & (F.col("status") != "orphan")
        & F.col("request_time").isNotNull()
    )
    joined = sends.join(F.broadcast(homes), "responder", "left")
    key = F.col("unique_key")
    return joined.select(
        *exchanges.columns,
        derived.address("requester").alias("host"),
        process_of(key).alias("process"),
        F.coalesce("broker", "responder").alias("broker"),
        lead_of(key, F.col("request_time")).alias("lead"),
        F.unix_micros("request_time").alias("begin"),
        F.unix_micros("response_time").alias("end_us"),
    )


def connect_failures(conversations: DataFrame, homes: DataFrame) -> DataFrame:
    """Return the connects to brokers that never came about, as `attempts.ConnectFailure`."""
    failed = conversations.where(F.col("end").isin("refused", "no_answer"))
    named = failed.join(F.broadcast(homes.withColumnRenamed("responder", "server")), "server")
    # all named anew: both sides of a cogroup must not have the same columns
    return named.selectExpr(
        f"{derived.address_of('client')} as host",
        "server as server",
        "broker as broker",
        "unix_micros(start_time) as begin",
        "unix_micros(end_time) as end",
        "`end` = 'refused' as refused",
        f"{SOURCE} as {SOURCE}",
        "capture as capture",
        "conversation as conversation",
    )


def failed_itself() -> Column:
    """Return whether a send failed: refused, or its connection ended before an answer."""
    refused = ~F.col("response_code").isin(*sorted(STORED_CODES))
    ended = (F.col("status") == "unanswered") & F.col("end").isin("reset", "closed")
    return F.coalesce(refused, F.lit(False)) | F.coalesce(ended, F.lit(False))


def telling_keys(sends: DataFrame, failures: DataFrame | None, timeout_us: int) -> DataFrame:
    """Return the UNIQ_KEYs of which the attempts are looked at one by one (`unique_key`)."""
    keyed = sends.where(F.col("unique_key").isNotNull())
    wrong = F.max(failed_itself())
    keys = keyed.groupBy("unique_key").agg(F.count("*").alias("seen"), wrong.alias("wrong"))
    chosen = keys.where((F.col("seen") > 1) | F.col("wrong")).select("unique_key")
    if failures is None:
        return chosen
    return chosen.union(_after_failures(keyed, failures, timeout_us)).distinct()


def _after_failures(keyed: DataFrame, failures: DataFrame, timeout_us: int) -> DataFrame:
    """Return the keys of messages that were being sent when a connect of their host failed."""
    second = F.floor(F.col("end") / 1_000_000)
    near = failures.select(
        "host",
        F.col("broker").alias("failed_broker"),
        F.col("begin").alias("failed_begin"),
        F.col("end").alias("failed_end"),
        F.explode(F.sequence(second, second + _AFTER_S)).alias("second"),
    )
    late = keyed.where(F.col("lead") <= timeout_us).select(
        "unique_key",
        "host",
        "broker",
        "begin",
        "lead",
        F.floor(F.col("begin") / 1_000_000).alias("second"),
    )
    joined = late.join(F.broadcast(near), ["host", "second"])
    return joined.where(
        (F.col("failed_begin") >= F.col("begin") - F.col("lead") - 1000)
        & (F.col("failed_end") <= F.col("begin"))
        & (F.col("failed_broker") != F.col("broker"))
    ).select("unique_key")


def with_connections(sends: DataFrame, conversations: DataFrame | None) -> DataFrame:
    """Return sends with `connected`, `closed` (µs), `ended_by` and `whole` of their connection."""
    if conversations is None:
        return sends.withColumns(
            {
                "connected": F.lit(None).cast("long"),
                "closed": F.lit(None).cast("long"),
                "ended_by": F.lit(None).cast("string"),
                "whole": F.lit(None).cast("boolean"),
            }
        )
    facts = conversations.select(
        SOURCE,
        "conversation",
        F.when(F.col("start") != "midstream", F.unix_micros("start_time")).alias("connected"),
        F.when(F.col("end") != "open", F.unix_micros("end_time")).alias("closed"),
        "ended_by",
        ((F.col("directions") == "both") & (F.coalesce("gaps", F.lit(0)) == 0)).alias("whole"),
    )
    joined = sends.join(facts, [SOURCE, "conversation"], "left")
    return joined.withColumn("whole", F.coalesce("whole", F.lit(False)))
