"""Latency distributions and their parser.

`20ms` constant, `20ms..200ms` uniform, `exp:50ms` exponential with a mean, `normal:50ms,10ms` mean
and deviation, `lognormal:20ms,500ms` median and 99th percentile.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final

from dissectors.quantities import DURATIONS_SPELLED, duration_ns

from ..errors import SandboxError

_P99: Final = 2.3263478740408408
"""99th percentile of the standard normal distribution."""
_LONGEST_MS: Final = 3_600_000.0
_SHAPES: Final = {"fixed": 1, "uniform": 2, "exp": 1, "normal": 2, "lognormal": 2}
"""shape → how many durations it has"""


def duration_ms(text: str) -> int:
    """Parse `20ms`, `1.5s`, `2m`, or `1h` to milliseconds; SandboxError if invalid."""
    length = duration_ns(text)
    if length is None:
        hint = f"give a number and a unit ({DURATIONS_SPELLED}): 20ms"
        raise SandboxError(f"not a valid duration: {text!r}", hint)
    return round(length / 1_000_000)


@dataclass(frozen=True, slots=True)
class Latency:
    """A distribution of latencies."""

    shape: str
    """fixed, uniform, exp, normal or lognormal"""
    first_ms: float
    """the latency; the least; the mean; the median"""
    second_ms: float = 0.0
    """the most; the deviation; the 99th percentile"""

    def draw(self, chance: random.Random) -> float:
        """Return a latency in seconds."""
        # a normal distribution gives negative numbers, an exponential one has no end
        return min(max(0.0, self._draw_ms(chance)), _LONGEST_MS) / 1000

    def _draw_ms(self, chance: random.Random) -> float:
        first, second = self.first_ms, self.second_ms
        if self.shape == "uniform":
            return chance.uniform(first, second)
        if self.shape == "exp":
            return chance.expovariate(1 / first) if first > 0 else 0.0
        if self.shape == "normal":
            return chance.gauss(first, second)
        if self.shape == "lognormal" and first > 0:
            return chance.lognormvariate(math.log(first), math.log(second / first) / _P99)
        return first

    def __str__(self) -> str:
        first = f"{self.first_ms:g}ms"
        if self.shape == "fixed":
            return first
        second = f"{self.second_ms:g}ms"
        if self.shape == "uniform":
            return f"{first}..{second}"
        return f"{self.shape}:{first}" + ("" if self.shape == "exp" else f",{second}")


def latency_of(text: str) -> Latency:
    """Parse a latency distribution; SandboxError if invalid."""
    shape, colon, rest = text.strip().partition(":")
    if not colon:
        shape, rest = ("uniform", text) if ".." in text else ("fixed", text)
    separator = ".." if shape == "uniform" else ","
    parts = [part.strip() for part in rest.split(separator)]
    if _SHAPES.get(shape) != len(parts):
        raise SandboxError(
            f"{text!r} is not a valid latency",
            "for example 20ms, 20ms..200ms, exp:50ms, normal:50ms,10ms or lognormal:20ms,500ms",
        )
    try:
        durations = [float(duration_ms(part)) for part in parts]
    except SandboxError as error:
        raise SandboxError(f"{text!r} is not a valid latency", error.hint) from None
    latency = Latency(shape, *durations)
    if shape in ("uniform", "lognormal") and latency.second_ms < latency.first_ms:
        raise SandboxError(f"latency {text!r}: the second duration is below the first")
    return latency
