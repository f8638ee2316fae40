"""One grammar of durations and sizes, wherever they are written."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dissectors.quantities import DURATION_UNITS, counted, duration_ns, size_bytes
from dissectors.where.fields import exchange_fields
from dissectors.where.filter import compile_where
from replay.plan.pace import duration_of
from replay.sandbox.injection.injection import duration_ms
from rmqtool.ui.option_values import duration_option, size_option

from .made_rows import record


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1ns", 1),
        ("2us", 2_000),
        ("2µs", 2_000),
        ("2μs", 2_000),
        ("1.5ms", 1_500_000),
        ("3 S", 3_000_000_000),
        ("2m", 120_000_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1d", 86_400_000_000_000),
        ("0s", 0),
    ],
)
def test_a_duration_is_the_same_everywhere(text: str, ns: int) -> None:
    assert duration_ns(text) == ns
    assert duration_of(text) == ns
    assert duration_option("--x", text) == ns
    assert duration_ms(text) == round(ns / 1_000_000)
    row = record(latency_us=max(1, ns // 1000))
    if ns >= 1000:
        assert compile_where(f"latency == {text}", exchange_fields())(row)


@pytest.mark.parametrize("text", ["", "x", "s", "-1s", "1x", "1 2s", "1e3s", "²s", "1" * 20 + "s"])
def test_what_is_no_duration(text: str) -> None:
    assert duration_ns(text, bare="s") is None


def test_a_number_without_a_unit_is_of_the_unit_that_is_named() -> None:
    assert duration_ns("3") is None
    assert duration_ns("3", bare="s") == 3 * DURATION_UNITS["s"]
    assert duration_ns("0.5", bare="ms") == Fraction(500_000)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("0", 0),
        ("4KiB", 4096),
        ("4 kb", 4000),
        ("1.5MiB", 1_572_864),
        ("2GB", 2 * 10**9),
    ],
)
def test_a_size_is_the_same_everywhere(text: str, size: int) -> None:
    assert size_bytes(text) == size
    assert size_option("--x", text) == size
    assert compile_where(f"body_bytes == {text}", exchange_fields())(record(body_bytes=size))


@pytest.mark.parametrize("text", ["", "much", "1TB", "-1", "1KiB1", "1s"])
def test_what_is_no_size(text: str) -> None:
    assert size_bytes(text) is None


def test_counts() -> None:
    assert counted(1, "gap") == "1 gap"
    assert counted(1234, "gap") == "1,234 gaps"
    assert counted(2, "reply was", "replies were") == "2 replies were"
