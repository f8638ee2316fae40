"""When each message is due: the captured pace, faster, at a rate, or as fast as it goes.

Rules: a pace is pure state; due times are nanoseconds since the run began, never earlier than the
one before, and the clock is whoever asks. Texts of the command line become numbers here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dissectors.quantities import duration_ns
from dissectors.times import SECOND

_NUMBER = r"(\d{1,9}(?:\.\d{1,6})?)"
_SPEED = re.compile(rf"{_NUMBER}\s*(x|%|)", re.ASCII)
_RATE = re.compile(rf"{_NUMBER}(?:\s*/\s*(s|min|m|h))?", re.ASCII)
_PER: Final = {"s": 1, "min": 60, "m": 60, "h": 3600}


class PaceError(ValueError):
    """A text that names no speed, rate or duration; says what would be one."""


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """How fast is replayed; without a rate and not at top speed: as captured, times `speed`."""

    speed: Fraction = Fraction(1)
    """how many times faster than captured"""
    rate: Fraction | None = None
    """messages a second, whatever the capture says"""
    top_speed: bool = False
    """nothing is waited for"""
    max_gap: int | None = None
    """ns; a longer gap between two captured messages is cut to that, before the speed counts"""


class Pace:
    """Gives each message its due time, in the order of the plan."""

    def __init__(self, options: PaceOptions) -> None:
        self._options = options
        self._last: int | None = None
        self._at = Fraction(0)
        self._due = 0
        self._count = 0
        self._gaps = 0
        self._gaps_total = 0

    def due(self, time: int, weight: int = 1) -> int:
        """Return when a message captured at `time` is due, ns since the run began.

        `weight` is how many messages it stands for: a batch counts for all of its own at a rate.
        """
        options = self._options
        if options.top_speed:
            return 0
        if options.rate is not None:
            due = int(self._count * SECOND / options.rate)
            self._count += weight
            return due
        if self._last is not None:
            gap = max(0, time - self._last)
            if options.max_gap is not None:
                gap = min(gap, options.max_gap)
            self._gaps += 1
            self._gaps_total += gap
            self._at += gap
        self._last = max(time, self._last or time)
        self._due = int(self._at / options.speed)
        return self._due

    def again(self) -> None:
        """Begin the capture anew: its first message follows after a gap of the usual length."""
        if self._last is not None:
            self._at += self._gaps_total // max(self._gaps, 1)
        self._last = None


def speed_of(text: str) -> Fraction:
    """Return the speed that ``2x``, ``0.5`` or ``50%`` names; PaceError for what names none."""
    match = _SPEED.fullmatch(text.strip().lower())
    if match is None or not Fraction(match[1]):
        raise PaceError(f"{text!r} is not a valid speed; give 2x, 0.5x or 50%")
    return Fraction(match[1]) / (100 if match[2] == "%" else 1)


def rate_of(text: str) -> Fraction:
    """Return the messages a second that ``500/s``, ``500`` or ``30000/min`` names; PaceError
    otherwise.
    """
    match = _RATE.fullmatch(text.strip().lower())
    if match is None or not Fraction(match[1]):
        raise PaceError(f"{text!r} is not a valid rate; give 500/s, 500 or 30000/min")
    return Fraction(match[1]) / _PER[match[2] or "s"]


def duration_of(text: str) -> int:
    """Return the nanoseconds that ``90s``, ``1.5m`` or ``3`` (seconds) name; PaceError
    otherwise.
    """
    length = duration_ns(text, bare="s")
    if length is None:
        raise PaceError(f"not a valid duration: {text!r}; give 90s, 5m, 200ms or 1h")
    return int(length)
