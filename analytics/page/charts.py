"""Charts of the HTML page as SVG text: lines over time, heat map.

Rules: a chart is made of numbers and of texts that were escaped (`escaped`); it has no script, no
style of its own and no address in it, only classes that the page gives colours to, so it is right
on light and dark screens and on paper. Marks have titles, which a pointer shows and a screen reader
reads. An absent number is a gap in a line, never a zero.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dissectors.printable import printable, shortened

from ..report import Row

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 74, 14, 14, 34
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Show = Callable[[object], str]
"""Value -> text for people."""
SERIES = 8
"""Colours that the page has for series."""
_MOST_TEXT = 4000
"""characters of one text: a paragraph of ours has fewer; cells are cut before"""
_STEPS_US = (
    *(n * unit for unit in (1_000, 10_000, 100_000, 1_000_000) for n in (1, 2, 5)),
    *(n * 1_000_000 for n in (10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(n * 3_600_000_000 for n in (1, 2, 3, 6, 12, 24, 48, 168)),
)


def escaped(value: object) -> str:
    """Return text as HTML and SVG can show it: printable, of a readable length, never markup."""
    return html.escape(printable(shortened(str(value), _MOST_TEXT)), quote=True)


def micros_of(value: object) -> int | None:
    """Return a time of a table as microseconds since the epoch."""
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else None


def number_of(value: object) -> float | None:
    """Return a number that can be drawn."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def short(text: str, most: int) -> str:
    """Return a text that has at most so many characters, its middle left out."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Time from left to right."""

    first: int
    """microseconds since the epoch at the left end"""
    last: int
    """the same at the right end"""
    left: float = LEFT
    """where the left end is"""

    def x(self, micros: float) -> float:
        """Return where a time is."""
        span = max(1, self.last - self.first)
        share = (min(max(micros, self.first), self.last) - self.first) / span
        return self.left + share * (WIDTH - RIGHT - self.left)

    def marks(self, top: float, bottom: float) -> list[str]:
        """Return the grid and the times under it."""
        span = max(1, self.last - self.first)
        fit = max(2, int((WIDTH - RIGHT - self.left) / 105))
        step = next((one for one in _STEPS_US if span / one <= fit), span)
        parts = []
        at = -(-self.first // step) * step
        while at <= self.last:
            x = self.x(at)
            parts.append(f'<line class="grid" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{bottom}"/>')
            anchor = "end" if x > WIDTH - 3 * RIGHT else "middle"
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{bottom + 15}" text-anchor="{anchor}">'
                f"{self.label(at, step)}</text>"
            )
            at += step
        day = (EPOCH + timedelta(microseconds=self.first)).strftime("%Y-%m-%d UTC")
        parts.append(
            f'<text class="tick dim" x="{WIDTH - RIGHT}" y="{bottom + 29}" text-anchor="end">'
            f"{day}</text>"
        )
        return parts

    @staticmethod
    def label(micros: int, step: int) -> str:
        """Return a time as it stands under the axis."""
        moment = EPOCH + timedelta(microseconds=micros)
        if step >= 86_400_000_000:
            return moment.strftime("%m-%d")
        if step >= 60_000_000:
            return moment.strftime("%H:%M")
        if step >= 1_000_000:
            return moment.strftime("%H:%M:%S")
        return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"


@dataclass(frozen=True, slots=True)
class LogAxis:
    """Numbers from bottom to top, each power of ten as high as the other."""

    low: float
    """at the bottom"""
    high: float
    """at the top"""
    top: float
    """where the top is"""
    bottom: float
    """where the bottom is"""
    below: bool = False
    """some values are below the lowest power of ten: they are at the bottom"""

    @classmethod
    def of(cls, values: Iterable[float], top: float, bottom: float) -> LogAxis:
        """Return the axis that has all values; those below 1 are at the bottom."""
        values = list(values)
        known = [max(1.0, value) for value in values] or [1.0, 10.0]
        low = 10 ** math.floor(math.log10(min(known)))
        high = 10 ** math.ceil(math.log10(max(known)))
        below = any(value < low for value in values)
        return cls(low, max(high, low * 10), top, bottom, below)

    def y(self, value: float) -> float:
        """Return where a number is."""
        share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return self.bottom - min(1.0, share) * (self.bottom - self.top)

    def marks(self, show: Show) -> list[str]:
        """Return the grid and the numbers beside it."""
        parts = []
        value = self.low
        while value <= self.high * 1.001:
            y = self.y(value)
            most = "≤ " if self.below and value == self.low else ""
            parts.append(
                f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>'
                f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
                f"{most}{escaped(_rounded(show(round(value))))}</text>"
            )
            value *= 10
        return parts


def _rounded(text: str) -> str:
    """Return ``10ms`` for ``10.0ms``: powers of ten need no digits behind the point."""
    return re.sub(r"\.0+(?=\D|$)", "", text)


def svg(height: float, label: str, parts: Iterable[str]) -> str:
    """Return a chart."""
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="{escaped(label)}">{"".join(parts)}</svg>'
    )


def legend(names: Sequence[tuple[str, str]]) -> str:
    """Return what the colours mean: (class, text)."""
    items = "".join(
        f'<li><span class="key {kind}"></span>{escaped(name)}</li>' for kind, name in names
    )
    return f'<ul class="legend">{items}</ul>'


Point = tuple[int, float | None]
"""Microseconds since the epoch, number; None interrupts a line."""


def points_of(rows: Iterable[Row], x: str, y: str, width: str = "") -> list[Point]:
    """Return the points of a line in order; a window that is not there interrupts it.

    `width` is the column with the length of a window in microseconds; empty: points are joined.
    """
    points: list[Point] = []
    known = [(at, row) for row in rows if (at := micros_of(row.get(x))) is not None]
    for at, row in sorted(known, key=lambda one: one[0]):
        length = number_of(row.get(width)) if width else None
        if points and length is not None and at - points[-1][0] > 1.5 * length:
            points.append((at, None))
        points.append((at, number_of(row.get(y))))
    return points


def lines_chart(title: str, lines: Mapping[str, Sequence[Point]], show: Show) -> str:
    """Return lines over time, logarithmic, with what their colours mean."""
    top, bottom = TOP, 240
    lines = {name: line for name, line in lines.items() if any(v is not None for _, v in line)}
    known = [(at, value) for line in lines.values() for at, value in line if value is not None]
    if not known:
        return ""
    times = TimeAxis(min(at for at, _ in known), max(at for at, _ in known))
    axis = LogAxis.of((value for _, value in known), top, bottom)
    parts = [*axis.marks(show), *times.marks(top, bottom)]
    for number, (name, line) in reversed(list(enumerate(lines.items()))):  # the first on top
        parts.append(_line(line, number, name, times, axis, show))
    keys = [(f"s{number % SERIES}", name) for number, name in enumerate(lines)]
    return svg(bottom + BOTTOM, title, parts) + legend(keys)


def _line(
    points: Sequence[Point], number: int, name: str, times: TimeAxis, axis: LogAxis, show: Show
) -> str:
    """Return one line with a mark for each number."""
    kind = f"s{number % SERIES}"
    path, dots, pen = [], [], "M"
    for at, value in points:
        if value is None:
            pen = "M"
            continue
        x, y = times.x(at), axis.y(value)
        path.append(f"{pen}{x:.1f} {y:.1f}")
        said = escaped(f"{name} {show(round(value))} at {times.label(at, 1000)}")
        dots.append(
            f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.6"><title>{said}</title>'
            "</circle>"
        )
        pen = "L"
    return f'<path class="line {kind}" d="{" ".join(path)}"/>{"".join(dots)}'


def heat_chart(
    title: str,
    rows: Sequence[Row],
    parts: Mapping[str, str],
    show_y: Show,
    show_value: Show,
) -> str:
    """Return a heat map: one column per window, one row per bucket, darker for more."""
    cells = []
    width_us = 1
    for row in rows:
        at, y = micros_of(row.get(parts["x"])), number_of(row.get(parts["y"]))
        value = number_of(row.get(parts["value"]))
        width_us = int(number_of(row.get(parts.get("width", ""))) or width_us)
        if at is not None and y is not None and value:
            cells.append((at, int(y), value))
    if not cells:
        return ""
    levels = _levels({y for _, y, _ in cells})
    high = max(value for _, _, value in cells)
    step = min(22.0, max(12.0, 260 / len(levels)))
    bottom = TOP + step * len(levels)
    times = TimeAxis(min(c[0] for c in cells), max(c[0] for c in cells) + width_us)
    out = times.marks(TOP, bottom)
    place = {level: bottom - step * (index + 1) for index, level in enumerate(levels)}
    for index, level in enumerate(levels):
        if index % max(1, round(18 / step)) == 0:
            out.append(
                f'<text class="tick" x="{LEFT - 8}" y="{place[level] + step - 2:.1f}" '
                f'text-anchor="end">{escaped(show_y(level))}</text>'
            )
    for at, y, value in cells:
        x = times.x(at)
        width = max(1.5, times.x(at + width_us) - x - 0.6)
        heat = 1 + int(8 * math.log1p(value) / math.log1p(high))
        said = f"{show_value(round(value))} from {show_y(y)} at {times.label(at, 1000)}"
        out.append(
            f'<rect class="heat h{heat}" x="{x:.1f}" y="{place[y]:.1f}" width="{width:.1f}" '
            f'height="{step - 0.6:.1f}"><title>{escaped(said)}</title></rect>'
        )
    few, many = escaped(show_value(1)), escaped(show_value(round(high)))
    scale = "".join(f'<span class="key heatkey h{heat}"></span>' for heat in range(1, 10))
    below = f'<ul class="legend"><li>{few} {scale} {many}</li></ul>'
    return svg(bottom + BOTTOM, title, out) + below


def _levels(seen: set[int]) -> list[int]:
    """Return all powers of two from the lowest to the highest seen, empty ones between too."""
    levels, level = [], min(seen)
    while level <= max(seen):
        levels.append(level)
        level = level * 2 if level else 1
    return levels
