"""Isolation windows of producers: brokers, times, causes, and violations.

The fault strategy of the client's generation is replayed over the captured attempts, by the code of
our own producer (`replay.fault`). Windows assume that the strategy is on.

RocketMQ: MQFaultStrategy, LatencyFaultToleranceImpl.
"""

from __future__ import annotations

from collections.abc import Mapping

from dissectors.quantities import counted
from dissectors.rows.outcome import FAILED, NOT_DURABLE, OK

from ..isolation import strategy_replay as isolation
from ..isolation.isolation_input import NUMBER, WHO
from ..isolation.isolation_table import (
    BROKER,
    BROKER_COLUMNS,
    COLUMNS_OF,
    FOLDED_COLUMNS,
    KIND,
    PRODUCER,
    PRODUCER_COLUMNS,
    SEND,
    SEND_COLUMNS,
    SETTING,
    SETTING_COLUMNS,
    WINDOW,
    WINDOW_COLUMNS,
    Assumed,
    isolation_rows,
)
from ..report import (
    Chart,
    Report,
    ReportInput,
    ReportOptions,
    ReportTable,
    Rows,
    TableColumn,
    column_names,
    table_columns,
)
from ..sends import sends
from ..sends.attempts import ONEWAY, REFUSED, STORED, UNKNOWN
from ..sends.broker_names import BROKER_NAMES, with_names
from ..sends.hops import RELAYS
from ..sends.sends import connect_failures
from ..sends.stitched import STITCHED, Stitched, stitched
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import BUCKET, UNAVAILABLE, failed_connects, gone_by_time
from ..sql.engine import OfBatches
from ..sql.expressions import texts
from ..sql.relation import Relation
from .retries import limits_of

_OUTCOME = (
    f"case when outcome_class in {texts((OK, NOT_DURABLE))} then '{STORED}'"
    f" when outcome_class = '{FAILED}' then '{REFUSED}'"
    f" when outcome_class = 'oneway' then '{ONEWAY}' else '{UNKNOWN}' end"
)
_CAUSE = f"if(outcome_class = '{FAILED}', response_name, null)"
_TEXTS = ("language", "version_name", "capture")
_OF_PLAIN = (
    *("client", "process", "`group`", "topic", "broker", "cast(null as string) as last_broker"),
    *(f"{_OUTCOME} as outcome", f"{_CAUSE} as cause", "1L as attempt", *_TEXTS),
)
"""Columns of attempts not analyzed individually, without message and times."""
_OF_LOOKED_AT = (
    *("client", f"{sends.PROCESS} as process", "`group`", "topic", "broker", "last_broker"),
    *("outcome", "cause", "attempt", *_TEXTS),
)
_NOT_GRPC = f"not coalesce({sends.made_by_grpc('unique_key')}, false)"
"""SQL: the message is not of a gRPC client: those avoid proxies by rules of their own."""
# a signed number: DuckDB's hash is unsigned
_KEY = f"if(unique_key is null, null, cast(xxhash64(unique_key, topic) & {2**63 - 1}L as long))"
"""SQL: a number for the UNIQ_KEY, which takes much less time to sort: `with_unique_keys`."""
_TIE = "if(request_packet is null, unique_key, null)"
"""SQL: what orders attempts without a packet that begin together."""
_MESSAGE = (f"{_KEY} as key", f"{_TIE} as tie", "request_packet")
_TIMES = ("unix_micros(attempt_begin) as begin", "unix_micros(attempt_end) as end")


def events(stitch: Stitched, timeout_us: int) -> Relation:
    """Return the attempts; `begin` and `end` in µs since the epoch.

    An attempt begins at message creation if that is within a timeout of the request.
    """
    plain = with_names(_plain(stitch, timeout_us), stitch.names)
    remoting = stitch.attempts.where(f"protocol = 'remoting' and {_NOT_GRPC}")
    looked_at = remoting.select(*_OF_LOOKED_AT, *_TIMES, *_MESSAGE)
    return plain.select(*_OF_PLAIN, "begin", "end", *_MESSAGE).union(looked_at)


def _plain(stitch: Stitched, timeout_us: int) -> Relation:
    """Return the sends not analyzed individually, with `client`, `process`, and times."""
    sent = stitch.sends.where(f"not call and {_NOT_GRPC}")
    others = sent.join(stitch.keys, f"{sends.KEY} = key", "left anti", small=True)
    asked, created = "unix_micros(request_time)", "unix_micros(key_time)"
    # a message may wait in the application between its creation and its send
    near = f"coalesce({asked} - {created} between 0 and {timeout_us}, false)"
    return others.adding(
        {
            "client": sends.HOST,
            "process": sends.PROCESS,
            "begin": f"if({near}, {created}, {asked})",
            "end": f"if(status = 'oneway', {asked}, unix_micros(response_time))",
        }
    )


def with_unique_keys(rows: Relation, stitch: Stitched) -> Relation:
    """Return a few rows of attempts with the `unique_key` that their `key` stands for."""
    keyed = stitch.sends.where("unique_key is not null").adding({"key": _KEY})
    wanted = rows.where("key is not null").select_distinct("key")
    texts_of_keys = keyed.join(wanted, ["key"], "left semi", small=True).grouped(
        ("key",), {"unique_key": "min(unique_key)"}
    )
    return rows.join(texts_of_keys, ["key"], "left", small=True)


PRODUCERS = ReportTable(
    "isolation_producers",
    "Producers and fault strategies",
    (
        "One row per remoting producer, those that sent to isolated brokers first. gRPC "
        "producers choose among proxies and are not listed."
    ),
    PRODUCER_COLUMNS,
    order=("-not_followed", "-windows", "-attempts", *WHO, "version_name"),
    brief=column_names(
        "client group version_name generation strategy reason windows isolated_us to_isolated"
        " not_followed connects_failed process"
    ),
)
WINDOWS = ReportTable(
    "isolation_windows",
    "Isolation windows",
    (
        "One row per period in which a producer avoids a broker, or would with the strategy on; "
        "by time."
    ),
    WINDOW_COLUMNS,
    order=("start", *WHO, "broker"),
    brief=column_names(
        "start client group broker length_us cause strategy events ended_by to_isolated open"
        " request_packet capture"
    ),
)
SENDS = ReportTable(
    "isolation_sends",
    "Sends to isolated brokers",
    "One row per attempt to send to an isolated broker, by time; the first 1,000 per producer.",
    SEND_COLUMNS,
    order=("time", *WHO, "unique_key", "attempt"),
    brief=column_names("time client broker strategy why outcome topic request_packet capture"),
    shown=10,
)
BROKERS = ReportTable(
    "isolation_brokers",
    "Isolation by broker",
    "One row per producer and broker, longest isolated first.",
    BROKER_COLUMNS,
    order=("-isolated_us", "-attempts", *WHO, "broker"),
    brief=column_names(
        "client group broker attempts attempts_share failures strategy isolated_share windows"
        " to_isolated abandoned absent_us"
    ),
)
SETTINGS = ReportTable(
    "isolation_settings",
    "Effect of other settings",
    (
        "One row per producer and strategy generation, applied to the captured attempts. The "
        "table cannot show attempts that other settings would have caused."
    ),
    SETTING_COLUMNS,
    # Programs of two versions may have the same process ID.
    order=(*WHO, "setting", "used", "windows", "isolated_us", "attempts_moved", "attempts_kept"),
    aside=True,
)
TOPIC_SKEW = ReportTable(
    "skew_topics",
    "Queue balance by topic",
    "One row per topic, most uneven first. Queues that were never used are unknown.",
    table_columns("""
        topic string: topic
        brokers int: brokers that it was sent to
        queues int: queues with attempts
        attempts int: attempts
        least int: attempts to send to the least used queue
        most int: attempts to send to the most used queue
        chi_square float: chi-square distance from an even distribution
        deviations float: chi-square in standard deviations; above 3.1 is significant
        uneven bool: whether the distribution is significantly uneven (keys and selectors also cause
          this); empty below 50 attempts per queue
    """),
    order=("-deviations", "topic"),
    aside=True,
)
_LOAD = table_columns("""
    attempts int: attempts
    share float share: share of the topic's attempts
    evenly float share: share in an even distribution over the queues
    load float: share / evenly; 1 is balanced
""")
BROKER_SKEW = ReportTable(
    "skew_brokers",
    "Topic balance by broker",
    "One row per topic and broker of topics on several brokers, largest excess first.",
    (
        *table_columns("""
            topic string: topic
            broker string: broker
            queues int: queues with attempts
        """),
        *_LOAD,
        TableColumn("excess", "float", "", "attempts beyond an even distribution"),
    ),
    order=("-excess", "topic", "broker"),
    aside=True,
)
QUEUE_SKEW = ReportTable(
    "skew_queues",
    "Hottest queues",
    "One row per queue, most attempts first.",
    (
        *table_columns("""
            topic string: topic
            broker string: broker
            queue_id int: queue
        """),
        *_LOAD,
    ),
    order=("-attempts", "topic", "broker", "queue_id"),
    shown=10,
    aside=True,
)
TABLES = (PRODUCERS, WINDOWS, SENDS, BROKERS, SETTINGS, TOPIC_SKEW, BROKER_SKEW, QUEUE_SKEW)
_KINDS = {
    PRODUCERS.name: PRODUCER,
    WINDOWS.name: WINDOW,
    SENDS.name: SEND,
    BROKERS.name: BROKER,
    SETTINGS.name: SETTING,
}


def build(report_input: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    limits = limits_of(options)
    stitch = stitched(report_input, limits)
    assumed = Assumed(
        options.generation,
        options.latency_max_ms,
        options.not_available_ms,
        options.fault_strategy,
    )
    rows = _rows(report_input, stitch, limits.timeout_us, isolation_rows(assumed))
    # one pass yields the rows of five tables, each of which has only some of the columns
    names = {kind: [one.name for one in some] for kind, some in COLUMNS_OF.items()}
    parts = report_input.kept.parts(rows, KIND.name, names)
    queues = report_input.kept.frame(_queues(stitch))
    return {
        **{name: parts[kind] for name, kind in _KINDS.items()},
        TOPIC_SKEW.name: _topics(queues),
        BROKER_SKEW.name: _brokers(queues),
        QUEUE_SKEW.name: queues.adding({"load": "share / evenly"}),
    }


def _rows(
    report_input: ReportInput,
    stitch: Stitched,
    timeout_us: int,
    fold: OfBatches,
) -> Relation:
    """Return the rows of the tables in `_KINDS`."""
    sent = events(stitch, timeout_us)
    seen = _with_connects(report_input, sent, stitch).adding({"producer": NUMBER})
    kept = report_input.kept
    rows = kept.noted(kept.engine.folded(seen, "producer", fold, FOLDED_COLUMNS))
    return kept.frame(with_unique_keys(rows, stitch))


def _with_connects(report_input: ReportInput, events: Relation, stitch: Stitched) -> Relation:
    """Return the attempts with `gone`: brokers that their client could not reach; null: unknown."""
    failed = failed_connects(report_input)
    if failed is None or report_input.conversations is None:
        return events.adding({"gone": "cast(null as string)"})
    if report_input.kept.is_empty(failed):  # known, and none
        return events.adding({"gone": "''"})
    failures = connect_failures(report_input.conversations, stitch.names, known=False)
    outages = gone_by_time(report_input.kept, failures, stitch.attempts)
    joined = events.adding({"bucket": BUCKET}).join(
        outages, ["client", "bucket"], "left", small=True
    )
    return joined.adding({"gone": "coalesce(gone, '')"}).without("bucket")


def _queues(stitch: Stitched) -> Relation:
    """Return the number of sends per queue; duplicates in several captures count."""
    named = with_names(stitch.counts, stitch.names)
    asked = named.where("queue_id is not null and topic is not null")
    counted = asked.grouped(("topic", "broker", "queue_id"), {"attempts": "sum(times)"})
    return counted.adding(
        {
            "share": "attempts / sum(attempts) over (partition by topic)",
            "evenly": "1D / count(*) over (partition by topic)",
        },
    )


def _brokers(queues: Relation) -> Relation:
    """Return the load of each broker from topics on several brokers."""
    summed = queues.grouped(
        ("topic", "broker"), {"attempts": "sum(attempts)", "queues": "count(*)"}
    )
    of_topic = "over (partition by topic)"
    shared = summed.adding(
        {
            "share": f"attempts / sum(attempts) {of_topic}",
            "evenly": f"queues / sum(queues) {of_topic}",
            "excess": f"attempts - queues * sum(attempts) {of_topic} / sum(queues) {of_topic}",
            "_brokers": f"count(*) {of_topic}",
        }
    )
    return shared.where("_brokers > 1").adding({"load": "share / evenly"})


def _topics(queues: Relation) -> Relation:
    """Return each topic's deviation from evenly loaded queues, by Pearson's chi-square.

    Wilson and Hilferty: its cube root is nearly normal, which gives the standard deviations.
    """
    summed = queues.grouped(
        ("topic",),
        {
            "brokers": "count(distinct broker)",
            "queues": "count(*)",
            "least": "min(attempts)",
            "most": "max(attempts)",
            "attempts": "sum(attempts)",
            "_squares": "sum(cast(attempts as double) * attempts)",
        },
    )
    # of integers, so the order of rows does not affect the last digit
    squared = summed.adding(
        {"chi_square": "(queues * _squares - attempts * cast(attempts as double)) / attempts"}
    )
    # One degree of freedom less than queues: the total is given.
    spread = "2 / (9 * (queues - 1))"
    deviations = f"(cbrt(chi_square / (queues - 1)) - (1 - {spread})) / sqrt({spread})"
    rounded = f"round({deviations}, 9)"  # cube roots differ in the last digit between engines
    measured = squared.adding({"deviations": f"if(queues > 1, {rounded}, null)"})
    return measured.adding(
        {"uneven": "if(attempts >= 50 * queues, coalesce(deviations > 3.1, false), null)"}
    )


def report_notes(rows: Rows) -> list[str]:
    """Return the notes of the report."""
    states = [str(row["strategy"]) for row in rows.get(PRODUCERS.name, ()) if row["windows"]]
    notes = []
    gone = [row for row in rows.get(PRODUCERS.name, ()) if row["connects_failed"]]
    if gone:
        brokers = ", ".join(sorted({str(row["unreachable"]) for row in gone})[:5])
        notes.append(
            f"{counted(len(gone), 'producer')} had failed connection attempts ({brokers}). If no"
            " send matches such an attempt, its isolation window is missing."
        )
    if off := states.count(isolation.OFF):
        notes.append(
            f"Strategy apparently off: {off} of {counted(len(states), 'producer')} with failures or"
            " slow responses kept sending to brokers that it would have isolated. Java's default is"
            " off."
        )
    if other := states.count(isolation.OTHER_GENERATION):
        notes.append(
            "Behavior of another generation than that of their version:"
            f" {counted(other, 'producer')}."
        )
    if unknown := states.count(isolation.UNDETERMINED):
        notes.append(
            f"Strategy unknown for {counted(unknown, 'producer')}: windows are hypothetical."
        )
    abandoned = [row["broker"] for row in rows.get(BROKERS.name, ()) if row["abandoned"]]
    if abandoned:
        names = ", ".join(sorted({str(name) for name in abandoned}))
        notes.append(f"Abandoned long after their isolation, or removed from the route: {names}.")
    return notes


REPORT = Report(
    "isolation",
    "Broker isolation",
    "Which brokers did producers avoid, when, why, and did they follow their fault strategy?",
    TABLES,
    build,
    (
        Chart(
            "timeline",
            "Isolation over time",
            WINDOWS.name,
            {"row": "client group broker", "start": "start", "end": "end", "colour": "cause"},
        ),
    ),
    report_notes,
    (STITCHED, BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS),
)
