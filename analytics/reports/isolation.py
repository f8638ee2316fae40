"""Which brokers producers isolated, when and why, and whether they kept to it.

Rules: the fault strategy of the client's generation is replayed over the attempts that were seen,
by the same code as our own producer's (`replay.fault`). Windows are those of a client that has it
on; `strategy` says whether this one had, by what it did, and `unknown` where nothing tells.
RocketMQ: MQFaultStrategy, LatencyFaultToleranceImpl.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ..isolation import strategy_replay as isolation
from ..isolation.isolation_input import NUMBER, WHO, born
from ..isolation.isolation_table import (
    ALL_COLUMNS,
    BROKER,
    BROKER_COLUMNS,
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
from ..report import Chart, Report, ReportInput, ReportOptions, ReportTable, Rows, TableColumn
from ..sends.broker_names import BROKER_NAMES, with_names
from ..sends.hops import RELAYS
from ..sends.stitched import STITCHED, Stitched, stitched
from ..sends.strategy_events import events
from ..sends.suspects import SUSPECTS
from ..sends.unavailable import BUCKET, UNAVAILABLE, failed_connects, gone_by_time
from ..sql.relation import Relation
from .retries import limits_of

if TYPE_CHECKING:
    import pyarrow

PRODUCERS = ReportTable(
    "isolation_producers",
    "Producers and fault strategies",
    (
        "One row per remoting producer, those with attempts at isolated brokers first. gRPC "
        "producers choose among proxies and are not listed."
    ),
    PRODUCER_COLUMNS,
    order=("-not_followed", "-windows", "-attempts", *WHO),
    brief=(
        "client",
        "group",
        "version_name",
        "generation",
        "strategy",
        "reason",
        "windows",
        "isolated_us",
        "to_isolated",
        "not_followed",
        "connects_failed",
        "process",
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
    brief=(
        "start",
        "client",
        "group",
        "broker",
        "length_us",
        "cause",
        "events",
        "ended_by",
        "strategy",
        "to_isolated",
        "open",
        "request_packet",
        "capture",
    ),
)
SENDS = ReportTable(
    "isolation_sends",
    "Attempts at isolated brokers",
    "One row per attempt at an isolated broker, by time; the first 1,000 per producer.",
    SEND_COLUMNS,
    order=("time", *WHO, "unique_key", "attempt"),
    brief=("time", "client", "broker", "why", "outcome", "topic", "request_packet", "capture"),
    shown=10,
)
BROKERS = ReportTable(
    "isolation_brokers",
    "Isolation by broker",
    "One row per producer and broker, longest isolated first.",
    BROKER_COLUMNS,
    order=("-isolated_us", "-attempts", *WHO, "broker"),
    brief=(
        "client",
        "group",
        "broker",
        "attempts",
        "attempts_share",
        "failures",
        "isolated_share",
        "windows",
        "to_isolated",
        "given_up",
        "absent_us",
        "strategy",
    ),
)
SETTINGS = ReportTable(
    "isolation_settings",
    "Effect of other settings",
    (
        "One row per producer and strategy generation, applied to the captured attempts. Attempts "
        "made under other settings are unknown."
    ),
    SETTING_COLUMNS,
    order=(*WHO, "setting"),
    aside=True,
)
TOPIC_SKEW = ReportTable(
    "skew_topics",
    "Queue balance by topic",
    "One row per topic, most uneven first. Queues that were never used are unknown.",
    (
        TableColumn("topic", "string", "", "topic"),
        TableColumn("brokers", "int", "", "brokers that it was sent to"),
        TableColumn("queues", "int", "", "queues with attempts"),
        TableColumn("attempts", "int", "", "attempts"),
        TableColumn("least", "int", "", "attempts at the least used queue"),
        TableColumn("most", "int", "", "attempts at the most used queue"),
        TableColumn("chi_square", "float", "", "chi-square distance from an even distribution"),
        TableColumn(
            "deviations",
            "float",
            "",
            ("chi-square in standard deviations; above 3.1 is significant"),
        ),
        TableColumn(
            "uneven",
            "bool",
            "",
            (
                "whether the distribution is significantly uneven (keys and selectors also cause "
                "this); empty below 50 attempts per queue"
            ),
        ),
    ),
    order=("-deviations", "topic"),
    aside=True,
)
QUEUE_SKEW = ReportTable(
    "skew_queues",
    "Load by queue",
    "One row per queue, by topic, broker, and queue ID.",
    (
        TableColumn("topic", "string", "", "topic"),
        TableColumn("broker", "string", "", "broker"),
        TableColumn("queue_id", "int", "", "queue"),
        TableColumn("attempts", "int", "", "attempts"),
        TableColumn("share", "float", "share", "share of the topic's attempts"),
        TableColumn("evenly", "float", "share", "share of each queue in an even distribution"),
    ),
    order=("topic", "broker", "queue_id"),
    shown=0,
)
TABLES = (PRODUCERS, WINDOWS, SENDS, BROKERS, SETTINGS, TOPIC_SKEW, QUEUE_SKEW)
_KINDS = {
    PRODUCERS.name: PRODUCER,
    WINDOWS.name: WINDOW,
    SENDS.name: SEND,
    BROKERS.name: BROKER,
    SETTINGS.name: SETTING,
}


def build(given: ReportInput, options: ReportOptions) -> Mapping[str, Relation]:
    """Return the tables."""
    limits = limits_of(options)
    stitch = stitched(given, limits)
    assumed = Assumed(
        options.generation,
        options.latency_max_ms,
        options.not_available_ms,
        options.fault_strategy,
    )
    rows = _rows(given, stitch, limits.timeout_us, isolation_rows(assumed))
    tables = {name: given.kept.part(rows, KIND.name, kind) for name, kind in _KINDS.items()}
    queues = given.kept.frame(_queues(stitch))
    return {**tables, TOPIC_SKEW.name: _topics(queues), QUEUE_SKEW.name: queues}


def _rows(
    given: ReportInput,
    stitch: Stitched,
    timeout_us: int,
    fold: Callable[[pyarrow.Table], pyarrow.Table],
) -> Relation:
    """Return the rows of the tables of `_KINDS`."""
    seen = _with_connects(given, events(stitch), stitch).adding({"producer": NUMBER})
    return given.kept.by_group(
        seen, "producer", lambda table: fold(born(table, timeout_us)), ALL_COLUMNS
    )


def _with_connects(given: ReportInput, events: Relation, stitch: Stitched) -> Relation:
    """Return the attempts with `gone`: brokers that their client could not reach; null: unknown."""
    failed = failed_connects(given)
    if failed is None:
        return events.adding({"gone": "cast(null as string)"})
    if given.kept.is_empty(failed):
        return events.adding({"gone": "''"})
    told = gone_by_time(failed, stitch.attempts)
    joined = events.adding({"bucket": BUCKET}).join(told, ["client", "bucket"], "left", small=True)
    return joined.adding({"gone": "coalesce(gone, '')"}).without("bucket")


def _queues(stitch: Stitched) -> Relation:
    """Return how often each queue was asked for; copies of a request in several captures count."""
    named = with_names(stitch.counts, stitch.names)
    asked = named.where("queue_id is not null and topic is not null")
    counted = asked.grouped(("topic", "broker", "queue_id"), {"attempts": "sum(times)"})
    return counted.adding(
        {
            "share": "attempts / sum(attempts) over (partition by topic)",
            "evenly": "1D / count(*) over (partition by topic)",
        },
    )


def _topics(queues: Relation) -> Relation:
    """Return each topic's distance from evenly loaded queues, by Pearson's chi-square.

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
    # of whole numbers, so that no order of the rows changes the last digit
    squared = summed.adding(
        {"chi_square": "(queues * _squares - attempts * cast(attempts as double)) / attempts"}
    )
    spread = "2 / (9 * (queues - 1))"
    deviations = f"(cbrt(chi_square / (queues - 1)) - (1 - {spread})) / sqrt({spread})"
    rounded = f"round({deviations}, 9)"  # cube roots differ in the last digit
    measured = squared.adding({"deviations": f"if(queues > 1, {rounded}, null)"})
    return measured.adding(
        {"uneven": "if(attempts >= 50 * queues, coalesce(deviations > 3.1, false), null)"}
    )


def remarks(rows: Rows) -> list[str]:
    """Return what a reader must know first."""
    states = [str(row["strategy"]) for row in rows.get(PRODUCERS.name, ()) if row["windows"]]
    said = []
    gone = [row for row in rows.get(PRODUCERS.name, ()) if row["connects_failed"]]
    if gone:
        brokers = ", ".join(sorted({str(row["unreachable"]) for row in gone})[:5])
        said.append(
            f"Connects of {len(gone)} producers failed ({brokers}). Where no send can be tied to"
            " them, the isolation that they caused is not among the windows."
        )
    if off := states.count(isolation.OFF):
        said.append(
            f"Strategy apparently off: {off} of {len(states)} producers with failures or slow"
            " answers kept sending to brokers that it would have isolated. Java's default is off."
        )
    if other := states.count(isolation.OTHER_GENERATION):
        said.append(f"{other} producers behave as another generation than their version's.")
    if unknown := states.count(isolation.UNTOLD):
        said.append(
            f"Of {unknown} producers nothing tells whether they had the strategy on: their windows"
            " are what it would have given."
        )
    given_up = [row["broker"] for row in rows.get(BROKERS.name, ()) if row["given_up"]]
    if given_up:
        names = ", ".join(sorted({str(name) for name in given_up}))
        said.append(
            f"Not used again long after their isolation, or no longer in the route: {names}."
        )
    return said


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
    remarks,
    (STITCHED, BROKER_NAMES, UNAVAILABLE, RELAYS, SUSPECTS),
)
