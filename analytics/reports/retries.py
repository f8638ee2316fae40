"""Messages that were sent more than once, or in vain: attempts, causes, copies, what they cost.

Rules: a message is its UNIQ_KEY; attempts on any connection, broker or capture belong to it.
Consumers retry apart, by sending back. Counts are of what was seen; what the packets do not show is
`unknown` and is not counted as a failure. Only messages with more than one attempt or a failure are
looked at one by one; the others are counted. RocketMQ: DefaultMQProducerImpl, MQClientAPIImpl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from .. import sends
from ..attempt_table import ATTEMPT_COLUMNS, MESSAGE_COLUMNS, stitched
from ..attempts import STORED, UNKNOWN
from ..chains import FAILED, MAYBE, STORED_UNTOLD, Limits
from . import Chart, Report, ReportInput, ReportOptions, ReportTable, Rows, TableColumn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

DEFAULT_TIMEOUT_MS = 3000
DEFAULT_RETRIES = 2
RETRY_TOPIC = "%RETRY%"
DEAD_LETTERS = "%DLQ%"
SEND_BACK = 36
_PULLS = (11, 361, 200050, 200071)

_TOTAL_KEYS = ("topic", "group", "client", "process")
_SUMS: tuple[TableColumn, ...] = (
    TableColumn("messages", "int", "", "messages that were sent"),
    TableColumn("attempts", "int", "", "attempts to send them, with the inferred ones"),
    TableColumn("retried", "int", "", "messages with more than one attempt"),
    TableColumn("failed", "int", "", "messages that no broker stored"),
    TableColumn("maybe", "int", "", "messages that failed for the client, yet may be stored"),
    TableColumn("untold", "int", "", "messages stored although the client saw a failure"),
    TableColumn("unknown", "int", "", "messages of which the capture does not show the outcome"),
    TableColumn("duplicates", "int", "", "messages stored more than once"),
    TableColumn("copies", "int", "", "copies too many"),
    TableColumn("unsure", "int", "", "attempts without answer before a retry: perhaps copies too"),
    TableColumn("over_budget", "int", "", "attempts that began after sendMsgTimeout"),
    TableColumn("stale_queue", "int", "", "attempts with another broker's queue"),
)

TOTALS = ReportTable(
    "retry_totals",
    "Retries by topic, group and client",
    "A row a producing process, group and topic, the one with the most retries first.",
    (
        TableColumn("topic", "string", "", "topic of the messages"),
        TableColumn("group", "string", "", "producer group"),
        TableColumn("client", "string", "", "address of the client, without port"),
        TableColumn(
            "process", "string", "", "process that made the UNIQ_KEYs; absent: no key of this form"
        ),
        *_SUMS,
        TableColumn("amplification", "float", "", "attempts / messages"),
    ),
    order=("-retried", "-failed", "-messages", *_TOTAL_KEYS),
    brief=(
        "topic",
        "group",
        "client",
        "messages",
        "attempts",
        "amplification",
        "retried",
        "failed",
        "duplicates",
        "maybe",
        "unknown",
        "over_budget",
    ),
)
CAUSES = ReportTable(
    "retry_causes",
    "Why attempts failed",
    "A row a broker and cause, the most frequent first.",
    (
        TableColumn("broker", "string", "", "broker of the attempts"),
        TableColumn("cause", "string", "", "name of the error code, else what happened"),
        TableColumn("attempts", "int", "", "attempts that ended so"),
        TableColumn("messages", "int", "", "messages of these attempts"),
        TableColumn("retried", "int", "", "attempts that another one followed"),
        TableColumn("stored", "int", "", "messages that were stored all the same"),
        TableColumn("inferred", "int", "", "attempts of which only a failed connect was seen"),
        TableColumn("topics", "int", "", "topics of these messages"),
        TableColumn("clients", "int", "", "client addresses"),
        TableColumn("remark", "string", "", "one of the brokers' remarks"),
        TableColumn("first_time", "time", "", "begin of the first of them"),
        TableColumn("last_time", "time", "", "begin of the last"),
    ),
    order=("-attempts", "broker", "cause"),
    brief=("broker", "cause", "attempts", "retried", "stored", "remark", "messages"),
)
FLOWS = ReportTable(
    "retry_flows",
    "From which broker to which",
    "A row two brokers and a cause: attempts at the second that followed a failure at the first.",
    (
        TableColumn("from_broker", "string", "", "broker of the attempt that failed"),
        TableColumn("to_broker", "string", "", "broker of the attempt after it"),
        TableColumn("cause", "string", "", "why the first one failed"),
        TableColumn("retries", "int", "", "how often"),
        TableColumn("gap_p50_us", "int", "µs", "median time from the begin of one to the other"),
        TableColumn("gap_max_us", "int", "µs", "longest time"),
        TableColumn("stored", "int", "", "of the second attempts, those stored"),
        TableColumn("stale_queue", "int", "", "of them, those with the first broker's queue"),
    ),
    order=("-retries", "from_broker", "to_broker", "cause"),
)
VERDICTS = ReportTable(
    "retry_verdicts",
    "Retries without sense, and missing ones",
    "A row a verdict, cause and client version, the most frequent first.",
    (
        TableColumn("verdict", "string", "", "what is odd"),
        TableColumn("cause", "string", "", "name of the last error code, else what happened"),
        TableColumn("version_name", "string", "", "version that the clients say"),
        TableColumn("messages", "int", "", "how many messages"),
        TableColumn("attempts", "int", "", "attempts of them"),
        TableColumn("remark", "string", "", "one of the remarks"),
        TableColumn("unique_key", "string", "", "one of the messages"),
    ),
    order=("-messages", "verdict", "cause", "version_name"),
)
MESSAGES = ReportTable(
    "retry_messages",
    "Messages with retries or failures",
    "A row a message that was tried more than once or was not stored, by time.",
    (
        *MESSAGE_COLUMNS,
        TableColumn("capture", "string", "", "capture file of the first request"),
        TableColumn("request_packet", "int", "", "packet of the first request"),
    ),
    order=("begin", "unique_key"),
    brief=("begin", "topic", "brokers", "causes", "final", "copies", "lasted_us", "unique_key"),
)
ATTEMPTS = ReportTable(
    "retry_attempts",
    "Attempts of these messages",
    "A row an attempt, by message and number.",
    (
        *(column for column in MESSAGE_COLUMNS if column.name in ("unique_key", "topic", "group")),
        TableColumn("client", "string", "", "address of the client, without port"),
        TableColumn("process", "string", "", "process that made the UNIQ_KEY"),
        *ATTEMPT_COLUMNS,
    ),
    order=("attempt_begin", "unique_key", "attempt"),
    brief=(
        "attempt_begin",
        "attempt",
        "broker",
        "queue_id",
        "cause",
        "remark",
        "gap_us",
        "capture",
        "request_packet",
        "unique_key",
    ),
)
CONSUMERS = ReportTable(
    "consumer_retries",
    "Consumers' retries",
    "A row a consumer group whose messages were sent back, delivered again or given up.",
    (
        TableColumn("group", "string", "", "consumer group"),
        TableColumn("sent_back", "int", "", "requests to deliver a message again (36)"),
        TableColumn("messages", "int", "", "messages that were sent back"),
        TableColumn("most_times", "int", "", "times that one message was sent back, at most"),
        TableColumn("refused", "int", "", "send-backs answered with an error code"),
        TableColumn("unanswered", "int", "", "send-backs without answer in the capture"),
        TableColumn("sent_again", "int", "", "messages that clients sent to %RETRY% themselves"),
        TableColumn("redelivered", "int", "", "messages delivered from %RETRY%"),
        TableColumn("dead_letters", "int", "", "messages sent to %DLQ% by clients, or read there"),
        TableColumn("first_time", "time", "", "time of the first of these"),
        TableColumn("last_time", "time", "", "time of the last"),
    ),
    order=("-sent_back", "-redelivered", "group"),
)
TABLES = (TOTALS, CAUSES, FLOWS, VERDICTS, MESSAGES, ATTEMPTS, CONSUMERS)


def limits_of(options: ReportOptions) -> Limits:
    """Return what the clients were set to, as far as it is said."""
    timeout = options.send_timeout_ms
    retries = options.retry_times
    return Limits(
        (DEFAULT_TIMEOUT_MS if timeout is None else timeout) * 1000,
        DEFAULT_RETRIES if retries is None else retries,
    )


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:
    """Return the tables."""
    limits = limits_of(options)
    produced, _, attempts = stitched(given, limits)
    attempts = attempts.persist()
    listed = attempts.where(
        (F.col("attempts") > 1) | F.col("final").isin(FAILED, MAYBE, STORED_UNTOLD)
    )
    return {
        TOTALS.name: _totals(produced, attempts),
        CAUSES.name: _causes(listed),
        FLOWS.name: _flows(listed),
        VERDICTS.name: _verdicts(listed),
        MESSAGES.name: listed.where("attempt = 1"),
        ATTEMPTS.name: listed,
        CONSUMERS.name: _consumers(given.exchanges),
    }


def _count(condition: Column | str) -> Column:
    chosen = F.expr(condition) if isinstance(condition, str) else condition
    return F.count(F.when(chosen, 1))


def _totals(produced: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return all sends, less the requests of the messages looked at, and these messages instead."""
    open_ended = (F.col("status") == "unanswered") & ~sends.failed_itself()
    every = produced.groupBy("topic", "group", F.col("host").alias("client"), "process").agg(
        F.count("*").alias("messages"), _count(open_ended).alias("unknown")
    )
    message = F.col("attempt") == 1
    looked_at = attempts.groupBy(*_TOTAL_KEYS).agg(
        F.sum(F.when(message, 1 - F.col("views"))).alias("messages"),
        F.sum(F.when(message, F.col("attempts") - F.col("views"))).alias("attempts"),
        _count(message & (F.col("attempts") > 1)).alias("retried"),
        *(
            _count(message & (F.col("final") == final)).alias(name)
            for name, final in (("failed", FAILED), ("maybe", MAYBE), ("untold", STORED_UNTOLD))
        ),
        (
            _count(message & (F.col("final") == UNKNOWN))
            - _count((F.col("outcome") == UNKNOWN) & ~F.col("inferred"))
        ).alias("unknown"),
        _count(message & (F.col("copies") > 1)).alias("duplicates"),
        F.sum(F.when(message & (F.col("copies") > 1), F.col("copies") - 1)).alias("copies"),
        F.sum(F.when(message, F.col("unsure"))).alias("unsure"),
        _count("after_budget").alias("over_budget"),
        _count("stale_queue").alias("stale_queue"),
    )
    names = [column.name for column in _SUMS]
    both = every.withColumn("attempts", F.col("messages")).unionByName(
        looked_at, allowMissingColumns=True
    )
    summed = both.groupBy(*_TOTAL_KEYS).agg(
        *(F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names)
    )
    return summed.withColumn("amplification", F.try_divide("attempts", "messages"))


def _causes(listed: DataFrame) -> DataFrame:
    failed = listed.where(F.col("outcome") != STORED)
    stored = F.when(F.col("final").isin(STORED, STORED_UNTOLD), F.col("unique_key"))
    return failed.groupBy("broker", "cause").agg(
        F.count("*").alias("attempts"),
        F.count_distinct("unique_key").alias("messages"),
        F.count("next_broker").alias("retried"),
        F.count_distinct(stored).alias("stored"),
        _count("inferred").alias("inferred"),
        F.count_distinct("topic").alias("topics"),
        F.count_distinct("client").alias("clients"),
        F.min("remark").alias("remark"),
        F.min("attempt_begin").alias("first_time"),
        F.max("attempt_begin").alias("last_time"),
    )


def _flows(listed: DataFrame) -> DataFrame:
    order = Window.partitionBy("client", "process", "unique_key").orderBy("attempt")
    followed = listed.withColumns(
        {
            name: F.lead(column).over(order)
            for name, column in (
                ("gap", "gap_us"),
                ("then", "outcome"),
                ("then_stale", "stale_queue"),
            )
        }
    ).where(F.col("next_broker").isNotNull())
    return followed.groupBy(
        F.col("broker").alias("from_broker"), F.col("next_broker").alias("to_broker"), "cause"
    ).agg(
        F.count("*").alias("retries"),
        F.percentile_approx("gap", 0.5, 1000).alias("gap_p50_us"),
        F.max("gap").alias("gap_max_us"),
        _count(F.col("then") == STORED).alias("stored"),
        _count("then_stale").alias("stale_queue"),
    )


def _verdicts(listed: DataFrame) -> DataFrame:
    last = listed.where(F.col("verdict").isNotNull() & F.col("next_broker").isNull())
    return last.groupBy("verdict", "cause", "version_name").agg(
        F.count("*").alias("messages"),
        F.sum("attempts").alias("attempts"),
        F.min("remark").alias("remark"),
        F.min("unique_key").alias("unique_key"),
    )


def _consumers(exchanges: DataFrame) -> DataFrame:
    code = F.col("request_code")
    topic = F.coalesce("topic", F.lit(""))
    back = code == SEND_BACK
    retry, dead = topic.contains(RETRY_TOPIC), topic.contains(DEAD_LETTERS)
    sent = code.isin(*sends.SEND_CODES)
    read = code.isin(*_PULLS) & (F.col("message_count") > 0)
    named = F.regexp_extract(topic, r"%(?:RETRY|DLQ)%(.+)$", 1)
    of_interest = exchanges.where(back | ((sent | read) & (retry | dead))).withColumn(
        "group", F.when(sent, named).otherwise(F.coalesce("group", named))
    )
    count = F.coalesce("message_count", F.lit(1))
    times = (
        of_interest.where(back)
        .groupBy("group", "unique_key")
        .agg(F.count("*").alias("times"))
        .groupBy("group")
        .agg(F.count("unique_key").alias("messages"), F.max("times").alias("most_times"))
    )
    wrong = (F.col("status") == "answered") & (F.col("response_code") != 0)
    summed = of_interest.groupBy("group").agg(
        _count(back).alias("sent_back"),
        _count(back & wrong).alias("refused"),
        _count(back & (F.col("status") == "unanswered")).alias("unanswered"),
        F.coalesce(F.sum(F.when(sent & retry, count)), F.lit(0)).alias("sent_again"),
        F.coalesce(F.sum(F.when(read & retry, count)), F.lit(0)).alias("redelivered"),
        F.coalesce(F.sum(F.when(dead, count)), F.lit(0)).alias("dead_letters"),
        F.min("request_time").alias("first_time"),
        F.max("request_time").alias("last_time"),
    )
    joined = summed.join(times, "group", "left")
    return joined.fillna(0, ["messages", "most_times"])


def _number(rows: Sequence[Mapping[str, object]], name: str) -> int:
    return sum(value for row in rows if isinstance(value := row.get(name), int))


def remarks(rows: Rows) -> list[str]:
    """Return what a reader must know first."""
    totals = rows.get(TOTALS.name, ())
    said = []
    if unknown := _number(totals, "unknown"):
        said.append(
            f"Of {unknown} messages the capture does not show what became of them; they are not"
            " counted as failed."
        )
    if copies := _number(totals, "copies"):
        said.append(f"{copies} copies too many were stored: consumers get these messages again.")
    if inferred := _number(rows.get(CAUSES.name, ()), "inferred"):
        said.append(
            f"{inferred} attempts are inferred from connects that failed while a message was sent."
        )
    if stale := _number(totals, "stale_queue"):
        said.append(
            f"{stale} attempts asked a broker for the queue of another one, as retries of"
            " asynchronous sends do."
        )
    return said


REPORT = Report(
    "retries",
    "Retries",
    "Which messages were sent more than once or in vain, why, and what became of them?",
    TABLES,
    build,
    (
        Chart(
            "flows",
            "Retries between brokers",
            FLOWS.name,
            {"start": "from_broker", "end": "to_broker", "value": "retries", "label": "cause"},
        ),
    ),
    remarks,
)
