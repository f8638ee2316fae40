"""Times as text and back."""

from __future__ import annotations

import re

import pytest

from dissectors.times import DAY, UTC_ZONE, moment_of, text_of_time, zone_named

from .made_rows import START


def test_times_come_back() -> None:
    for ns in (0, START, START + 999_999_000, 4_102_444_800_000_000_000):
        moment = moment_of(text_of_time(ns))
        assert moment is not None
        assert moment.ns == ns
        assert moment.has_date


@pytest.mark.parametrize(
    "text", ["", "x", "10", "25:00", "2026-13-01", "2026-11-20T", "2026-11-20Z"]
)
def test_what_is_no_time(text: str) -> None:
    assert moment_of(text) is None


def test_times_that_no_calendar_has_are_shown_as_its_ends() -> None:
    assert text_of_time(2**80).startswith("9999-12-31T23:59:59")
    assert text_of_time(-1).startswith("1970-01-01T00:00:00")


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-11-20T10:00", START),
        ("2026-11-20 10:00:00", START),
        ("2026-11-20T18:00:00+08:00", START),
        ("2026-11-20T05:30:00-0430", START),
        ("2026-11-20T10:00:00.000000001Z", START + 1),
        ("2026-11-20T10:00:00,5", START + 500_000_000),
        ("2026-11-20", START - 36_000 * 10**9),
    ],
)
def test_ways_to_write_a_time(text: str, ns: int) -> None:
    moment = moment_of(text)
    assert moment is not None
    assert moment.ns == ns
    assert moment.has_date


def test_a_time_of_day() -> None:
    moment = moment_of("9:05:03.25")
    assert moment is not None
    assert (moment.ns, moment.has_date) == (32_703_250_000_000, False)


@pytest.mark.parametrize(
    ("text", "zone"), [("10:46:20+08:00", "+08:00"), ("20:00-0430", "-0430"), ("9:00Z", "UTC")]
)
def test_a_time_of_day_with_an_offset_is_one_of_that_zone(text: str, zone: str) -> None:
    assert moment_of(text) == moment_of(re.split("[-+Z]", text)[0], zone_named(zone) or UTC_ZONE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("01:00+08:00", "2026-11-19T17:00:00.000000Z"),
        ("10:00+08:00", "2026-11-20T02:00:00.000000Z"),
        ("20:00-04:30", "2026-11-21T00:30:00.000000Z"),
    ],
)
def test_a_time_of_day_with_an_offset_is_on_the_day_there(text: str, expected: str) -> None:
    moment = moment_of(text)
    assert moment is not None
    assert text_of_time(moment.on_day_of(START)) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Asia/Shanghai", "2026-11-20T18:00:00.000000+08:00"),
        ("+08:00", "2026-11-20T18:00:00.000000+08:00"),
        ("-0330", "2026-11-20T06:30:00.000000-03:30"),
        ("America/New_York", "2026-11-20T05:00:00.000000-05:00"),
        ("Asia/Kathmandu", "2026-11-20T15:45:00.000000+05:45"),
    ],
)
def test_zones_show_and_read_their_own_times(name: str, text: str) -> None:
    zone = zone_named(name)
    assert zone is not None
    assert zone.text(START) == text
    for written in (text, text[:-6]):
        moment = moment_of(written, zone)
        assert moment is not None
        assert moment.ns == START


def test_a_zone_knows_summer_and_winter() -> None:
    zone = zone_named("Europe/Berlin")
    assert zone is not None
    summer, winter = moment_of("2026-07-01T12:00", zone), moment_of("2026-12-01T12:00", zone)
    assert summer is not None
    assert winter is not None
    assert text_of_time(summer.ns)[11:16] == "10:00"
    assert text_of_time(winter.ns)[11:16] == "11:00"


@pytest.mark.parametrize(
    ("name", "local", "utc"),
    [
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T01:30"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T06:30"),
        ("America/New_York", "2026-11-01T00:30", "2026-11-01T04:30"),
        ("America/New_York", "2026-11-01T02:30", "2026-11-01T07:30"),
    ],
)
def test_a_time_that_clocks_show_twice_is_the_later_one(name: str, local: str, utc: str) -> None:
    zone = zone_named(name)
    assert zone is not None
    moment = moment_of(local, zone)
    assert moment is not None
    assert text_of_time(moment.ns)[:16] == utc


def test_a_time_of_day_is_of_the_day_that_the_clocks_show() -> None:
    zone = zone_named("Asia/Shanghai")
    assert zone is not None
    evening = START + 8 * 3600 * 10**9  # 18:00 in UTC, 02:00 of the next day in Shanghai
    moment = moment_of("01:30", zone)
    assert moment is not None
    assert text_of_time(moment.on_day_of(evening)) == "2026-11-20T17:30:00.000000Z"
    assert moment.ns < DAY


@pytest.mark.parametrize(
    "name", ["", "Nowhere", "../etc/passwd", "/etc/passwd", "Europe", "+8", "\0"]
)
def test_what_is_no_zone(name: str) -> None:
    assert zone_named(name) is None


def test_the_local_zone_is_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        zone = zone_named("local")
        assert zone is not None
        assert zone.text(START).endswith("+08:00")
    finally:
        monkeypatch.undo()
        time.tzset()
    assert zone_named("utc") is UTC_ZONE
