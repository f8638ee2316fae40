"""Rows with their times as text: what JSON lines need, and the costly part of writing them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from mypy_extensions import i64

from ..times import SECOND, text_of_time
from .record import ExchangeRecord

SECONDS_KEPT: Final = 4096
"""texts of seconds that are kept; a file has many rows a second"""


def with_text_times(records: Sequence[ExchangeRecord]) -> list[ExchangeRecord]:
    """Copy of rows that have the text of a time where the time was.

    The copies break the type of the record, so they must go nowhere but into an encoder: copying
    and setting two fields costs a sixth of building another struct of the same columns.
    """
    seconds: dict[int, str] = {}
    timed: list[ExchangeRecord] = []
    for record in records:
        request_time = record.request_time
        response_time = record.response_time
        timed.append(
            replace(
                record,
                request_time=None if request_time is None else text_of(request_time, seconds),
                response_time=None if response_time is None else text_of(response_time, seconds),
            )
        )
    return timed


def text_of(ns: int, seconds: dict[int, str]) -> str:
    """Return the text of a time, with that of its second taken from those that were made before.

    `seconds` keeps the texts of seconds.
    """
    second = ns // SECOND
    text = seconds.get(second)
    if text is None:
        if len(seconds) >= SECONDS_KEPT:
            seconds.clear()
        text = text_of_time(second * SECOND)[:-7]
        seconds[second] = text
    micros: i64 = (ns - second * SECOND) // 1000
    return text + str(1_000_000 + micros)[1:] + "Z"
