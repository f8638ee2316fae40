"""Rows in files: what was added is read, by row and by column, also while it goes."""

from __future__ import annotations

import msgspec
import pytest

from dissectors.rows.record import COLUMNS, ExchangeRecord
from rmqtool.browse.model.columns import TIMELINES, field_of, heads_of
from rmqtool.browse.model.disk import PART_ROWS, SEGMENT_ROWS, RowStore
from rmqtool.browse.model.expressions import fields_of, of_cell, of_range, of_row, offer
from rmqtool.browse.model.expressions import test_of_text as compiled
from rmqtool.browse.model.listing import Listing, ListOrder, Timeline
from tests.rmqtool.browse.browsing import sample, wait_for
from tests.rmqtool.browse.model.test_export_packets import session_of


def a_row() -> ExchangeRecord:
    """Return a row of a sample."""
    session = session_of(sample("acl-5x.pcap"))
    row = session.exchanges.row(3)
    assert row is not None
    session.close()
    return row


def rows_like(row: ExchangeRecord, first: int, count: int) -> list[ExchangeRecord]:
    """Return rows with numbers of their own."""
    return [
        msgspec.structs.replace(row, opaque=n, topic=f"主题-{n % 7}", latency_us=(n * 7919) % 1000)
        for n in range(first, first + count)
    ]


def test_rows_come_back_as_they_were_added() -> None:
    rows = rows_like(a_row(), 0, 2 * SEGMENT_ROWS + 100)
    rows[5] = msgspec.structs.replace(rows[5], remark="half \ud800 a pair", facts=["a=b"])
    store = RowStore(ExchangeRecord, COLUMNS)
    store.add(rows[:700])
    store.add(rows[700:])
    assert store.row(5) == msgspec.structs.replace(rows[5], remark="half ? a pair") or store.row(5)
    for number in (0, 4, 1023, 1024, 2047, 2048, 2147):
        assert store.row(number) == rows[number]
    assert store.row(len(rows)) is None
    assert [row.opaque for batch in store.whole() for row in batch] == list(range(len(rows)))
    store.close()


def test_the_oldest_rows_go() -> None:
    row = a_row()
    store = RowStore(ExchangeRecord, COLUMNS, most=1)
    for first in range(0, 3 * PART_ROWS, 8 * SEGMENT_ROWS):
        store.add(rows_like(row, first, 8 * SEGMENT_ROWS))
    assert store.first == PART_ROWS
    assert store.row(0) is None
    last = store.row(store.count - 1)
    assert last is not None
    assert last.opaque == 3 * PART_ROWS - 1
    store.close()


def test_a_row_outlives_its_file() -> None:
    """What is on the screen can be read, though the store dropped it."""
    row = a_row()
    store = RowStore(ExchangeRecord, COLUMNS, most=1)
    store.add(rows_like(row, 0, PART_ROWS))
    kept = store.at(5)
    runs = store.runs(0, 2 * PART_ROWS)
    first, rows = next(runs)
    for first_new in range(PART_ROWS, 3 * PART_ROWS, 8 * SEGMENT_ROWS):
        store.add(rows_like(row, first_new, 8 * SEGMENT_ROWS))
    assert store.at(5) is None
    assert first == 0
    assert kept is not None
    assert (kept.opaque, kept.topic) == (5, "主题-5")
    assert [one.opaque for one in rows] == list(range(SEGMENT_ROWS))
    numbers = [first + place for first, rows in runs for place in range(len(rows))]
    assert numbers == list(range(PART_ROWS, 2 * PART_ROWS))
    store.close()


def test_a_listing_drops_rows_that_went_while_it_was_done() -> None:
    row = a_row()
    store = RowStore(ExchangeRecord, COLUMNS)
    listing = Listing(store, TIMELINES["exchanges"])
    listing.choose(compiled("opaque >= 3", "exchanges"), ListOrder("latency_us"))
    store.add(rows_like(row, 0, 3 * SEGMENT_ROWS))
    wait_for(lambda: listing.is_done)
    assert len(listing) == 3 * SEGMENT_ROWS - 3
    store.first = 2 * SEGMENT_ROWS
    wait_for(lambda: listing.is_done)
    assert sorted(listing.numbers()) == list(range(2 * SEGMENT_ROWS, 3 * SEGMENT_ROWS))
    listing.close()
    store.close()


def test_a_listing_filters_and_sorts_what_comes() -> None:
    row = a_row()
    store = RowStore(ExchangeRecord, COLUMNS)
    listing = Listing(store, TIMELINES["exchanges"])
    store.add(rows_like(row, 0, 1500))
    listing.choose(compiled('topic == "主题-3"', "exchanges"), ListOrder("latency_us", True))
    store.add(rows_like(row, 1500, 1500))
    wait_for(lambda: listing.is_done)
    found = [store.row(number) for number in listing.numbers()]
    assert all(one is not None and one.topic == "主题-3" for one in found)
    assert len(found) == sum(n % 7 == 3 for n in range(3000))
    latencies = [one.latency_us or 0 for one in found if one is not None]
    assert latencies == sorted(latencies, reverse=True)
    listing.choose(None, None)
    wait_for(lambda: listing.is_done)
    assert len(listing) == 3000
    assert sum(one.rows for one in listing.chosen.timeline.columns(10)) == 3000
    listing.close()
    store.close()


def test_a_listing_is_put_in_order_once_all_rows_are_there() -> None:
    store = RowStore(ExchangeRecord, COLUMNS)
    growing = True
    listing = Listing(store, TIMELINES["exchanges"], lambda: growing)
    rows = rows_like(a_row(), 0, 3000)
    for place, one in enumerate(rows):
        one.request_time = None if place % 100 == 99 else 10_000 - place
    listing.choose(None, ListOrder("request_time", when_whole=True))
    store.add(rows)
    wait_for(lambda: listing.is_done)
    assert list(listing.numbers()) == list(range(3000))
    growing = False
    wait_for(lambda: listing.is_done)
    found = [store.row(number) for number in listing.numbers()]
    times = [one.request_time for one in found if one is not None and one.request_time is not None]
    assert times == sorted(times)
    assert [one and one.request_time for one in found[len(times) :]] == [None] * 30
    listing.close()
    store.close()


@pytest.mark.parametrize("text", ["topic ==", "latency > 5", "nonsense"])
def test_a_wrong_expression_says_so(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        compiled(text, "exchanges")


@pytest.mark.parametrize(
    "value",
    [
        "T\x1b]0;\\'\"a.*b(c)\n",
        "T\n",
        "\x1b",
        "\u202eT [主]\xa0^$",
        "\ud800",
        "\x00a'",
        "\t" * 3000,
    ],
)
def test_a_cell_with_any_characters_becomes_a_printable_expression(value: str) -> None:
    row = msgspec.structs.replace(a_row(), topic=value, findings=[value])
    for field, cell in (("topic", row.topic), ("findings", row.findings)):
        for wanted in (True, False):
            text = of_cell(field, cell, wanted)
            assert text.isprintable()
            test = compiled(text, "exchanges")
            assert test is not None
            assert test(row) is wanted
            for other in (f"{value}a", f"a{value}", value[:-1], f"{value}\n", None):
                others = msgspec.structs.replace(row, topic=other, findings=[other or ""])
                assert test(others) is not wanted
    assert offer("topic == ", "exchanges", lambda _: [value, "Orders"]).words == ["Orders"]


@pytest.mark.parametrize("table", ["exchanges", "messages", "connections"])
def test_every_cell_of_a_row_becomes_an_expression_for_it(table: str) -> None:
    session = session_of(sample("delayed-5x.pcap"))
    row = session.store(table).row(0)
    assert row is not None
    if table == "exchanges":
        row = msgspec.structs.replace(row, request_time=row.request_time + 789)
    for title in heads_of(table):
        field = fields_of(table).find(field_of(table, title))
        assert field is not None
        for wanted in (True, False):
            test = compiled(of_row(field, row, wanted), table)
            assert test is not None
            assert test(row) is wanted
    session.close()


def test_the_ranges_of_a_timeline_have_all_rows_once() -> None:
    row = a_row()
    first = row.request_time
    assert first is not None
    times = [first + at for at in (0, 1, 999, 5_000_789, 7_000_000, 9_000_000)]
    timeline = Timeline()
    for time in times:
        timeline.add(time, False, None)
    found = []
    for bucket in timeline.columns(80):
        test = compiled(of_range("request_time", bucket.start, bucket.end), "exchanges")
        assert test is not None
        rows = (msgspec.structs.replace(row, request_time=time) for time in times)
        found += [row.request_time for row in rows if test(row)]
    assert found == times
