"""Each view as a picture: what is drawn where, in which colours, is that of `snapshots/`.

`python -m tests.rmqtool.browse.views.test_app_snapshots` makes them anew; look at them then.
"""

from __future__ import annotations

import asyncio
import re
import sys
from contextlib import chdir
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.rmqtool.browse.browsing import SAMPLES, browsing, press, sees

FOLDER: Final = Path(__file__).parent / "snapshots"
_CAPTURE: Final = "leader-lost-5x.pcap"


class View(NamedTuple):
    """What is pressed, and what is on the screen in the end."""

    keys: tuple[str, ...]
    seen: tuple[str, ...]
    size: tuple[int, int] = (100, 30)
    theme: str = "textual-dark"


VIEWS: Final = {
    "exchanges": View((*"jm",), ("CONTROLLER_GET_METADATA_INFO", "1 marked")),
    "exchanges-small-light": View((*"jjmj",), ("1 marked",), (80, 24), "textual-light"),
    "exchanges-wide": View((*"fstatus == unanswered", "enter"), ("1 of 68",), (160, 30)),
    "messages": View(("2",), ("stored", "LeaderTopic")),
    "connections": View(("3",), ("ROCKETMQ", "number of the connection")),
    "problems": View(("4", "j"), ("ERROR", "had no route", "LeaderTopic")),
    "summary": View(("5",), ("Operations", "Verdict")),
    "details": View(("G", "enter", *"jjjj"), ("Request: packet",)),
    "sides": View(("j", "y", *"jjjj"), ("│ Response: packet",)),
    "life": View(("2", "L"), ("── stored ──",)),
    "help": View(("question_mark",), ("Keys", "down, up")),
    "timeline": View(("t", "space", "L", "L"), ("Enter:list rows",)),
    "filter": View((*"ftopc == x",), ("unknown column: 'topc'",)),
}


async def drawn(view: View) -> str:
    """Return the picture of a view."""
    # names of captures are as long wherever the samples are
    with chdir(SAMPLES):
        async with browsing(_CAPTURE, size=view.size) as (browser, pilot):
            browser.theme = view.theme
            await press(browser, pilot, *view.keys)
            await sees(browser, *view.seen)
            for _ in range(3):  # what is drawn settles: scroll bars, focus
                await pilot.pause(0.05)
            browser.line.input.cursor_blink = False
            svg = browser.export_screenshot(title="rmqtool browse")
    return re.sub(r"terminal-\d+-", "terminal-", svg)


@pytest.mark.slow
@pytest.mark.parametrize("name", VIEWS)
def test_each_view_is_as_its_picture(name: str) -> None:
    there = (FOLDER / f"{name}.svg").read_text()
    assert asyncio.run(drawn(VIEWS[name])) == there, f"{name}: {__doc__}"


def test_there_is_a_picture_of_each_view_and_no_other() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(VIEWS)


def main(names: list[str]) -> None:
    """Draw all, or those that are named."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or VIEWS:
        (FOLDER / f"{name}.svg").write_text(asyncio.run(drawn(VIEWS[name])))


if __name__ == "__main__":
    main(sys.argv[1:])
