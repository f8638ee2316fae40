"""Messages that were sent more than once, or in vain: attempts, causes, copies, what they cost.

Rules: a message is its UNIQ_KEY; attempts on any connection, broker or capture belong to it.
Consumers retry apart, by sending back. Counts are of what was seen; what the packets do not show is
`unknown` and is not counted as a failure. Only messages with more than one attempt or a failure are
looked at one by one; the others are counted. RocketMQ: DefaultMQProducerImpl, MQClientAPIImpl.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode

from ..report import Chart, Report, ReportInput, ReportOptions, ReportTable, Rows, TableColumn
from ..sends import sends
from ..sends.attempt_table import ATTEMPT_COLUMNS, MESSAGE_COLUMNS, STITCHED, stitched
from ..sends.attempts import STORED, UNKNOWN
from ..sends.broker_names import BROKER_NAMES
from ..sends.chains import FAILED, MAYBE, STORED_UNTOLD, Limits
from ..sends.hops import OWN, RELAYS
from ..sends.unavailable import (
    CONNECT_COLUMNS,
    UNAVAILABLE,
    about_connects,
    connects,
    failed_connects,
)
from ..spark.expressions import adding, grouped, numbers, texts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEFAULT_TIMEOUT_MS = 3000
DEFAULT_RETRIES = 2
SEND_BACK = int(RequestCode.CONSUMER_SEND_MSG_BACK)

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
        "untold",
        "duplicates",
        "unsure",
        "maybe",
        "unknown",
        "over_budget",
    ),
)
CAUSES = ReportTable(
    "retry_causes",
    "Why attempts that were seen failed",
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
    brief=("broker", "cause", "attempts", "messages", "retried", "stored", "remark"),
)
CONNECTS = ReportTable(
    "retry_connects",
    "Connects that failed",
    "A row a broker and client address; the attempts to send that are inferred from them are among"
    " the attempts, of the others no message is known.",
    (
        *CONNECT_COLUMNS,
        TableColumn("attempts", "int", "", "attempts to send that are inferred from them"),
    ),
    order=("-connects", "broker", "server", "client"),
    brief=(
        "broker",
        "client",
        "who",
        "connects",
        "attempts",
        "silent",
        "first_time",
        "last_time",
        "refused",
        "no_answer",
        "server",
    ),
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
        "gap_us",
        "capture",
        "request_packet",
        "unique_key",
        "remark",
    ),
    shown=10,
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
        TableColumn(
            "dead_letters",
            "int",
            "",
            "messages that went to %DLQ%: sent back more often than they may be, as far as the"
            " capture shows, or sent there by clients",
        ),
        TableColumn("dead_letters_read", "int", "", "messages delivered from %DLQ%"),
        TableColumn("first_time", "time", "", "time of the first of these"),
        TableColumn("last_time", "time", "", "time of the last"),
    ),
    order=("-sent_back", "-redelivered", "group"),
)
TABLES = (TOTALS, CAUSES, CONNECTS, FLOWS, VERDICTS, MESSAGES, ATTEMPTS, CONSUMERS)


def limits_of(options: ReportOptions) -> Limits:
    """Return what the clients were set to, as far as it is said."""
    timeout = options.send_timeout_ms
    retries = options.retry_times
    return Limits(
        (DEFAULT_TIMEOUT_MS if timeout is None else timeout) * 1000,
        DEFAULT_RETRIES if retries is None else retries,
        timeout is not None,
    )


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, DataFrame]:
    """Return the tables."""
    stitch = stitched(given, limits_of(options))
    attempts = stitch.attempts
    listed = attempts.where(f"attempts > 1 or final in {texts((FAILED, MAYBE, STORED_UNTOLD))}")
    failed = failed_connects(given)
    seen = {} if failed is None else {CONNECTS.name: _connects(failed, attempts)}
    return {
        **seen,
        TOTALS.name: given.kept.frame(_totals(stitch.sends, stitch.telling, attempts)),
        CAUSES.name: _causes(listed),
        FLOWS.name: _flows(listed),
        VERDICTS.name: _verdicts(listed),
        MESSAGES.name: listed.where("attempt = 1"),
        ATTEMPTS.name: listed,
        CONSUMERS.name: given.kept.frame(_consumers(given.exchanges)),
    }


def _totals(produced: DataFrame, telling: DataFrame, attempts: DataFrame) -> DataFrame:
    """Return what all sends count, less those looked at, and what these come to instead."""
    names = [column.name for column in _SUMS]
    counted = {
        "messages": "count(*)",
        "attempts": "count(*)",
        "unknown": "count_if(status = 'unanswered')",
    }
    less = {name: f"-{sql}" for name, sql in counted.items()}
    hosts = ("topic", "group", "host", "process")
    placed = adding(produced, {"host": sends.HOST, "process": sends.PROCESS})
    raw = grouped(placed, hosts, counted).unionByName(grouped(telling, hosts, less))
    every = adding(
        raw.withColumnRenamed("process", "digits").withColumnRenamed("host", "client"),
        {"process": sends.process_name("digits")},
    ).drop("digits")
    one = "attempt = 1 and "
    looked_at = {
        "messages": "count_if(attempt = 1)",
        "attempts": "count(*)",
        "retried": f"count_if({one}attempts > 1)",
        "failed": f"count_if({one}final = '{FAILED}')",
        "maybe": f"count_if({one}final = '{MAYBE}')",
        "untold": f"count_if({one}final = '{STORED_UNTOLD}')",
        "unknown": f"count_if({one}final = '{UNKNOWN}')",
        "duplicates": f"count_if({one}copies > 1)",
        "copies": f"sum(if({one}copies > 1, copies - 1, 0))",
        "unsure": "sum(if(attempt = 1, unsure, 0))",
        "over_budget": "count_if(after_budget)",
        "stale_queue": "count_if(stale_queue)",
    }
    both = every.unionByName(grouped(attempts, _TOTAL_KEYS, looked_at), allowMissingColumns=True)
    summed = grouped(both, _TOTAL_KEYS, {name: f"coalesce(sum({name}), 0)" for name in names})
    return adding(summed, {"amplification": "try_divide(attempts, messages)"})


def _causes(listed: DataFrame) -> DataFrame:
    stored = texts((STORED, STORED_UNTOLD))
    return grouped(
        listed.where(f"outcome != '{STORED}'"),
        ("broker", "cause"),
        {
            "attempts": "count(*)",
            "messages": "count(distinct unique_key)",
            "retried": "count(next_broker)",
            "stored": f"count(distinct if(final in {stored}, unique_key, null))",
            "inferred": "count_if(inferred)",
            "topics": "count(distinct topic)",
            "clients": "count(distinct client)",
            "remark": "min(remark)",
            "first_time": "min(attempt_begin)",
            "last_time": "max(attempt_begin)",
        },
    )


def _connects(failed: DataFrame, attempts: DataFrame) -> DataFrame:
    tied = grouped(
        attempts.where("inferred").withColumnRenamed("responder", "server"),
        ("server", "client"),
        {"attempts": "count(*)"},
    )
    joined = connects(failed).join(F.broadcast(tied), ["server", "client"], "left")
    return adding(
        joined.withColumnRenamed("attempts", "_tied"), {"attempts": "coalesce(_tied, 0L)"}
    )


def _flows(listed: DataFrame) -> DataFrame:
    following = "over (partition by client, process, unique_key order by attempt)"
    pairs = adding(
        listed,
        {
            "gap": f"lead(gap_us) {following}",
            "then": f"lead(outcome) {following}",
            "then_stale": f"lead(stale_queue) {following}",
        },
    )
    named = adding(pairs, {"from_broker": "broker", "to_broker": "next_broker"})
    return grouped(
        named.where("next_broker is not null"),
        ("from_broker", "to_broker", "cause"),
        {
            "retries": "count(*)",
            "gap_p50_us": "percentile_approx(gap, 0.5, 1000)",
            "gap_max_us": "max(gap)",
            "stored": f"count_if(`then` = '{STORED}')",
            "stale_queue": "count_if(then_stale)",
        },
    )


def _verdicts(listed: DataFrame) -> DataFrame:
    return grouped(
        listed.where("verdict is not null and next_broker is null"),
        ("verdict", "cause", "version_name"),
        {
            "messages": "count(*)",
            "attempts": "sum(attempts)",
            "remark": "min(remark)",
            "unique_key": "min(unique_key)",
        },
    )


_GIVEN_UP = (
    "if(coalesce(bool_or(back and response_code = 0 and max_reconsume_times = 0)"
    " or count_if(back and response_code = 0) > max(if(back, max_reconsume_times, null)), false)"
    " and max(returned) is not null, 1L, 0L)"
)
"""SQL: the broker put a message that was sent back into %DLQ%, which its answer does not say: it
does when the message was delivered again as often as it may be. Times before the capture are not
known, so there may be more."""


def _consumers(exchanges: DataFrame) -> DataFrame:
    code = "coalesce(request_code, -1)"
    back = f"{code} = {SEND_BACK}"
    sent = f"{code} in {numbers(SENDS)}"
    read = f"{code} in {numbers(FETCHES)} and coalesce(message_count, 0) > 0"
    named = "regexp_extract(topic, '%(?:RETRY|DLQ)%(.+)$', 1)"
    rows = adding(
        exchanges.where(f"{back} or (({sent} or {read}) and {sends.OF_CONSUMERS})"),
        {
            "of_group": f"if({sent}, {named}, coalesce(`group`, {named}))",
            "back": back,
            "sent": sent,
            "dead": "coalesce(contains(topic, '%DLQ%'), false)",
            "count": "coalesce(message_count, 1)",
        },
    ).drop("group")
    rows = rows.withColumnRenamed("of_group", "group")
    each = grouped(
        adding(rows, {"returned": "if(back, unique_key, null)"}),
        ("group", "back", "returned"),
        {
            "times": "count(*)",
            "refused": "count_if(back and response_code != 0)",
            "unanswered": "count_if(back and status = 'unanswered')",
            "sent_again": "sum(if(sent and not dead, count, 0))",
            "redelivered": "sum(if(not back and not sent and not dead, count, 0))",
            "dead_letters": "sum(if(sent and dead, count, 0))",
            "dead_letters_read": "sum(if(not back and not sent and dead, count, 0))",
            "_given_up": _GIVEN_UP,
            "first_time": "min(request_time)",
            "last_time": "max(request_time)",
        },
    )
    sums = ("refused", "unanswered", "sent_again", "redelivered", "dead_letters_read")
    return grouped(
        each,
        ("group",),
        {
            "sent_back": "sum(if(back, times, 0L))",
            "messages": "count_if(back and returned is not null)",
            "most_times": "coalesce(max(if(back, times, null)), 0L)",
            **{name: f"sum({name})" for name in sums},
            "dead_letters": "sum(dead_letters + _given_up)",
            "first_time": "min(first_time)",
            "last_time": "max(last_time)",
        },
    )


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
    if untold := _number(totals, "untold"):
        said.append(
            f"{untold} messages were stored although the client took them for failures: no answer"
            " in time, by the timeout as given, as learnt, or the default of 3 s (--send-timeout)."
        )
    said += about_connects(rows.get(CONNECTS.name, ()))
    if copies := _number(totals, "copies"):
        said.append(f"{copies} copies too many were stored: consumers get these messages again.")
    if unsure := _number(totals, "unsure"):
        said.append(
            f"{unsure} attempts without an answer came before a retry: each may have stored one"
            " more copy, which is not among the duplicates."
        )
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
    (STITCHED, BROKER_NAMES, UNAVAILABLE, RELAYS, OWN),
)
