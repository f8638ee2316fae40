"""What is typed is completed, lists are sorted, and ways lead from a row to what belongs to it."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Tree

from rmqtool.browse.model.columns import sort_column
from rmqtool.browse.model.settings import read_settings
from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.filter_line import LineInput
from tests.rmqtool.browse.browsing import fill, press, run, sample, sees, shown


def test_values_that_were_seen_are_offered_and_what_is_wrong_is_under_its_place() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, *"ftopic == sig")
        await sees(browser, "SignedTopic")
        await press(browser, pilot, "tab")
        line = browser.query_one(LineInput)
        assert line.value == "topic == SignedTopic "
        line.value = "topic == SignedTopic and latncy > 5ms"
        line.cursor_position = len(line.value)
        await sees(browser, "^^^^^^", "did you mean latency")
        lines = shown(browser)
        at = next(number for number, one in enumerate(lines) if "^^^^^^" in one)
        assert lines[at].index("^") == lines[at - 1].index("latncy")
        await press(browser, pilot, "enter")
        assert browser.tables["exchanges"].filter == ""

    run(act, sample("acl-5x.pcap"))


def test_lists_are_sorted_by_time_latency_and_size_both_ways() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        for view in "123":
            await press(browser, pilot, view)
            table = browser.table
            assert table is not None
            assert table.sort == "time"
            for what in ("latency", "size", "", "time"):
                await press(browser, pilot, "s")
                assert table.sort == what
                if not what:
                    continue
                column = sort_column(table.table, what)
                for _ in range(2):
                    numbers = [
                        table.listing.number_at(place) for place in range(len(table.listing))
                    ]
                    found = [getattr(table.listing.row(one or 0), column) for one in numbers]
                    there = [one for one in found if one is not None]
                    assert there == sorted(there, reverse=table.descending)
                    assert found[len(there) :] == [None] * (len(found) - len(there))
                    await press(browser, pilot, "S")

    run(act, sample("acl-5x.pcap"))


def test_chosen_columns_are_remembered_and_a_wrong_one_is_said(tmp_path: Path) -> None:
    settings = tmp_path / "browse.json"

    async def choose(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2", "c")
        await fill(browser, pilot, "TIME nonsense")
        await sees(browser, "unknown column: nonsense")
        await press(browser, pilot, "c")
        await fill(browser, pilot, "TIME queue_offset")
        await sees(browser, "columns chosen")

    async def look(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "2")
        await sees(browser, "TIME         QUEUE_OFFSET")
        await press(browser, pilot, "c")
        await fill(browser, pilot, "")
        await sees(browser, "EVENT")

    run(choose, sample("acl-5x.pcap"), settings=settings)
    assert read_settings(settings).columns == {"messages": ["TIME", "queue_offset"]}
    run(look, sample("acl-5x.pcap"), settings=settings)
    assert read_settings(settings).columns == {"messages": []}


def test_ways_from_request_to_response_and_from_an_exchange_to_its_connection() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        tree = browser.query_one(Tree)

        def at() -> str:
            node = tree.cursor_node
            return "" if node is None or node.data is None else node.data.text

        await press(browser, pilot, *"jjjjj", "r")
        await press(browser, pilot, "r") if at().startswith("Request:") else None
        assert at().startswith("Response: packet")
        await press(browser, pilot, "r")
        assert at().startswith("Request: packet")
        await press(browser, pilot, "escape")
        conversation = browser.chosen_row().conversation
        await press(browser, pilot, "e")
        assert browser.view == "connections"
        assert browser.chosen_row().conversation == conversation
        await press(browser, pilot, "e")
        assert browser.view == "exchanges"
        table = browser.tables["exchanges"]
        assert table.filter == f"conversation == {conversation}"
        await press(browser, pilot, "o")
        await sees(browser, "→ sent by")

    run(act, sample("leader-lost-5x.pcap"))
