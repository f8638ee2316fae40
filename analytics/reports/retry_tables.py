"""Tables of the retry report: columns, order, and display."""

from __future__ import annotations

from ..report import ReportTable, TableColumn
from ..sends.attempt_table import ATTEMPT_COLUMNS, MESSAGE_COLUMNS
from ..sends.unavailable import CONNECT_COLUMNS
from .latency_tables import WINDOW

TOTAL_KEYS = ("topic", "group", "client", "process")
SUMS: tuple[TableColumn, ...] = (
    TableColumn("messages", "int", "", "messages sent; a batch counts with all of its messages"),
    TableColumn("sends", "int", "", "messages sent alone, and batches"),
    TableColumn("attempts", "int", "", "send attempts, including inferred ones"),
    TableColumn("retried", "int", "", "messages with more than one attempt"),
    TableColumn("failed", "int", "", "messages not stored by any broker"),
    TableColumn("maybe", "int", "", "messages that failed for the client but may have been stored"),
    TableColumn("unconfirmed", "int", "", "messages stored although the client saw a failure"),
    TableColumn("unknown", "int", "", "messages whose outcome was not captured"),
    TableColumn("duplicates", "int", "", "messages stored more than once"),
    TableColumn("copies", "int", "", "times that these messages were stored beyond the first"),
    TableColumn(
        "unsure", "int", "", "attempts before a retry that may also have stored the message"
    ),
    TableColumn(
        "over_budget", "int", "", ("attempts that started after sendMsgTimeout; not for gRPC")
    ),
    TableColumn("stale_queue", "int", "", "attempts with a queue of another broker"),
)

TOTALS = ReportTable(
    "retry_totals",
    "Retries by client",
    "One row per producer process, group, and topic, most retries first.",
    (
        TableColumn("topic", "string", "", "message topic"),
        TableColumn("group", "string", "", "producer group; empty for gRPC"),
        TableColumn("client", "string", "", "client address without port"),
        TableColumn(
            "process", "string", "", "process ID in the UNIQ_KEYs; empty for other key formats"
        ),
        *SUMS,
        TableColumn("amplification", "float", "", "attempts / sends"),
    ),
    order=("-retried", "-failed", "-messages", *TOTAL_KEYS),
    brief=(
        "topic",
        "group",
        "client",
        "messages",
        "attempts",
        "amplification",
        "retried",
        "failed",
        "unconfirmed",
        "duplicates",
        "unsure",
        "maybe",
        "unknown",
        "over_budget",
    ),
)
CAUSES = ReportTable(
    "retry_causes",
    "Failure causes",
    "One row per broker and cause, most frequent first.",
    (
        TableColumn("broker", "string", "", "broker, or proxy for gRPC calls"),
        TableColumn("cause", "string", "", "error code name, or what happened"),
        TableColumn("attempts", "int", "", "attempts with this cause"),
        TableColumn("messages", "int", "", "messages of these attempts"),
        TableColumn("retried", "int", "", "attempts followed by a retry"),
        TableColumn("stored", "int", "", "messages eventually stored"),
        TableColumn("inferred", "int", "", "attempts inferred from a failed connection attempt"),
        TableColumn("topics", "int", "", "topics of these messages"),
        TableColumn("clients", "int", "", "client addresses"),
        TableColumn("remark", "string", "", "sample remark of a broker"),
        TableColumn("first_time", "time", "", "start of the first attempt"),
        TableColumn("last_time", "time", "", "start of the last attempt"),
    ),
    order=("-attempts", "broker", "cause"),
    brief=("broker", "cause", "attempts", "messages", "retried", "stored", "remark"),
)
CONNECTS = ReportTable(
    "failed_connects",
    "Failed connection attempts",
    (
        "One row per broker and client address. Send attempts inferred from these connection "
        "attempts are counted; the message is unknown for the others."
    ),
    (
        *CONNECT_COLUMNS,
        TableColumn("attempts", "int", "", "send attempts inferred from these connection attempts"),
    ),
    order=("-connects", "broker", "server_address", "client"),
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
        "no_response",
        "server_address",
    ),
)
FLOWS = ReportTable(
    "retry_flows",
    "Retry paths",
    (
        "One row per pair of brokers and cause: attempts on the second broker after a failure on "
        "the first."
    ),
    (
        TableColumn("from_broker", "string", "", "broker of the failed attempt"),
        TableColumn("to_broker", "string", "", "broker of the next attempt"),
        TableColumn("cause", "string", "", "cause of the first failure"),
        TableColumn("retries", "int", "", "number of exchanges"),
        TableColumn("gap_p50_us", "int", "µs", "median time between the starts of both attempts"),
        TableColumn("gap_max_us", "int", "µs", "longest time between the starts of both attempts"),
        TableColumn("stored", "int", "", "second attempts that were stored"),
        TableColumn("stale_queue", "int", "", "second attempts with a queue of the first broker"),
    ),
    order=("-retries", "from_broker", "to_broker", "cause"),
)
VERDICTS = ReportTable(
    "retry_verdicts",
    "Unnecessary or missing retries",
    "One row per verdict, cause, and client version, most frequent first.",
    (
        TableColumn("verdict", "string", "", "verdict on the retries"),
        TableColumn("cause", "string", "", "last error code name, or what happened"),
        TableColumn("version_name", "string", "", "client version"),
        TableColumn("messages", "int", "", "number of messages"),
        TableColumn("attempts", "int", "", "attempts of these messages"),
        TableColumn("remark", "string", "", "sample remark"),
        TableColumn("unique_key", "string", "", "sample message"),
    ),
    order=("-messages", "verdict", "cause", "version_name"),
)
MESSAGES = ReportTable(
    "retry_messages",
    "Retried or failed messages",
    "One row per message that was retried or not stored, by time.",
    (
        *MESSAGE_COLUMNS,
        TableColumn("capture", "string", "", "capture file of the first request"),
        TableColumn("request_packet", "int", "", "packet of the first request"),
    ),
    order=("begin", "unique_key", "topic", "client", "capture", "request_packet"),
    brief=("begin", "topic", "brokers", "causes", "final", "copies", "lasted_us", "unique_key"),
)
ATTEMPTS = ReportTable(
    "retry_attempts",
    "Attempts of retried messages",
    "One row per attempt, by message and attempt number.",
    (
        *(column for column in MESSAGE_COLUMNS if column.name in ("unique_key", "topic", "group")),
        TableColumn("client", "string", "", "client address without port"),
        TableColumn("process", "string", "", "process ID in the UNIQ_KEY"),
        *ATTEMPT_COLUMNS,
    ),
    order=("attempt_begin", "unique_key", "topic", "attempt", "capture", "request_packet"),
    brief=(
        "attempt_begin",
        "attempt",
        "broker",
        "queue_id",
        "cause",
        "gap_us",
        "request_packet",
        "capture",
        "unique_key",
        "remark",
    ),
    shown=10,
)
CONSUMERS = ReportTable(
    "consumer_retries",
    "Consumer retries",
    "One row per consumer group with returned, redelivered, or dead-lettered messages.",
    (
        TableColumn("group", "string", "", "consumer group"),
        TableColumn("sent_back", "int", "", "returns for redelivery (CONSUMER_SEND_MSG_BACK)"),
        TableColumn("messages", "int", "", "messages returned for redelivery"),
        TableColumn("most_times", "int", "", "maximum returns of one message"),
        TableColumn("refused", "int", "", "returns rejected with an error code"),
        TableColumn("unanswered", "int", "", "returns without a captured response"),
        TableColumn("sent_again", "int", "", "messages that clients sent to %RETRY% directly"),
        TableColumn("redelivered", "int", "", "messages delivered from %RETRY%"),
        TableColumn(
            "dead_letters",
            "int",
            "",
            "messages moved to %DLQ% after too many returns, or sent there by clients",
        ),
        TableColumn("dead_letters_read", "int", "", "messages delivered from %DLQ%"),
        TableColumn("first_time", "time", "", "first event"),
        TableColumn("last_time", "time", "", "last event"),
    ),
    order=("-sent_back", "-redelivered", "group"),
)
OVER_TIME = ReportTable(
    "retry_over_time",
    "Retries over time",
    "One row per window with attempts of producers, by the start of the attempt.",
    (
        *WINDOW,
        TableColumn("attempts", "int", "", "send attempts, including inferred ones"),
        TableColumn("retries", "int", "", "attempts that repeat an earlier one"),
        TableColumn("failed", "int", "", "attempts with a failure response"),
        TableColumn("unanswered", "int", "", "attempts without a captured response"),
        TableColumn("failed_share", "float", "share", "failed / attempts"),
        TableColumn("amplification", "float", "", "attempts / first attempts"),
    ),
    order=("window_start",),
    shown=0,
)
TABLES = (TOTALS, OVER_TIME, CAUSES, CONNECTS, FLOWS, VERDICTS, MESSAGES, ATTEMPTS, CONSUMERS)
