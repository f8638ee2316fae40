"""Messages that were sent more than once or failed: attempts, causes, copies, what they cost.

Rules: a message is its UNIQ_KEY and topic; attempts on any connection, broker or capture belong to
it. By gRPC a call is an attempt, and what the proxy sends to a broker for it is none.
Consumers retry apart, by sending back. Counts are of what was seen; what the packets do not show is
`unknown` and is not counted as a failure. Only messages with more than one attempt or a failure are
looked at one by one; the others are counted. RocketMQ: DefaultMQProducerImpl, MQClientAPIImpl.
"""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.topic_names import DLQ_PREFIX

from ..report import Chart, Report, ReportInput, ReportOptions, Rows, sum_of
from ..sends import sends
from ..sends.attempts import STORED, UNKNOWN
from ..sends.broker_names import BROKER_NAMES
from ..sends.chains import FAILED, MAYBE, STORED_UNTOLD, Limits
from ..sends.hops import RELAYS
from ..sends.stitched import STITCHED, stitched
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import (
    UNAVAILABLE,
    about_connects,
    connects,
    failed_connects,
)
from ..sql.expressions import numbers, text, texts
from ..sql.percentiles import percentiles, with_bucket
from ..sql.relation import Relation
from .retry_tables import (
    ATTEMPTS,
    CAUSES,
    CONNECTS,
    CONSUMERS,
    FLOWS,
    MESSAGES,
    SUMS,
    TABLES,
    TOTAL_KEYS,
    TOTALS,
    VERDICTS,
)

DEFAULT_TIMEOUT_MS = 3000
DEFAULT_RETRIES = 2
SEND_BACK = int(RequestCode.CONSUMER_SEND_MSG_BACK)


def limits_of(options: ReportOptions) -> Limits:
    """Return what the clients were set to, as far as it is said."""
    timeout = options.send_timeout_ms
    retries = options.retry_times
    return Limits(
        (DEFAULT_TIMEOUT_MS if timeout is None else timeout) * 1000,
        DEFAULT_RETRIES if retries is None else retries,
        timeout is not None,
    )


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    stitch = stitched(given, limits_of(options))
    attempts = stitch.attempts
    listed = attempts.where(
        f"attempts > 1 or final in {texts((FAILED, MAYBE, STORED_UNTOLD))}"
        f" or (unique_key is null and final != '{STORED}')"
    )
    failed = failed_connects(given)
    seen = {} if failed is None else {CONNECTS.name: connects_of(given, failed, options)}
    return {
        **seen,
        TOTALS.name: given.kept.frame(_totals(stitch.counts, stitch.telling, attempts)),
        CAUSES.name: _causes(listed),
        FLOWS.name: _flows(listed),
        VERDICTS.name: _verdicts(listed),
        MESSAGES.name: listed.where("attempt = 1"),
        ATTEMPTS.name: listed,
        CONSUMERS.name: given.kept.frame(_consumers(given.exchanges)),
    }


def _totals(counts: Relation, telling: Relation, attempts: Relation) -> Relation:
    """Return what all sends count, less those looked at, and what these come to instead."""
    names = [column.name for column in SUMS]
    counted = {
        "messages": "sum(messages)",
        "sends": "sum(times)",
        "attempts": "sum(times)",
        "unknown": "sum(if(outcome_class = 'unanswered', messages, 0L))",
    }
    hosts = ("topic", "group", "host", "process")
    less = telling.select(*hosts, "outcome_class", "-1L as times", f"-{sends.MESSAGES} as messages")
    sent = counts.select(*hosts, "outcome_class", "times", "messages").union(less)
    raw = sent.grouped(hosts, counted).renamed({"host": "client"})
    every = raw.adding({"process": sends.process_name("process")})

    def messages_of(which: str) -> str:
        return f"sum(if(attempt = 1 and {which}, messages, 0L))"

    looked_at = {
        "messages": messages_of("true"),
        "sends": "count_if(attempt = 1)",
        "attempts": "count(*)",
        "retried": messages_of("attempts > 1"),
        "failed": messages_of(f"final = '{FAILED}'"),
        "maybe": messages_of(f"final = '{MAYBE}'"),
        "untold": messages_of(f"final = '{STORED_UNTOLD}'"),
        "unknown": messages_of(f"final = '{UNKNOWN}'"),
        "duplicates": messages_of("copies > 1"),
        "copies": "sum(if(attempt = 1 and copies > 1, messages * (copies - 1), 0L))",
        "unsure": "sum(if(attempt = 1, unsure, 0))",
        "over_budget": "count_if(after_budget)",
        "stale_queue": "count_if(stale_queue)",
    }
    whole = every.adding(dict.fromkeys(looked_at.keys() - counted.keys(), "0L"))
    both = whole.union(attempts.grouped(TOTAL_KEYS, looked_at))
    summed = both.grouped(TOTAL_KEYS, {name: f"coalesce(sum({name}), 0)" for name in names})
    return summed.adding({"amplification": "try_divide(attempts, sends)"})


def _causes(listed: Relation) -> Relation:
    # An attempt without UNIQ_KEY is the only one of its message.
    message = "if(unique_key is null, xxhash64(requester, responder, attempt_begin), 0L) as alone"
    failed = listed.where(f"outcome != '{STORED}'").select("*", message)
    each = failed.grouped(
        ("broker", "cause", "client", "topic", "unique_key", "alone"),
        {
            "attempts": "count(*)",
            "messages": "max(messages)",
            "retried": "count(next_broker)",
            "final": "max(final)",
            "inferred": "count_if(inferred)",
            "remark": "min(remark)",
            "first_time": "min(attempt_begin)",
            "last_time": "max(attempt_begin)",
        },
    )
    return each.grouped(
        ("broker", "cause"),
        {
            "attempts": "sum(attempts)",
            "messages": "sum(messages)",
            "retried": "sum(retried)",
            "stored": f"sum(if(final in {texts((STORED, STORED_UNTOLD))}, messages, 0L))",
            "inferred": "sum(inferred)",
            "topics": "count(distinct topic)",
            "clients": "count(distinct client)",
            "remark": "min(remark)",
            "first_time": "min(first_time)",
            "last_time": "max(last_time)",
        },
    )


def connects_of(given: ReportInput, failed: Relation, options: ReportOptions) -> Relation:
    """Return the table `CONNECTS`."""
    if given.kept.is_empty(failed):
        return given.kept.empty(CONNECTS.columns)
    attempts = stitched(given, limits_of(options)).attempts
    inferred = attempts.where("inferred").select("responder as server", "client")
    tied = inferred.grouped(("server", "client"), {"attempts": "count(*)"})
    joined = connects(given, failed).join(tied, ["server", "client"], "left", small=True)
    return joined.adding({"attempts": "coalesce(attempts, 0L)"})


def _flows(listed: Relation) -> Relation:
    following = "over (partition by client, process, topic, unique_key order by attempt)"
    pairs = listed.select(
        "broker as from_broker",
        "next_broker as to_broker",
        "cause",
        f"lead(gap_us) {following} as gap",
        f"lead(outcome) {following} as following",
        f"lead(stale_queue) {following} as following_stale",
    )
    retried = with_bucket(pairs.where("to_broker is not null"), "gap")
    keys = ("from_broker", "to_broker", "cause")
    cells = retried.grouped(
        (*keys, "bucket"),
        {
            "retries": "count(*)",
            "values": "count(gap)",
            "total_us": "sum(cast(gap as double))",
            "smallest_us": "min(gap)",
            "largest_us": "max(gap)",
            "stored": f"count_if(following = '{STORED}')",
            "stale_queue": "count_if(following_stale)",
        },
    )
    found = percentiles(cells, keys, ("retries", "stored", "stale_queue"))
    return found.renamed({"p50_us": "gap_p50_us", "max_us": "gap_max_us"})


def _verdicts(listed: Relation) -> Relation:
    return listed.where("verdict is not null and next_broker is null").grouped(
        ("verdict", "cause", "version_name"),
        {
            "messages": "sum(messages)",
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


def _consumers(exchanges: Relation) -> Relation:
    code = "coalesce(request_code, -1)"
    back = f"{code} = {SEND_BACK}"
    sent = f"{code} in {numbers(SENDS)}"
    read = f"{code} in {numbers(FETCHES)} and coalesce(message_count, 0) > 0"
    named = "regexp_extract(topic, '%(?:RETRY|DLQ)%(.+)$', 1)"
    chosen = exchanges.where(f"{back} or (({sent} or {read}) and {sends.OF_CONSUMERS})")
    rows = chosen.adding(
        {
            "group": f"if({sent}, {named}, coalesce(`group`, {named}))",
            "back": back,
            "sent": sent,
            "dead": f"coalesce(contains(topic, {text(DLQ_PREFIX)}), false)",
            "count": "coalesce(message_count, 1)",
        }
    )
    each = rows.adding({"returned": "if(back, unique_key, null)"}).grouped(
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
    return each.grouped(
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


def remarks(rows: Rows) -> list[str]:
    """Return what a reader must know first."""
    totals = rows.get(TOTALS.name, ())
    said = []
    if unknown := sum_of(totals, "unknown"):
        said.append(
            f"Of {unknown} messages the capture does not show what became of them; they are not"
            " counted as failed."
        )
    if untold := sum_of(totals, "untold"):
        said.append(
            f"{untold} messages were stored although the client took them for failures: no answer"
            " in time, by the timeout as given, as learnt, or the default of 3 s (--send-timeout);"
            " by gRPC also an error in its place."
        )
    said += about_connects(rows.get(CONNECTS.name, ()))
    if copies := sum_of(totals, "copies"):
        said.append(f"{copies} copies too many were stored: consumers get these messages again.")
    if unsure := sum_of(totals, "unsure"):
        said.append(
            f"{unsure} attempts without an answer, or with an error that does not rule it out, came"
            " before a retry: each may have stored one more copy, which is not among the"
            " duplicates."
        )
    if inferred := sum_of(rows.get(CAUSES.name, ()), "inferred"):
        said.append(
            f"{inferred} attempts are inferred from connects that failed while a message was sent."
        )
    if stale := sum_of(totals, "stale_queue"):
        said.append(
            f"{stale} attempts asked a broker for the queue of another one, as retries of"
            " asynchronous sends do."
        )
    return said


REPORT = Report(
    "retries",
    "Retries",
    "Which messages were retried or failed, why, and what happened to them?",
    TABLES,
    build,
    (
        Chart(
            "flows",
            "Retry paths between brokers",
            FLOWS.name,
            {"start": "from_broker", "end": "to_broker", "value": "retries", "label": "cause"},
        ),
    ),
    remarks,
    (STITCHED, BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS),
)
