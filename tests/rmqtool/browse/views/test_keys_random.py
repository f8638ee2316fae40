"""Whatever is pressed, clicked or resized: the browser goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from textual import events
from textual.pilot import Pilot

from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.keys import GROUPS, KEYS
from tests.profiles import examples
from tests.rmqtool.browse.browsing import browsing, sample, type_keys, until

_QUIET: Final = ("export", "replay", "save", "quit")
"""actions that write files, start processes or end the program: they have tests of their own"""
_MOVES: Final = (
    *("j", "k", "g", "G", "h", "l", "enter", "escape", "tab", "up", "down", "space", "home", "end"),
    *("ctrl+d", "ctrl+u", "pageup", "pagedown", "v", "left", "right", "backspace", "delete"),
)
_TYPED: Final = "a1=(<>'\"主~é_.:%"
NAMED: Final = tuple(
    key for group in GROUPS.values() for one in group if one.action not in _QUIET
    for key in one.keys.split(",")
)  # fmt: skip

Size = tuple[int, int]
Click = tuple[int, int, bool]
Act = str | Size | Click
ACTS: Final = st.one_of(
    st.sampled_from((*NAMED, *_MOVES)),
    st.sampled_from((*NAMED, *_MOVES)),
    st.sampled_from(_TYPED),
    st.sampled_from([(80, 24), (30, 8), (160, 50), (1, 1), (100, 30)]),
    st.tuples(st.integers(0, 119), st.integers(0, 39), st.booleans()),
)


async def do(browser: FullBrowser, pilot: Pilot[None], acts: Sequence[Act]) -> None:
    """Press, click and resize; wait until that is taken."""
    for act in acts:
        if isinstance(act, str):
            type_keys(browser, act)
        elif len(act) == 2:
            await pilot.resize_terminal(*act)
        else:
            x, y, down = act
            kind = events.MouseDown if down else events.MouseUp
            event = kind(None, x, y, 0, 0, 1, False, False, False, x, y, None)
            event.set_sender(browser)
            browser.post_message(event)
    await pilot.resize_terminal(100, 30)
    type_keys(browser, "escape", "escape", "1")
    await pilot.pause(0)
    await until(lambda: not browser.is_typing, "the keys")


@pytest.mark.slow
@example([*NAMED, *_MOVES])
@example(["minus", "4", "minus", "equals_sign", "3", "minus", "backspace", "5", "minus", "x"])
@example(["f", "主", "=", "enter", "tab", "escape", "t", "space", "G", "enter", "m", "M", "u"])
@example(["c", "backspace", "enter", "question_mark", "2", "q", (1, 1), "j", "y", "b", "o", "L"])
@example([(5, 5, True), (9, 30, False), "tab", "G", (1, 1), "r", "i", "e", "e", "a", "e", "n", "N"])
@examples(0.05)
@given(st.lists(ACTS, max_size=60))
def test_random_keys_never_crash_it(acts: list[Act]) -> None:
    async def whole() -> None:
        async with browsing(sample("leader-lost-5x.pcap"), size=(100, 30)) as (browser, pilot):
            await do(browser, pilot, acts)
            assert browser.is_running
            assert browser.return_code in (None, 0)

    asyncio.run(whole())


def test_all_keys_are_tried_but_those_that_do_something_elsewhere() -> None:
    assert len(NAMED) == len(KEYS) - len(_QUIET)
