"""A browser over samples, driven by keys."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot

from dissectors.remoting.bodies.custom import NamedDecoder
from rmqtool.browse.model.session import BackgroundReading, BrowseSession, Filling
from rmqtool.browse.model.settings import read_settings
from rmqtool.browse.options import BrowseRequest
from rmqtool.browse.run import opened
from rmqtool.browse.views.actions import FullBrowser
from rmqtool.browse.views.filter_line import LineInput

Act = Callable[[FullBrowser, Pilot[None]], Coroutine[Any, Any, None]]
"""what somebody does with a browser"""
SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def sample(name: str) -> str:
    """Return the path of a sample."""
    return str(SAMPLES / name)


@asynccontextmanager
async def browsing(
    *inputs: str,
    settings: Path | None = None,
    size: tuple[int, int] = (120, 40),
    plugins: tuple[NamedDecoder, ...] = (),
) -> AsyncIterator[tuple[FullBrowser, Pilot[None]]]:
    """Give a browser that has read all, and what presses its keys."""
    session, filling, stop, _ = opened(BrowseRequest(list(inputs)))
    async with browsing_in(session, filling, stop, settings, size, plugins) as (browser, pilot):
        await settled(browser, pilot)
        yield browser, pilot


@asynccontextmanager
async def browsing_in(
    session: BrowseSession,
    filling: Filling,
    stop: Callable[[], None] | None = None,
    settings: Path | None = None,
    size: tuple[int, int] = (120, 40),
    plugins: tuple[NamedDecoder, ...] = (),
) -> AsyncIterator[tuple[FullBrowser, Pilot[None]]]:
    """Give a browser of what `filling` read, which may go on."""
    folder = TemporaryDirectory()
    settings = settings or Path(folder.name) / "browse.json"
    reading = BackgroundReading(session, filling, stop)
    browser = FullBrowser(session, read_settings(settings), settings, plugins)
    try:
        async with browser.run_test(size=size, notifications=True) as pilot:
            yield browser, pilot
    finally:
        reading.stop()
        browser.close()
        folder.cleanup()


async def until(holds: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not in {seconds} s: {what}"
        await asyncio.sleep(0.01)


def wait_for(holds: Callable[[], bool], seconds: float = 20) -> None:
    """Wait until something holds that a thread does."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


async def settled(browser: FullBrowser, pilot: Pilot[None]) -> None:
    """Wait until all was read, done and drawn."""
    end = time.monotonic() + 60
    calm = 0
    while calm < 4:  # a message may become another one
        await pilot.pause(0.001)
        calm = 0 if browser.is_busy else calm + 1
        assert time.monotonic() < end, "still busy"
        if not calm:
            await asyncio.sleep(0.01)
    browser.look()
    await pilot.pause(0)


def type_keys(browser: FullBrowser, *keys: str) -> None:
    """Press keys faster than anybody does: all are there before the first one does something."""
    driver = browser._driver
    assert driver is not None
    for key in keys:
        name = _character_to_key(key) if len(key) == 1 else key
        event = events.Key(name, key if len(key) == 1 else None)
        event.set_sender(browser)
        driver.send_message(event)


async def press(browser: FullBrowser, pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and wait for what they do."""
    type_keys(browser, *keys)
    await settled(browser, pilot)


def shown(browser: FullBrowser) -> list[str]:
    """Return the lines of the screen."""
    height = browser.size.height
    return [
        "".join(segment.text for segment in line).rstrip()
        for line in browser.screen._compositor.render_strips()
    ][:height]


def text(browser: FullBrowser) -> str:
    """Return what is on the screen."""
    return "\n".join(shown(browser))


async def sees(browser: FullBrowser, *texts: str) -> None:
    """Wait until texts are on the screen, which is drawn when there is time for it."""
    end = time.monotonic() + 30
    while missing := [one for one in texts if one not in text(browser)]:
        assert time.monotonic() < end, f"{missing} not in\n{text(browser)}"
        await asyncio.sleep(0.02)


def run(
    act: Act,
    *inputs: str,
    size: tuple[int, int] = (120, 40),
    settings: Path | None = None,
    plugins: tuple[NamedDecoder, ...] = (),
) -> None:
    """Let somebody act in a browser over samples."""

    async def whole() -> None:
        given = browsing(*inputs, size=size, settings=settings, plugins=plugins)
        async with given as (browser, pilot):
            await act(browser, pilot)

    asyncio.run(whole())


async def fill(browser: FullBrowser, pilot: Pilot[None], line: str) -> None:
    """Put something into the line that is open, and finish it."""
    browser.query_one(LineInput).value = line
    await press(browser, pilot, "enter")
