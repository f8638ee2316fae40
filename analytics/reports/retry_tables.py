"""Tables of the retry report: columns, order, and display."""

from __future__ import annotations

from ..report import ReportTable, TableColumn, column_names, table_columns
from ..sends.attempt_table import ATTEMPT_COLUMNS, MESSAGE_COLUMNS
from ..sends.unavailable import CONNECT_COLUMNS
from .latency_tables import WINDOW

TOTAL_KEYS = ("topic", "group", "client", "process")
SUMS = table_columns("""
    messages int: messages sent; a batch counts with all of its messages
    sends int: messages sent alone, and batches
    attempts int: send attempts, including inferred ones
    retried int: messages with more than one attempt
    failed int: messages not stored by any broker
    maybe int: messages that failed for the client but may have been stored
    unconfirmed int: messages stored although the client saw a failure
    unknown int: messages whose outcome was not captured
    duplicates int: messages stored more than once
    copies int: times that these messages were stored beyond the first
    unsure int: attempts before a retry that may also have stored the message
    over_budget int: attempts that started after sendMsgTimeout; not for gRPC
    stale_queue int: attempts with a queue of another broker
""")

TOTALS = ReportTable(
    "retry_totals",
    "Retries by client",
    "One row per producer process, group, and topic, most retries first.",
    (
        *table_columns("""
            topic string: message topic
            group string: producer group; empty for gRPC
            client string: client address without port
            process string: process ID in the UNIQ_KEYs; empty for other key formats
        """),
        *SUMS,
        TableColumn("amplification", "float", "", "attempts / sends"),
    ),
    order=("-retried", "-failed", "-messages", *TOTAL_KEYS),
    brief=column_names(
        "topic group client messages attempts amplification retried failed unconfirmed"
        " duplicates unsure maybe unknown over_budget"
    ),
)
CAUSES = ReportTable(
    "retry_causes",
    "Failure causes",
    "One row per broker and cause, most frequent first.",
    table_columns("""
        broker string: broker, or proxy for gRPC calls
        cause string: error code name, or what happened
        attempts int: attempts with this cause
        messages int: messages of these attempts
        retried int: attempts followed by a retry
        stored int: messages eventually stored
        inferred int: attempts inferred from a failed connection attempt
        topics int: topics of these messages
        clients int: client addresses
        remark string: sample remark of a broker
        first_time time: start of the first attempt
        last_time time: start of the last attempt
    """),
    order=("-attempts", "broker", "cause"),
    brief=("broker", "cause", "attempts", "messages", "retried", "stored", "remark"),
)
CONNECTS = ReportTable(
    "failed_connects",
    "Failed connection attempts",
    (
        "One row per broker and client address. The column attempts counts the send attempts "
        "inferred from these connection attempts; for the rest, the message is unknown."
    ),
    (
        *CONNECT_COLUMNS,
        TableColumn("attempts", "int", "", "send attempts inferred from these connection attempts"),
    ),
    order=("-connects", "broker", "server_address", "client"),
    brief=column_names(
        "broker client who connects attempts silent first_time last_time refused no_response"
        " server_address"
    ),
)
FLOWS = ReportTable(
    "retry_flows",
    "Retry paths",
    (
        "One row per pair of brokers and cause: attempts on the second broker after a failure on "
        "the first."
    ),
    table_columns("""
        from_broker string: broker of the failed attempt
        to_broker string: broker of the next attempt
        cause string: cause of the first failure
        retries int: number of retries on this path
        gap_p50_us int µs: median time between the starts of both attempts
        gap_max_us int µs: longest time between the starts of both attempts
        stored int: second attempts that were stored
        stale_queue int: second attempts with a queue of the first broker
    """),
    order=("-retries", "from_broker", "to_broker", "cause"),
)
VERDICTS = ReportTable(
    "retry_verdicts",
    "Unnecessary or missing retries",
    "One row per verdict, cause, and client version, most frequent first.",
    table_columns("""
        verdict string: verdict on the retries
        cause string: last error code name, or what happened
        version_name string: client version
        messages int: number of messages
        attempts int: attempts of these messages
        remark string: sample remark
        unique_key string: sample message
    """),
    order=("-messages", "verdict", "cause", "version_name"),
)
MESSAGES = ReportTable(
    "retry_messages",
    "Retried or failed messages",
    "One row per message that was retried or not stored, by time.",
    (
        *MESSAGE_COLUMNS,
        *table_columns("""
            capture string: capture file of the first request
            request_packet int: packet of the first request
        """),
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
        *table_columns("""
            client string: client address without port
            process string: process ID in the UNIQ_KEY
        """),
        *ATTEMPT_COLUMNS,
    ),
    order=("attempt_begin", "unique_key", "topic", "attempt", "capture", "request_packet"),
    brief=column_names(
        "attempt_begin attempt broker queue_id cause gap_us request_packet capture unique_key"
        " remark"
    ),
    shown=10,
)
CONSUMERS = ReportTable(
    "consumer_retries",
    "Consumer retries",
    "One row per consumer group with returned, redelivered, or dead-lettered messages.",
    table_columns("""
        group string: consumer group
        sent_back int: returns for redelivery (CONSUMER_SEND_MSG_BACK)
        messages int: messages returned for redelivery
        most_times int: maximum returns of one message
        refused int: returns rejected with an error code
        unanswered int: returns without a captured response
        sent_again int: messages that clients sent to %RETRY% directly
        redelivered int: messages delivered from %RETRY%
        dead_letters int: messages moved to %DLQ% after too many returns, or sent there by clients
        dead_letters_read int: messages delivered from %DLQ%
        first_time time: first event
        last_time time: last event
    """),
    order=("-sent_back", "-redelivered", "group"),
)
OVER_TIME = ReportTable(
    "retry_over_time",
    "Retries over time",
    "One row per window with attempts of producers, by the start of the attempt.",
    (
        *WINDOW,
        *table_columns("""
            attempts int: send attempts, including inferred ones
            retries int: attempts that repeat an earlier one
            failed int: attempts with a failure response
            unanswered int: attempts without a captured response
            failed_share float share: failed / attempts
            amplification float: attempts / first attempts
        """),
    ),
    order=("window_start",),
    shown=0,
)
TABLES = (TOTALS, OVER_TIME, CAUSES, CONNECTS, FLOWS, VERDICTS, MESSAGES, ATTEMPTS, CONSUMERS)
