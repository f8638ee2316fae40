"""Messages with several attempts or failures: attempts, causes, duplicates, and cost.

A message is its UNIQ_KEY and topic. Only messages with several attempts or a failure are analyzed
individually (`sends.stitched`); the others are counted. Redeliveries requested by consumers are
separate.

RocketMQ: DefaultMQProducerImpl, MQClientAPIImpl.
"""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.quantities import counted
from dissectors.remoting.code_sets import FETCHES, SENDS
from dissectors.remoting.codes import RequestCode
from dissectors.remoting.row_facts.names import GROUP, RECONSUME_LIMIT, RECONSUMED
from dissectors.remoting.topic_names import DLQ_PREFIX
from dissectors.rows.outcome import FAILED as REFUSED

from ..report import Chart, Report, ReportInput, ReportOptions, Rows, sum_of
from ..sends import sends
from ..sends.attempts import STORED, STORED_UNCONFIRMED, UNKNOWN
from ..sends.broker_names import BROKER_NAMES
from ..sends.chains import FAILED, MAYBE, Limits
from ..sends.hops import RELAYS
from ..sends.stitched import STITCHED, Stitched, stitched
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
from ..sql.windows import span_of, window_of, with_window
from .latency_tables import over_time
from .retry_tables import (
    ATTEMPTS,
    CAUSES,
    CONNECTS,
    CONSUMERS,
    FLOWS,
    MESSAGES,
    OVER_TIME,
    SUMS,
    TABLES,
    TOTAL_KEYS,
    TOTALS,
    VERDICTS,
)

DEFAULT_TIMEOUT_MS = 3000
DEFAULT_RETRIES = 2
SEND_BACK = int(RequestCode.CONSUMER_SEND_MSG_BACK)


def _first(column: str) -> str:
    """Return SQL for a struct with the sample that an attempt has first: not one by its name."""
    fields = f"'begin', attempt_begin, 'packet', request_packet, '{column}', {column}"
    return f"min(if({column} is null, null, named_struct({fields})))"


_FIRST_REMARK = _first("remark")


def limits_of(options: ReportOptions) -> Limits:
    """Return the configured limits of the clients, as far as given."""
    timeout = options.send_timeout_ms
    retries = options.retry_times
    return Limits(
        (DEFAULT_TIMEOUT_MS if timeout is None else timeout) * 1000,
        DEFAULT_RETRIES if retries is None else retries,
        timeout is not None,
    )


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    stitch = stitched(report_input, limits_of(options))
    attempts = stitch.attempts
    listed = attempts.where(
        f"attempts > 1 or final in {texts((FAILED, MAYBE, STORED_UNCONFIRMED))}"
        f" or (unique_key is null and final != '{STORED}')"
    )
    failed = failed_connects(report_input)
    seen = {} if failed is None else {CONNECTS.name: connects_of(report_input, failed, options)}
    return {
        **seen,
        TOTALS.name: report_input.kept.frame(_totals(stitch.counts, stitch.telling, attempts)),
        OVER_TIME.name: _over_time(report_input, stitch, options.window_us),
        CAUSES.name: _causes(listed),
        FLOWS.name: _flows(listed),
        VERDICTS.name: _verdicts(listed),
        MESSAGES.name: listed.where("attempt = 1"),
        ATTEMPTS.name: listed,
        CONSUMERS.name: report_input.kept.frame(_consumers(report_input.exchanges)),
    }


def _totals(counts: Relation, telling: Relation, attempts: Relation) -> Relation:
    """Return the totals of all sends, with the analyzed ones replaced by their results."""
    names = [column.name for column in SUMS]
    counted = {
        "messages": "sum(messages)",
        "sends": "sum(times)",
        "attempts": "sum(times)",
        "unknown": "sum(if(outcome_class = 'unanswered', messages, 0L))",
    }
    hosts = ("topic", "group", "host", "process")
    # sends that were analyzed are taken out of the counts, and their results are added
    less = telling.select(*hosts, "outcome_class", "-1L as times", f"-{sends.MESSAGES} as messages")
    sent = counts.select(*hosts, "outcome_class", "times", "messages").union(less)
    raw = sent.grouped(hosts, counted).renamed({"host": "client"})
    all_sends = raw.adding({"process": sends.process_name("process")})

    def messages_of(which: str) -> str:
        return f"sum(if(attempt = 1 and {which}, messages, 0L))"

    looked_at = {
        "messages": messages_of("true"),
        "sends": "count_if(attempt = 1)",
        "attempts": "count(*)",
        "retried": messages_of("attempts > 1"),
        "failed": messages_of(f"final = '{FAILED}'"),
        "maybe": messages_of(f"final = '{MAYBE}'"),
        "unconfirmed": messages_of(f"final = '{STORED_UNCONFIRMED}'"),
        "unknown": messages_of(f"final = '{UNKNOWN}'"),
        "duplicates": messages_of("copies > 1"),
        "copies": "sum(if(attempt = 1 and copies > 1, messages * (copies - 1), 0L))",
        "unsure": "sum(if(attempt = 1, unsure, 0))",
        "over_budget": "count_if(after_budget)",
        "stale_queue": "count_if(stale_queue)",
    }
    whole = all_sends.adding(dict.fromkeys(looked_at.keys() - counted.keys(), "0L"))
    combined = whole.union(attempts.grouped(TOTAL_KEYS, looked_at))
    summed = combined.grouped(TOTAL_KEYS, {name: f"coalesce(sum({name}), 0)" for name in names})
    return summed.adding({"amplification": "try_divide(attempts, sends)"})


def _over_time(report_input: ReportInput, stitch: Stitched, length_us: int | None) -> Relation:
    """Return the attempts of each window; a first attempt is not a retry."""
    if length_us is None:
        engine, ends = report_input.kept.engine, ("min(first)", "max(last)")
        length_us = window_of(span_of(engine, stitch.counts, ends, stitch.sends, "request_time"))
    sent = stitch.sends.select(
        "request_time as time",
        "0L as retried",
        f"if(outcome_class = '{REFUSED}', 1L, 0L) as refused",
        "if(status = 'unanswered', 1L, 0L) as open",
        "1L as sent",
    )
    # a request is one of the sends already, so an attempt with one counts as a retry only
    repeated = stitch.attempts.where("attempt > 1 or inferred").select(
        "attempt_begin as time",
        "if(attempt > 1, 1L, 0L) as retried",
        *("0L as refused", "0L as open", "if(inferred, 1L, 0L) as sent"),
    )
    windows = with_window(sent.union(repeated), "time", length_us).grouped(
        ("window_start", "window_us"),
        {
            "attempts": "sum(sent)",
            "retries": "sum(retried)",
            "failed": "sum(refused)",
            "unanswered": "sum(open)",
        },
    )
    return windows.adding(
        {
            "failed_share": "try_divide(failed, attempts)",
            "amplification": "try_divide(attempts, attempts - retries)",
        }
    )


def _causes(listed: Relation) -> Relation:
    # An attempt without UNIQ_KEY is the only one of its message.
    place = "xxhash64(client_address, server_address, attempt_begin)"
    message = f"if(unique_key is null, {place}, 0L) as alone"
    failed = listed.where(f"outcome != '{STORED}'").select("*", message)
    # first by message: all its attempts have its number of messages, which counts once
    each = failed.grouped(
        ("broker", "cause", "client", "topic", "unique_key", "alone"),
        {
            "attempts": "count(*)",
            "messages": "max(messages)",
            "retried": "count(next_broker)",
            "final": "max(final)",
            "inferred": "count_if(inferred)",
            "remark": _FIRST_REMARK,
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
            "stored": f"sum(if(final in {texts((STORED, STORED_UNCONFIRMED))}, messages, 0L))",
            "inferred": "sum(inferred)",
            "topics": "count(distinct topic)",
            "clients": "count(distinct client)",
            "remark": "min(remark).remark",
            "first_time": "min(first_time)",
            "last_time": "max(last_time)",
        },
    )


def connects_of(report_input: ReportInput, failed: Relation, options: ReportOptions) -> Relation:
    """Return the table `CONNECTS`."""
    if report_input.kept.is_empty(failed):
        return report_input.kept.empty(CONNECTS.columns)
    attempts = stitched(report_input, limits_of(options)).attempts
    inferred = attempts.where("inferred").select("server_address", "client")
    tied = inferred.grouped(("server_address", "client"), {"attempts": "count(*)"})
    joined = connects(report_input, failed).join(
        tied, ["server_address", "client"], "left", small=True
    )
    return joined.adding({"attempts": "coalesce(attempts, 0L)"})


def _flows(listed: Relation) -> Relation:
    # Messages without a key share a partition, but their attempts have no `next_broker`.
    following = "over (partition by client, process, topic, unique_key order by attempt)"
    pairs = listed.select(
        "broker as from_broker",
        "next_broker as to_broker",
        "cause",
        # the row of an attempt has the gap before it, a flow the one after it
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
    flows = percentiles(cells, keys, ("retries", "stored", "stale_queue"))
    return flows.renamed({"p50_us": "gap_p50_us", "max_us": "gap_max_us"})


def _verdicts(listed: Relation) -> Relation:
    return listed.where("verdict is not null and next_broker is null").grouped(
        ("verdict", "cause", "version_name"),
        {
            "messages": "sum(messages)",
            "attempts": "sum(attempts)",
            "remark": f"{_FIRST_REMARK}.remark",
            "unique_key": f"{_first('unique_key')}.unique_key",
        },
    )


_MOVED_TO_DLQ = (
    "if(coalesce(bool_or(back and response_code = 0 and max_reconsume_times = 0)"
    " or count_if(back and response_code = 0) > max(if(back, max_reconsume_times, null)), false)"
    " and max(returned) is not null, 1L, 0L)"
)
"""SQL: the broker moved a returned message into %DLQ%, which its response does not show: it does so
once the message was redelivered up to the limit. Redeliveries before the capture are unknown, so
there may be more.
"""


_BEGIN = text("\x01")


def _fact(name: str, value: str) -> str:
    """Return SQL for the value of a fact, which matches a regular expression, or an empty text."""
    pattern = text(f"\x01{name}=({value})(?:\x01|$)")
    # Spark generates no code for a query that filters the list.
    return f"regexp_extract({_BEGIN} || coalesce(array_join(facts, {_BEGIN}), ''), {pattern}, 1)"


_MADE = f"try_cast({_fact(RECONSUMED, '[0-9]+')} as long)"
_MOST = f"try_cast({_fact(RECONSUME_LIMIT, '[0-9]+')} as long)"
"""SQL: redeliveries of a message that its consumer sends to %RETRY%, and their limit."""


def _consumers(exchanges: Relation) -> Relation:
    code = "coalesce(request_code, -1)"
    back = f"{code} = {SEND_BACK}"
    sent = f"{code} in {numbers(SENDS)}"
    read = f"{code} in {numbers(FETCHES)} and coalesce(message_count, 0) > 0"
    named = "regexp_extract(topic, '%(?:RETRY|DLQ)%(.+)$', 1)"
    lock = f"{code} = {RequestCode.LOCK_BATCH_MQ}"
    chosen = exchanges.where(f"{back} or {lock} or (({sent} or {read}) and {sends.OF_CONSUMERS})")
    rows = chosen.adding(
        {
            "group": (
                f"if({lock}, {_fact(GROUP, '.+?')},"
                f" if({sent}, {named}, coalesce(`group`, {named})))"
            ),
            "back": back,
            "lock": lock,
            "sent": sent,
            "stored": f"{sent} and response_code = 0",
            "made": f"if({sent}, {_MADE}, null)",
            "most": f"if({sent}, {_MOST}, null)",
            "read": read,
            "dead": f"coalesce(contains(topic, {text(DLQ_PREFIX)}), false)",
            "count": "coalesce(message_count, 1)",
        }
    )
    # first by message, because only its returns together show whether it went to the DLQ
    each = rows.adding({"returned": "if(back, unique_key, null)"}).grouped(
        ("group", "back", "returned"),
        {
            "times": "count(*)",
            "refused": "count_if(back and response_code != 0)",
            "unanswered": "count_if(back and status = 'unanswered')",
            "sent_again": "sum(if(sent and not dead, count, 0))",
            "redelivered": "sum(if(read and not dead, count, 0))",
            "dead_letters": "sum(if(sent and dead, count, 0))",
            "dead_letters_read": "sum(if(read and dead, count, 0))",
            # as `analytics.diagnosis.rules.consumers.returns.is_spent`
            "_beyond_limit": "sum(if(stored and not dead and made > most, count, 0))",
            "_at_limit": "sum(if(stored and not dead and made = most, count, 0))",
            "_locks": "count_if(lock)",
            "_moved_to_dlq": _MOVED_TO_DLQ,
            "first_time": "min(if(lock, null, request_time))",
            "last_time": "max(if(lock, null, request_time))",
        },
    )
    sums = ("refused", "unanswered", "sent_again", "redelivered", "dead_letters_read")
    groups = each.grouped(
        ("group",),
        {
            "_events": "sum(times - _locks)",
            "sent_back": "sum(if(back, times, 0L))",
            "messages": "count_if(back and returned is not null)",
            "most_times": "coalesce(max(if(back, times, null)), 0L)",
            **{name: f"sum({name})" for name in sums},
            "dead_letters": (
                "sum(dead_letters + _moved_to_dlq + _beyond_limit)"
                " + if(sum(_locks) > 0, sum(_at_limit), 0L)"
            ),
            "first_time": "min(first_time)",
            "last_time": "max(last_time)",
        },
    )
    return groups.where("_events > 0").without("_events")


def report_notes(rows: Rows) -> list[str]:
    """Return the notes of the report."""
    totals = rows.get(TOTALS.name, ())
    notes = []
    if unknown := sum_of(totals, "unknown"):
        notes.append(
            f"Outcome not captured: {counted(unknown, 'message')}, which do not count as failed."
        )
    if unconfirmed := sum_of(totals, "unconfirmed"):
        notes.append(
            f"Stored although the client saw a failure: {counted(unconfirmed, 'message')} (no"
            " response within the timeout: --send-timeout, inferred, or 3 s by default; or an error"
            " from a gRPC proxy)."
        )
    notes += about_connects(rows.get(CONNECTS.name, ()))
    if copies := sum_of(totals, "copies"):
        notes.append(
            f"{counted(copies, 'duplicate')} stored: consumers receive these messages again."
        )
    if unsure := sum_of(totals, "unsure"):
        notes.append(
            f"{counted(unsure, 'retried attempt')} may also have stored the message (no response,"
            f" or an ambiguous error). {'It is' if unsure == 1 else 'They are'} not counted as"
            f" {'a duplicate' if unsure == 1 else 'duplicates'}."
        )
    if inferred := sum_of(rows.get(CAUSES.name, ()), "inferred"):
        notes.append(
            f"{counted(inferred, 'attempt')} inferred from connection attempts that failed during a"
            " send."
        )
    if stale := sum_of(totals, "stale_queue"):
        notes.append(
            f"{counted(stale, 'attempt')} used the queue of another broker, as retries of"
            " asynchronous sends do."
        )
    return notes


REPORT = Report(
    "retries",
    "Retries",
    "Which messages were retried or failed, why, and what happened to them?",
    TABLES,
    build,
    (
        over_time(
            "lines",
            "Attempts and retries over time",
            OVER_TIME,
            y="attempts retries failed unanswered",
            axis="attempts per window",
        ),
        Chart(
            "flows",
            "Retry paths between brokers",
            FLOWS.name,
            {"start": "from_broker", "end": "to_broker", "value": "retries", "label": "cause"},
        ),
    ),
    report_notes,
    (STITCHED, BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS),
)
