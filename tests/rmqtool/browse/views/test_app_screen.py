"""The screen as a whole: keys in order, sizes, no colours, nothing from the wire that steers it."""

from __future__ import annotations

import time

import pytest
from textual.pilot import Pilot

from rmqtool.browse.model.listing import Chosen, Listing
from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.details import Details
from rmqtool.browse.views.filter_line import LineInput
from tests.rmqtool.browse.browsing import press, run, sample, sees, settled, shown


def test_keys_that_arrive_together_go_where_they_belong() -> None:
    """The first opens a line, a list or a text: the next are for that."""

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, *"fstatus == qxm")
        assert browser.query_one(LineInput).value == "status == qxm"
        table, rows = browser.tables["exchanges"], browser.list_of("exchanges")
        await press(browser, pilot, "escape", *"flatency > 1us", "enter", *"jjm")
        assert table.filter == "latency > 1us"
        assert (rows.cursor, len(table.marks)) == (3, 1)
        await press(browser, pilot, *"/register", "enter", "question_mark", "escape", "2", "j")
        assert browser.searched == "register"
        assert (browser.view, browser.list_of("messages").cursor) == ("messages", 1)

    run(act, sample("leader-lost-5x.pcap"))


def test_keys_behind_a_filter_wait_for_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    look = Listing._look

    def slow(listing: Listing, chosen: Chosen) -> None:
        time.sleep(0.3)
        look(listing, chosen)

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        monkeypatch.setattr(Listing, "_look", slow)
        await press(browser, pilot, *"flatency > 1us", "enter", *"jjm")
        assert (browser.list_of("exchanges").cursor, len(browser.tables["exchanges"].marks)) == (
            3,
            1,
        )
        monkeypatch.setattr("rmqtool.browse.views.app.PATIENCE", 0.05)
        await press(browser, pilot, "x", "question_mark")
        assert len(browser.screen_stack) == 2  # no key waits longer than that

    run(act, sample("leader-lost-5x.pcap"))


def test_without_colours_there_are_none_and_what_is_chosen_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        found = set()
        for keys in ("jm", "frespon", ("escape", "4"), "5", ("1", "t"), ("t", "question_mark")):
            await press(browser, pilot, *keys)
            strips = browser.screen._compositor.render_strips()
            for segment in (one for strip in strips for one in strip if one.style):
                found |= {segment.style.color, segment.style.bgcolor}
                if segment.text.startswith("server_address"):
                    assert segment.style.underline
        assert all(one is None or one.is_default for one in found)
        await press(browser, pilot, "escape")
        await sees(browser, "!")
        cursor = browser.screen._compositor.render_strips()[4]
        assert all(one.style.reverse for one in list(cursor)[:-1] if one.style)
        assert shown(browser)[3].startswith("●")

    run(act, sample("leader-lost-5x.pcap"))


@pytest.mark.parametrize("size", [(80, 24), (120, 30), (160, 45), (40, 8)])
def test_it_fits_terminals(size: tuple[int, int]) -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await sees(browser, "GET_ROUTE")
        lines = shown(browser)
        assert len(lines) == size[1]
        assert all(len(line) <= size[0] for line in lines)
        assert "q:quit" in lines[-1]

    run(act, sample("acl-5x.pcap"), size=size)


def test_all_commands_are_found_by_name_and_done() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "ctrl+p")
        await sees(browser, "exchanges", "Views: 1")
        await press(browser, pilot, *"what is wrong")
        await sees(browser, "problems: what is wrong", "Views: 4")
        await press(browser, pilot, "enter")
        await settled(browser, pilot)
        if browser.view != "problems":  # the first Enter goes to what is found
            await press(browser, pilot, "enter")
        assert browser.view == "problems"
        await press(browser, pilot, "ctrl+p", *"screenshot")
        await sees(browser, "No matches found")

    run(act, sample("acl-5x.pcap"))


def test_a_double_click_opens_the_details() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        rows = browser.list_of("exchanges")
        await pilot.click(rows, offset=(20, 3), times=2)
        await settled(browser, pilot)
        assert rows.cursor == 2
        assert browser.focused is not None
        assert browser.query_one(Details) in browser.focused.ancestors_with_self

    run(act, sample("acl-5x.pcap"))
