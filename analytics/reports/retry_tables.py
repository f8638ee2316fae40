"""The tables of the retry report: what their columns mean, how they are sorted and shown."""

from __future__ import annotations

from ..report import ReportTable, TableColumn
from ..sends.attempt_table import ATTEMPT_COLUMNS, MESSAGE_COLUMNS
from ..sends.unavailable import CONNECT_COLUMNS

TOTAL_KEYS = ("topic", "group", "client", "process")
SUMS: tuple[TableColumn, ...] = (
    TableColumn("messages", "int", "", "messages that were sent"),
    TableColumn("attempts", "int", "", "attempts to send them, with the inferred ones"),
    TableColumn("retried", "int", "", "messages with more than one attempt"),
    TableColumn("failed", "int", "", "messages that no broker stored"),
    TableColumn("maybe", "int", "", "messages that failed for the client, yet may be stored"),
    TableColumn("untold", "int", "", "messages stored although the client saw a failure"),
    TableColumn("unknown", "int", "", "messages of which the capture does not show the outcome"),
    TableColumn("duplicates", "int", "", "messages stored more than once"),
    TableColumn("copies", "int", "", "copies too many"),
    TableColumn("unsure", "int", "", "attempts before a retry that may have stored a copy too"),
    TableColumn("over_budget", "int", "", "attempts that began after sendMsgTimeout; none by gRPC"),
    TableColumn("stale_queue", "int", "", "attempts with another broker's queue"),
)

TOTALS = ReportTable(
    "retry_totals",
    "Retries by topic, group and client",
    "One row per producing process, group and topic, the one with the most retries first.",
    (
        TableColumn("topic", "string", "", "topic of the messages"),
        TableColumn("group", "string", "", "producer group; by gRPC there is none"),
        TableColumn("client", "string", "", "address of the client, without port"),
        TableColumn(
            "process", "string", "", "process that made the UNIQ_KEYs; absent: no key of this form"
        ),
        *SUMS,
        TableColumn("amplification", "float", "", "attempts / messages"),
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
    "One row per broker and cause, the most frequent first.",
    (
        TableColumn("broker", "string", "", "broker of the attempts; of calls the proxy"),
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
    "One row per broker and client address; the attempts to send that are inferred from them are"
    " among the attempts, of the others no message is known.",
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
    "One row per verdict, cause and client version, the most frequent first.",
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
    "One row per message that was tried more than once or was not stored, by time.",
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
    "One row per attempt, by message and number.",
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
        "request_packet",
        "capture",
        "unique_key",
        "remark",
    ),
    shown=10,
)
CONSUMERS = ReportTable(
    "consumer_retries",
    "Consumers' retries",
    "One row per consumer group whose messages were sent back, delivered again or given up.",
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
