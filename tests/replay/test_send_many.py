"""Feeds and the run over them: order, bounds, rates, ends."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.send_many import BatchFeed, Feed, IteratorFeed, LineFeed
from tests.patience import PATIENCE


async def _all(feed: Feed[bytes]) -> list[bytes]:
    items = []
    while (item := await feed.next()) is not None:
        items.append(item)
    return items


@given(data=st.lists(st.sampled_from([b"a", b"\n", b"bc", b"\r\n"]), max_size=60).map(b"".join))
def test_lines_of_a_file_and_of_a_pipe(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("lines") / "lines"
    path.write_bytes(data)

    async def of_file() -> list[bytes]:
        number = os.open(path, os.O_RDONLY)
        try:
            return await _all(LineFeed(number, lambda line: line, 1 << 20))
        finally:
            os.close(number)

    async def of_pipe() -> list[bytes]:
        reader, writer = os.pipe()

        async def write() -> None:
            for at in range(0, len(data), 7):
                os.write(writer, data[at : at + 7])
                await asyncio.sleep(0)
            os.close(writer)

        writing = asyncio.create_task(write())
        try:
            return await _all(LineFeed(reader, lambda line: line, 1 << 20))
        finally:
            await writing
            os.close(reader)

    expected = data.split(b"\n") if data else []
    assert asyncio.run(of_file()) == expected
    assert asyncio.run(of_pipe()) == expected


def test_a_device_is_read_though_no_loop_can_wait_for_it() -> None:
    async def run() -> list[bytes]:
        number = os.open(os.devnull, os.O_RDONLY)
        try:
            return await _all(LineFeed(number, lambda line: line, 100))
        finally:
            os.close(number)

    assert asyncio.run(run()) == []


def test_a_line_without_end_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "zeros"
    path.write_bytes(bytes(1_000_000))

    async def lengths() -> list[int]:
        number = os.open(path, os.O_RDONLY)
        try:
            return [len(line) for line in await _all(LineFeed(number, lambda line: line, 100_000))]
        finally:
            os.close(number)

    found = asyncio.run(lengths())
    assert sum(found) == 1_000_000
    assert max(found) <= 100_000 + 65_536


def test_a_pipe_is_not_read_further_than_needed() -> None:
    async def held() -> int:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        feed = LineFeed(reader, lambda line: line, 1 << 20)
        written = taken = 0
        for _ in range(200):
            try:
                written += os.write(writer, (b"x" * 8191 + b"\n") * 8)
            except BlockingIOError:
                await asyncio.sleep(0.001)
            if written < 8192 * 8 * 2:
                await feed.next()
                taken += 8192
        await asyncio.sleep(0.05)
        os.close(writer)
        feed.close()
        with open(reader, "rb") as file:
            return written - taken - len(file.read())

    assert asyncio.run(held()) <= (1 << 20) + 65_536


def test_batches_hold_what_goes_together() -> None:
    async def batches(most: int) -> list[list[int]]:
        numbers = IteratorFeed(iter([1, 1, 1, 2, 2, 3, 1]))
        feed = BatchFeed(numbers, most, lambda one, two: one == two)
        found = []
        while (batch := await feed.next()) is not None:
            found.append(list(batch))
        return found

    assert asyncio.run(batches(2)) == [[1, 1], [1], [2, 2], [3], [1]]
    assert asyncio.run(batches(9)) == [[1, 1, 1], [2, 2], [3], [1]]
    assert asyncio.run(batches(1)) == [[1], [1], [1], [2], [2], [3], [1]]


def test_a_closed_feed_lets_nobody_wait() -> None:
    async def run() -> list[bytes | None]:
        reader, writer = os.pipe()
        feed = LineFeed(reader, lambda line: line, 1 << 20)
        waiting = [asyncio.create_task(feed.next()) for _ in range(3)]
        await asyncio.sleep(0.02)
        feed.close()
        found = await asyncio.wait_for(asyncio.gather(*waiting), PATIENCE)
        os.close(reader)
        os.close(writer)
        return list(found)

    assert asyncio.run(run()) == [None, None, None]
