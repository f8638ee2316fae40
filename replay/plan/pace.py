"""Due times of messages: at the captured pace, faster, at a rate, or at top speed.

Rules: a pace is pure state without a clock; due times are nanoseconds since the run began and never
decrease. Command line texts are parsed here.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dissectors.quantities import duration_ns
from dissectors.times import SECOND

_NUMBER = r"(\d{1,9}(?:\.\d{1,6})?)"
_SPEED = re.compile(rf"{_NUMBER}\s*(x|%|)", re.ASCII)
_RATE = re.compile(rf"{_NUMBER}(?:\s*/\s*(s|min|m|h))?", re.ASCII)
_RAMP: Final = re.compile(rf"{_NUMBER}\s*\.\.\s*{_NUMBER}\s*/(.+)", re.ASCII)
_PER: Final = {"s": 1, "min": 60, "m": 60, "h": 3600}
_RATE_HINT: Final = "give 500/s, 500, 30000/min, or a ramp such as 100..5000/5m"


class PaceError(ValueError):
    """A text is not a speed, rate, or duration; the error describes valid texts."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Messages per second: constant, or a linear ramp that ends in a constant rate."""

    last: Fraction
    """messages per second, after the ramp; positive"""
    first: Fraction | None = None
    """messages per second when the ramp begins; None: there is no ramp"""
    ramp: int = 0
    """ns from the first rate to the last"""

    def due(self, count: int) -> int:
        """Return when message number `count` (from 0) is due, ns since the run began."""
        if self.first is None:
            return int(count * SECOND / self.last)
        over = Fraction(self.ramp, SECOND)
        beyond = count - (self.first + self.last) * over / 2
        if beyond >= 0:
            return self.ramp + int(beyond * SECOND / self.last)
        if not count:
            return 0
        # count = first * t + slope * t * t / 2, solved for t in the form that also takes slope 0
        slope = (self.last - self.first) / over
        root = math.sqrt(self.first * self.first + 2 * slope * count)
        return min(self.ramp, int(2 * count * SECOND / (float(self.first) + root)))

    def __str__(self) -> str:
        """Return the rate as text."""
        last = f"{float(self.last):,.6g}/s"
        if self.first is None:
            return last
        over = f"{self.ramp / SECOND:g} s"
        return f"{float(self.first):,.6g}/s to {last} over {over}, then constant"


@dataclass(frozen=True, slots=True)
class PaceOptions:
    """Pace settings; without a rate or top speed: as captured, times `speed`."""

    speed: Fraction = Fraction(1)
    """how many times faster than captured"""
    rate: Rate | None = None
    """messages a second, whatever the capture says"""
    top_speed: bool = False
    """send without waiting"""
    max_gap: int | None = None
    """ns; a longer gap between two captured messages is cut to that, before the speed counts"""

    def __str__(self) -> str:
        """Return the pace as text."""
        if self.top_speed:
            return "top speed"
        if self.rate is not None:
            return str(self.rate)
        return "as captured" if self.speed == 1 else f"{float(self.speed):g}x the captured pace"


class Pace:
    """Computes the due time of each message, in plan order."""

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

        `weight` is the number of messages: at a rate, a batch counts all of its messages.
        """
        options = self._options
        if options.top_speed:
            return 0
        if options.rate is not None:
            due = options.rate.due(self._count)
            self._count += weight
            return due
        if self._last is not None:
            # captured times may step back, due times must not
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
        """Start the capture again: its first message follows after an average gap."""
        if self._last is not None:
            self._at += self._gaps_total // max(self._gaps, 1)
        self._last = None


def speed_of(text: str) -> Fraction:
    """Parse a speed such as ``2x``, ``0.5``, or ``50%``; PaceError if invalid."""
    match = _SPEED.fullmatch(text.strip().lower())
    if match is None or not Fraction(match[1]):
        raise PaceError(f"{text!r} is not a valid speed; give 2x, 0.5x or 50%")
    return Fraction(match[1]) / (100 if match[2] == "%" else 1)


def rate_of(text: str) -> Rate:
    """Parse a rate such as ``500/s``, ``500``, ``30000/min``, or the ramp ``100..5000/5m``.

    The numbers of a ramp are messages per second. Raises PaceError if invalid.
    """
    words = text.strip().lower()
    match = _RATE.fullmatch(words)
    if match is not None and Fraction(match[1]):
        return Rate(Fraction(match[1]) / _PER[match[2] or "s"])
    ramp = _RAMP.fullmatch(words)
    over = None if ramp is None else duration_ns(ramp[3])
    if ramp is None or not over or not int(over) or not Fraction(ramp[2]):
        raise PaceError(f"{text!r} is not a valid rate; {_RATE_HINT}")
    return Rate(Fraction(ramp[2]), Fraction(ramp[1]), int(over))


def duration_of(text: str) -> int:
    """Parse ``90s``, ``1.5m``, or ``3`` (seconds) to nanoseconds; PaceError if invalid."""
    length = duration_ns(text, bare="s")
    if length is None:
        raise PaceError(f"not a valid duration: {text!r}; give 90s, 5m, 200ms or 1h")
    return int(length)
