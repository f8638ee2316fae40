"""Texts of options that several commands have as values."""

from __future__ import annotations

import pytest

from dissectors.times import Moment
from rmqtool.ui.option_values import ports_of, size_option, time_option, until_option
from rmqtool.ui.status import CommandError, ExitStatus


@pytest.mark.parametrize(
    ("texts", "ports"),
    [
        ([], set()),
        (["9999"], {9999}),
        (["9999", "8081"], {9999, 8081}),
        (["9999,8081"], {9999, 8081}),
        (["tcp.port==9999"], {9999}),
        (["tcp.port == 9999, rocketmq"], {9999}),
        (["tcp.dstport==1"], {1}),
    ],
)
def test_decode_as(texts: list[str], ports: set[int]) -> None:
    assert ports_of(texts) == ports


@pytest.mark.parametrize("text", ["", "0", "65536", "http", "9999,x", "udp.port==1", "-1"])
def test_what_is_no_port(text: str) -> None:
    with pytest.raises(CommandError) as caught:
        ports_of([text])
    assert caught.value.status is ExitStatus.USAGE


@pytest.mark.parametrize(
    ("text", "size"),
    [(None, None), ("0", 0), ("512", 512), ("4KiB", 4096), ("4 kb", 4000), ("1MiB", 1 << 20)],
)
def test_sizes(text: str | None, size: int | None) -> None:
    assert size_option("--body-limit", text) == size


def test_times() -> None:
    assert time_option("--since", None) is None
    assert time_option("--since", "10:00") == Moment(36_000_000_000_000, False)


def test_a_range_of_times_with_an_offset_is_compared_where_its_clocks_are() -> None:
    since = time_option("--since", "07:00+08:00")  # 23:00 in UTC
    assert until_option("--until", "09:00+08:00", since) is not None
    with pytest.raises(CommandError, match="the range is empty"):
        until_option("--until", "06:00+08:00", since)
