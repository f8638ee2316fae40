"""No report ends because of what a peer wrote or a clock said; what is known is still counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow
import pytest

from analytics.kept import Kept
from analytics.page.html import page_of
from analytics.report import ReportOptions
from analytics.reports import REPORT_MODULES, report_of
from analytics.result import computed
from rmqtool.report.text import shower_of
from tests.analytics.reported import input_of, on_spark, tables_from
from tests.analytics.rows import HOSTILE_KEYS as HOSTILE
from tests.analytics.rows import report_input, row
from tests.expected import SAMPLES

if TYPE_CHECKING:
    from analytics.report import ReportInput
    from analytics.sql.relation import Relation

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
LONGEST = (LATEST - EARLIEST) // timedelta(microseconds=1)
"""µs that an answer takes at most, by the clocks of a capture."""
SLOW = 60
"""Sends that took as long: together more than 64 bits can say."""
SENT = ("queue_id", "queue_offset", "message_count", "reconsume_times", "commit_log_offset")
"""Columns with numbers as a peer sent them."""
EXTREMES = (2**63 - 1, -(2**63), 2**62, -1, None)


def _rows() -> Iterator[dict[str, object]]:
    slow = {"request_time": EARLIEST, "response_time": LATEST, "latency_us": LONGEST}
    for number in range(SLOW):
        yield {**row(request_packet=number, unique_key=f"{number:032X}"), **slow}
    for number, key in enumerate(HOSTILE):
        extreme = EXTREMES[number % len(EXTREMES)]
        several = dict.fromkeys(("queue_id", "queue_offset", "max_reconsume_times"), extreme)
        odd = {"unique_key": key, "remark": key, "version": extreme, **several}
        for again in range(2):  # looked at one by one
            yield row(number * 1000 + again, request_packet=1000 + 2 * number + again, **odd)
        yield row(number * 1000 + 500, request_packet=2000 + number, **{**odd, "topic": key})


@pytest.fixture(params=["local", pytest.param("on Spark", marks=pytest.mark.spark)])
def hostile(request: pytest.FixtureRequest) -> ReportInput:
    """Sends whose times, keys and numbers make no sense, for each engine."""
    given = report_input(_rows())
    if request.param == "local":
        return given
    return on_spark(given, request.getfixturevalue("spark"))


@pytest.mark.parametrize("name", sorted({*REPORT_MODULES} - {"consumers", "delivery"}))
def test_every_report_is_made(hostile: ReportInput, name: str) -> None:
    assert any(tables_from(name, hostile).values())


def test_latencies_of_millennia_are_added_up(hostile: ReportInput) -> None:
    tables = tables_from("latency", hostile, "latency", "operations")
    (operation,) = tables["operations"]
    every = SLOW + 3 * len(HOSTILE)
    assert (operation["exchanges"], operation["answered"]) == (every, every)
    assert operation["max_us"] == LONGEST
    assert operation["mean_us"] == pytest.approx(SLOW * LONGEST / every)
    first = tables["latency"][0]
    assert (first["topic"], first["total_us"]) == ("orders", 2**63 - 1), "as much as a column holds"


def test_latencies_of_all_64_bits_have_a_bucket() -> None:
    given = report_input({**row(), "latency_us": latency} for latency in EXTREMES)
    buckets = tables_from("latency", given, "latency_histogram")["latency_histogram"]
    found = [(one["from_us"], one["below_us"], one["exchanges"]) for one in buckets]
    assert found == [(0, 1, 2), (2**62, 2**63 - 1, 2)]


def test_every_message_is_counted(hostile: ReportInput) -> None:
    totals = tables_from("retries", hostile, "retry_totals")["retry_totals"]
    without_key = sum(not key for key in HOSTILE)  # each send of it is a message of its own
    assert sum(one["messages"] for one in totals if one["topic"] == "orders") == (
        SLOW + len(HOSTILE) + without_key
    )


@pytest.mark.parametrize("name", ["consumers", "delivery"])
def test_offsets_that_make_no_sense(name: str) -> None:
    """A consumer that is behind by more than 64 bits can say."""
    recorded = input_of((str(SAMPLES / "consumer-lag-5x.pcap"),), messages=True)

    def with_extremes(relation: Relation) -> Relation:
        rows = recorded.kept.rows(relation)
        for name in set(SENT) & set(rows.column_names):
            values = rows.column(name).to_pylist()
            values[::3] = [EXTREMES[place % len(EXTREMES)] for place in range(len(values[::3]))]
            place = rows.column_names.index(name)
            rows = rows.set_column(place, rows.field(name), pyarrow.array(values, pyarrow.int64()))
        return recorded.kept.engine.hold(rows)

    assert recorded.messages is not None
    exchanges, messages = map(with_extremes, (recorded.exchanges, recorded.messages))
    kept = Kept(recorded.kept.engine)
    given = replace(recorded, exchanges=exchanges, messages=messages, kept=kept)
    assert any(tables_from(name, given).values())


@pytest.mark.slow
@pytest.mark.parametrize("at", [-(2**62), LONGEST])
def test_times_that_no_capture_has_are_unknown(at: int) -> None:
    """Files of other programs may have them; neither tables nor the page can."""
    far = {"request_time": at, "response_time": at + 1000}
    given = report_input([*(row(number * 1000) for number in range(50)), row(**far)])
    names = [name for name in REPORT_MODULES if name not in ("consumers", "delivery")]
    results = computed(list(map(report_of, names)), given, ReportOptions())
    page_of("", [], results, shower_of)
    tables = {name: table.rows() for result in results for name, table in result.tables.items()}
    (whole,) = tables["quality_exchanges"]
    assert whole["exchanges"] == 51
    assert [whole["first_time"], whole["last_time"]].count(None) == 1
