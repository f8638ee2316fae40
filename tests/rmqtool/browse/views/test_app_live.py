"""What comes while it is looked at: rows, problems, the limit; the row that is read stays there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from queue import SimpleQueue

import msgspec
from textual.pilot import Pilot

from dissectors.decode.pipeline import Decode, DecodeOptions
from rmqtool.browse.model.disk import PART_ROWS, SEGMENT_ROWS
from rmqtool.browse.model.session import BrowseSession, decoding
from rmqtool.browse.views.actions import FullBrowser
from tests.rmqtool.browse.browsing import browsing_in, sample, sees, shown, type_keys, until
from tests.rmqtool.browse.model.test_export_packets import session_of

CAPTURE = "leader-lost-5x.pcap"


class Growing:
    """A capture that somebody makes longer, as an interface does."""

    name = "eth-test"
    compression: str | None = None
    problem: str | None = None
    size: int | None = None
    bytes_read = 0

    def __init__(self) -> None:
        self._given: SimpleQueue[bytes | None] = SimpleQueue()

    def give(self, data: bytes | None) -> None:
        """Give more; None: that was all."""
        self._given.put(data)

    def chunks(self) -> Iterator[bytes]:
        """Give what is there."""
        while (data := self._given.get()) is not None:
            yield data
            yield b""  # nothing new for a while: what is complete goes on

    def close(self) -> None:
        """Give no more."""
        self._given.put(None)


@asynccontextmanager
async def live() -> AsyncIterator[tuple[FullBrowser, Pilot[None], Growing]]:
    """Give a browser of a capture that grows."""
    source = Growing()
    decode = Decode([source], DecodeOptions(follow=True, conversations=True, messages=True))
    session = BrowseSession(source.name, 1000)
    session.is_live = True

    def stop() -> None:
        decode.stop()
        source.close()

    async with browsing_in(session, decoding(decode), stop) as (browser, pilot):
        yield browser, pilot, source


async def pressed(browser: FullBrowser, pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and wait until they are taken."""
    type_keys(browser, *keys)
    await pilot.pause(0)  # they are there
    await until(lambda: not browser.is_typing, "the keys")


def listed(browser: FullBrowser) -> int:
    """Return how many rows the screen knows."""
    return browser.list_of("exchanges").virtual_size.height - 1


def test_rows_come_and_the_row_that_is_read_stays_until_it_follows() -> None:
    data = Path(sample(CAPTURE)).read_bytes()
    half = len(data) // 2

    async def act() -> None:
        async with live() as (browser, pilot, source):
            rows, store = browser.list_of("exchanges"), browser.session.exchanges
            source.give(data[:half])
            await until(lambda: listed(browser) == store.count > 10, "the first half")
            await pressed(browser, pilot, *"jjj")
            number, line = rows.number, rows.cursor
            assert number == 3
            await pressed(browser, pilot, "p")
            await sees(browser, "paused")
            before, lines = listed(browser), shown(browser)[1:10]
            source.give(data[half:])
            await until(lambda: store.count > before, "the second half")
            await asyncio.sleep(0.5)
            assert (listed(browser), shown(browser)[1:10]) == (before, lines)
            await pressed(browser, pilot, "p")
            await until(lambda: listed(browser) == store.count, "all of it")
            assert (rows.number, rows.cursor) == (number, line)
            await pressed(browser, pilot, "F")
            await until(lambda: rows.cursor == store.count - 1, "the last row")
            await sees(browser, "following")
            await pressed(browser, pilot, "k")
            assert not rows.follow

    asyncio.run(act())


def test_problems_pop_up_as_they_appear() -> None:
    data = Path(sample(CAPTURE)).read_bytes()

    async def act() -> None:
        async with live() as (browser, _, source):
            source.give(data[: len(data) // 8])
            await until(lambda: browser.session.exchanges.count > 2, "the first rows")
            assert not browser._notifications
            source.give(data[len(data) // 8 :])
            await until(lambda: bool(browser._notifications), "a problem", 60)
            # How much was read when the diagnosis was due decides which problem is told first.
            told = list(browser._notifications)[-1].message
            rules = [problem.rule for problem in browser.problem_rows.problems]
            assert told.rpartition("(")[2].removesuffix(")") in rules
            await sees(browser, " ".join(told.split()[:4]))
            assert browser.view == "exchanges"

    asyncio.run(act())


def test_the_oldest_rows_go_and_what_is_listed_goes_with_them() -> None:
    """With and without a filter, also while it is paused: no line without a row."""
    one = session_of(sample("acl-5x.pcap"))
    row = one.exchanges.row(3)
    one.close()
    assert row is not None
    wanted: SimpleQueue[int] = SimpleQueue()

    def filling(session: BrowseSession) -> Iterator[None]:
        while count := wanted.get():
            first = session.exchanges.count
            for start in range(first, first + count, SEGMENT_ROWS):
                numbers = range(start, start + SEGMENT_ROWS)
                session.exchanges.add([msgspec.structs.replace(row, opaque=n) for n in numbers])
            session.version += 1
            yield

    async def act() -> None:
        session = BrowseSession("eth-test", 1)
        session.is_live = True
        async with browsing_in(session, filling, lambda: wanted.put(0)) as (browser, pilot):
            store, table = session.exchanges, browser.tables["exchanges"]
            rows = browser.list_of("exchanges")
            wanted.put(PART_ROWS)
            await until(lambda: listed(browser) == PART_ROWS, "the first part", 60)
            await pressed(browser, pilot, "G", "p")
            number = rows.number
            wanted.put(2 * PART_ROWS - SEGMENT_ROWS)
            await until(lambda: store.first == PART_ROWS, "rows are gone", 60)
            await pressed(browser, pilot, "p")
            await until(lambda: table.seen[0] == PART_ROWS, "the screen knows")
            assert number == PART_ROWS - 1
            assert rows.number == store.first
            browser.filter_by("opaque >= 3")
            await until(lambda: table.listing.is_done, "the filter", 60)
            assert len(table.listing) == store.count - store.first
            wanted.put(PART_ROWS + SEGMENT_ROWS)
            await until(lambda: store.first == 2 * PART_ROWS, "more are gone", 60)
            await until(
                lambda: len(table.listing) == store.count - store.first, "they are not listed", 60
            )
            assert table.listing.row(table.listing.number_at(0) or 0).opaque == store.first

    asyncio.run(act())
