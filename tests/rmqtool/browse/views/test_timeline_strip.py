"""The timeline by keys and mouse: what is picked limits the list."""

from __future__ import annotations

from textual import events
from textual.pilot import Pilot

from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.timeline_strip import TimelineStrip
from tests.rmqtool.browse.browsing import press, run, sample, sees, settled


async def drag(browser: FullBrowser, pilot: Pilot[None], first: int, last: int) -> None:
    """Press the button on a bar, release it on another."""
    region = browser.query_one(TimelineStrip).region
    for kind, x in (
        (events.MouseDown, first),
        (events.MouseMove, (first + last) // 2),
        (events.MouseMove, last),
        (events.MouseUp, last),
    ):
        at = region.x + x, region.y
        event = kind(None, *at, 1, 0, 1, False, False, False, *at, None)
        event.set_sender(browser)
        browser.post_message(event)
        await pilot.pause(0.01)
    await settled(browser, pilot)


def test_a_part_is_dragged_with_the_mouse() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        table = browser.tables["exchanges"]
        buckets = table.listing.chosen.timeline.columns(
            browser.query_one(TimelineStrip).size.width - 1
        )
        await drag(browser, pilot, 30, 4)
        assert table.filter.startswith("time >= ")
        assert len(table.listing) == sum(one.rows for one in buckets[4:31])
        assert browser.focused is browser.list_of("exchanges")
        await press(browser, pilot, "x")
        await drag(browser, pilot, 10, 10)
        assert table.filter == ""
        assert isinstance(browser.focused, TimelineStrip)
        await sees(browser, "Space:start a range Enter:list rows")

    run(act, sample("leader-lost-5x.pcap"))


def test_a_part_picked_by_keys_takes_the_place_of_the_one_before() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        table = browser.tables["exchanges"]
        await press(browser, pilot, "t", "space", "L", "enter")
        first, rows = table.filter, len(table.listing)
        assert 0 < rows < 68
        await press(browser, pilot, "t", "space", "l", "l", "enter")
        assert table.filter.count("time >=") == 1
        assert table.filter != first
        assert len(table.listing) < rows
        await press(browser, pilot, "backspace")
        assert (table.filter, len(table.listing)) == (first, rows)

    run(act, sample("leader-lost-5x.pcap"))
