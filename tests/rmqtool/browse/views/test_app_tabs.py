"""Tabs with key, name and count, and the keys that matter in a view."""

from __future__ import annotations

from textual.pilot import Pilot

from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.keys import KEYS_OF
from tests.rmqtool.browse.browsing import press, run, sample, sees, shown


def test_tabs_say_key_name_and_count() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await sees(browser, "[1] Exchanges 181  [2] Messages ", "[3] Connections ", "[5] Summary")
        await press(browser, pilot, "4")
        await sees(browser, "[4] Problems 4", KEYS_OF["problems"])

    run(act, sample("fault-kill-5x.pcap"), size=(160, 30))


def test_a_narrow_screen_has_the_tab_of_its_view() -> None:
    async def act(browser: FullBrowser, pilot: Pilot[None]) -> None:
        await press(browser, pilot, "4")
        await sees(browser, "[4] Problems 4  1-5")
        assert "Exchanges" not in shown(browser)[0]

    run(act, sample("fault-kill-5x.pcap"), size=(60, 20))
