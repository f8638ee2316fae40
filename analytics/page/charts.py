"""Charts of the HTML page as SVG text.

A chart consists of numbers and of texts escaped by `tag` and `escaped`. It has no script and no
style, only classes that the page colors, so it works on light and dark screens and on paper. A
missing number is a gap in a line, never a zero.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle
from typing import Final, NamedTuple

from dissectors.printable import printable, shortened

from ..compare import head_of
from ..report import Row

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 900, 84, 14, 24, 36
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Show = Callable[[object], str]
"""value -> text for display"""
SERIES: Final = tuple(f"s{number}" for number in range(8))
"""classes of the series colors of the page"""
MOST_FLOWS = 40
"""maximum flows in a chart, the largest; the table has all"""
MOST_CARDS: Final = 100
"""maximum problem cards; the table has all"""
_MOST_TOPICS: Final = 12
"""maximum topics in a chart, those with the largest flows; the table has all"""
MOST_STRETCHES = 60
"""maximum rows of a timeline, in table order"""
MOST_INCIDENTS: Final = 6
"""maximum shaded and labeled incidents; the cards below have all"""
_LABEL = 196
"""width of names at the left or right of a chart"""
_MOST_TEXT = 4000
"""maximum characters of one text: paragraphs are shorter; cells are truncated before"""
_STEPS_US = (
    *(n * unit for unit in (1_000, 10_000, 100_000, 1_000_000) for n in (1, 2, 5)),
    *(n * 1_000_000 for n in (10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(n * 3_600_000_000 for n in (1, 2, 3, 6, 12, 24, 48, 168)),
)


def escaped(value: object) -> str:
    """Escape text for HTML and SVG: printable, limited in length, never markup."""
    # Shortened first, so that a text of megabytes is not examined as a whole.
    return html.escape(printable(shortened(str(value), _MOST_TEXT)), quote=True)


def tag(name: str, inner: str = "", **attributes: object) -> str:
    """Return an element with escaped attributes; `inner` is HTML that is escaped already.

    `kind` is the class attribute; an underscore stands for a hyphen. None omits an attribute.
    """
    written = "".join(
        f' {"class" if key == "kind" else key.replace("_", "-")}="'
        f'{f"{value:.1f}" if isinstance(value, float) else escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{inner}</{name}>"


def micros_of(value: object) -> int | None:
    """Convert a time of a table to microseconds since the epoch."""
    return (value - EPOCH) // timedelta(microseconds=1) if isinstance(value, datetime) else None


def number_of(value: object) -> float | None:
    """Convert a value to a number that can be drawn, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def short(text: str, most: int) -> str:
    """Shorten a text to a maximum length by omitting its middle."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"


def _text(x: float, y: float, text: str, kind: str = "tick", anchor: str = "start") -> str:
    return tag("text", escaped(text), kind=kind, x=float(x), y=float(y), text_anchor=anchor)


def _rect(kind: str, x: float, y: float, width: float, height: float, said: str = "") -> str:
    title = tag("title", escaped(said)) if said else ""
    places = {"x": float(x), "y": float(y), "width": float(width), "height": float(height)}
    return tag("rect", title, kind=kind, **places)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Time from left to right."""

    first: int
    """left end, microseconds since the epoch"""
    last: int
    """right end, microseconds since the epoch"""
    left: float = LEFT
    """x of the left end"""

    def x(self, micros: float) -> float:
        """Return the x of a time."""
        span = max(1, self.last - self.first)
        share = (min(max(micros, self.first), self.last) - self.first) / span
        return self.left + share * (WIDTH - RIGHT - self.left)

    def marks(self, top: float, bottom: float) -> list[str]:
        """Return the grid and its time labels."""
        span = max(1, self.last - self.first)
        fit = max(2, int((WIDTH - RIGHT - self.left) / 125))  # labels of 125 px do not touch
        step = next((step for step in _STEPS_US if span / step <= fit), span)
        parts = []
        for at in range(-(-self.first // step) * step, self.last + 1, step):
            x = self.x(at)
            anchor = "end" if x > WIDTH - 3 * RIGHT else "middle"  # inside the chart
            parts.append(tag("line", kind="grid", x1=x, y1=float(top), x2=x, y2=float(bottom)))
            parts.append(_text(x, bottom + 15, self.label(at, step), anchor=anchor))
        day = (EPOCH + timedelta(microseconds=self.first)).strftime("%Y-%m-%d UTC")
        return [*parts, _text(WIDTH - RIGHT, bottom + 31, day, anchor="end")]

    @staticmethod
    def label(micros: int, step: int) -> str:
        """Format a time for an axis label."""
        moment = EPOCH + timedelta(microseconds=micros)
        if step >= 86_400_000_000:
            return moment.strftime("%m-%d")
        if step >= 60_000_000:
            return moment.strftime("%H:%M")
        if step >= 1_000_000:
            return moment.strftime("%H:%M:%S")
        return f"{moment:%H:%M:%S}.{moment.microsecond // 1000:03d}"


@dataclass(frozen=True, slots=True)
class Axis:
    """Numbers from bottom to top."""

    low: float
    """value at the bottom"""
    high: float
    """value at the top"""
    top: float
    """y of the top"""
    bottom: float
    """y of the bottom"""
    log: bool = True
    """logarithmic: all powers of ten have the same height"""
    below: bool = False
    """some values are below the lowest power of ten and drawn at the bottom"""
    least: float = 0.0
    """minimum step between two marks of a linear axis"""

    @classmethod
    def of(
        cls, values: Iterable[float], top: float, bottom: float, log: bool, least: float = 0.0
    ) -> Axis:
        """Return an axis for all values: logarithmic, or linear from zero.

        `least` is the minimum step between two marks of a linear axis.
        """
        values = list(values)
        if not log:
            step = max(least, _step(max(values, default=1.0)))
            high = step * max(1, math.ceil(max(values, default=1.0) / step))
            return cls(0.0, high, top, bottom, log, least=least)
        known = [max(1.0, value) for value in values] or [1.0, 10.0]  # 0 has no logarithm
        low = 10 ** math.floor(math.log10(min(known)))
        high = 10 ** math.ceil(math.log10(max(known)))
        return cls(low, max(high, low * 10), top, bottom, log, any(v < low for v in values))

    def y(self, value: float) -> float:
        """Return the y of a number."""
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = max(value, 0.0) / self.high
        return self.bottom - min(1.0, share) * (self.bottom - self.top)

    def marks(self, name: str, show: Show) -> list[str]:
        """Return the grid, its number labels, and the axis title above."""
        scale = f"{name} (log scale)" if self.log else name
        parts = [_text(LEFT, self.top - 8, scale)]
        step = max(self.least, _step(self.high))
        ticks = [step * number for number in range(round(self.high / step) + 1)]
        if self.log:
            ticks = [
                self.low * 10**power for power in range(round(math.log10(self.high / self.low)) + 1)
            ]
        for value in ticks:
            y = self.y(value)
            most = "≤ " if self.below and value == self.low else ""
            number: object = round(value) if value == round(value) else value
            shown = most + re.sub(r"\.0+(?=\D|$)", "", show(number))  # 10 ms for 10.0 ms
            parts.append(tag("line", kind="grid", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y))
            parts.append(_text(LEFT - 8, y + 4, shown, anchor="end"))
        return parts


def _step(high: float) -> float:
    """Return a step of 1, 2, or 5 times a power of ten with at most five steps up to `high`."""
    power = 10.0 ** math.floor(math.log10(max(high, 1e-9) / 5))
    return next(power * n for n in (1, 2, 5, 10) if power * n * 5 >= high * 0.999)


def svg(height: float, label: str, parts: Iterable[str]) -> str:
    """Return a chart."""
    box = f"0 0 {WIDTH} {height:.0f}"
    return tag("svg", "".join(parts), kind="chart", viewBox=box, role="img", aria_label=label)


def legend(names: Iterable[tuple[str, str]]) -> str:
    """Return the legend of the colors: (class, text)."""
    items = (tag("li", tag("span", kind=f"key {kind}") + escaped(name)) for kind, name in names)
    return tag("ul", "".join(items), kind="legend")


Point = tuple[int, float | None]
"""microseconds since the epoch, number; None interrupts a line"""


def points_of(rows: Iterable[Row], x: str, y: str, width: str = "") -> list[Point]:
    """Return the points of a line in order; a missing window interrupts it.

    `width` is the column with the window length in microseconds; empty: points are joined.
    """
    points: list[Point] = []
    known = [(at, row) for row in rows if (at := micros_of(row.get(x))) is not None]
    for at, row in sorted(known, key=lambda item: item[0]):
        length = number_of(row.get(width)) if width else None
        # windows without rows are not in the table
        # The next window is one length away, the one after a missing window two.
        if points and length is not None and at - points[-1][0] > 1.5 * length:
            points.append((at, None))
        points.append((at, number_of(row.get(y))))
    return points


def lines_chart(
    title: str,
    lines: Mapping[str, Sequence[Point]],
    name: str,
    show: Show,
    log: bool,
    least: float = 0.0,
) -> str:
    """Return a line chart over time with a legend; `name` is the axis title.

    `least` is the minimum difference between two numbers; all-zero lines and single points are
    omitted.
    """
    bottom = 240
    known = [(at, v) for line in lines.values() for at, v in line if v is not None]
    if not any(value for _, value in known) or len({at for at, _ in known}) < 2:
        return ""
    times = TimeAxis(min(at for at, _ in known), max(at for at, _ in known))
    axis = Axis.of((value for _, value in known), TOP, bottom, log, least)
    drawn, keys = _lines(lines, times, axis, show)
    marks = [*axis.marks(name, show), *times.marks(TOP, bottom)]
    return svg(bottom + BOTTOM, title, [*marks, *drawn]) + legend(keys)


def _lines(
    lines: Mapping[str, Sequence[Point]],
    times: TimeAxis,
    axis: Axis,
    show: Show,
    kinds: Sequence[str] = SERIES,
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return lines, the first on top, and their legend: equal lines are merged, with all names."""
    alike: dict[tuple[Point, ...], list[str]] = {}
    for name, line in lines.items():
        if any(value is not None for _, value in line):
            alike.setdefault(tuple(line), []).append(name)
    named = [(kind, ", ".join(names)) for kind, names in zip(cycle(kinds), alike.values())]
    drawn = [
        _line(line, kind, name, times, axis, show)
        for line, (kind, name) in zip(alike, named, strict=True)
    ]
    return drawn[::-1], named  # SVG draws what comes last on top


def _line(
    points: Sequence[Point], kind: str, name: str, times: TimeAxis, axis: Axis, show: Show
) -> str:
    """Return one line with a mark per number."""
    path, dots, pen = [], [], "M"
    for at, value in points:
        if value is None:
            pen = "M"
            continue
        x, y = times.x(at), axis.y(value)
        path.append(f"{pen}{x:.1f} {y:.1f}")
        title = tag("title", escaped(f"{name} {show(round(value))} at {times.label(at, 1000)}"))
        dots.append(tag("circle", title, kind=f"dot {kind}", cx=x, cy=y, r=2.6))
        pen = "L"
    return tag("path", kind=f"line {kind}", d=" ".join(path)) + "".join(dots)


class ShadedIncident(NamedTuple):
    """An incident to shade in the overview."""

    number: object
    """number of its card; None: it has no card"""
    severity: str
    """error, warning, or info"""
    title: str
    """title of its first problem"""
    first: int
    """microseconds since the epoch"""
    last: int
    """microseconds since the epoch"""


_RATE_UNITS: Final = (("second", 1_000_000), ("minute", 60_000_000), ("hour", 3_600_000_000))
_PILED = (("s5", "failed", "failed"), ("s1", "unanswered", "unanswered"), ("s0", "", "answered"))
"""class, column of the windows, and name of the stacked values, from the bottom"""


def overview_chart(
    windows: Sequence[Row], incidents: Sequence[ShadedIncident], show_us: Show, show: Show
) -> str:
    """Return rate, errors, unanswered requests, and latency over time, with shaded incidents.

    A window has window_start, window_us, exchanges, failed, unanswered, p50_us, and p99_us.
    """
    known = [(at, row) for row in windows if (at := micros_of(row["window_start"])) is not None]
    width = max((int(number_of(row["window_us"]) or 0) for _, row in known), default=0)
    if not known or not width:
        return ""
    incidents = incidents[:MOST_INCIDENTS]
    ends = [at for incident in incidents for at in (incident.first, incident.last)]
    starts = [at for at, _ in known]
    times = TimeAxis(min(starts + ends), max([max(starts) + width, *ends]))
    top = 20 * len(incidents) + TOP
    most = max((number_of(row["exchanges"]) or 0.0) for _, row in known) / width
    unit, per_us = next(
        (unit for unit in _RATE_UNITS if most * unit[1] >= 1), _RATE_UNITS[-1]
    )  # ticks are whole numbers
    rates = Axis.of([most * per_us], top, top + 120, log=False, least=1.0)
    lines = {
        name: points_of(windows, "window_start", f"{name}_us", "window_us")
        for name in ("p50", "p99")
    }
    values = [value for line in lines.values() for _, value in line if value is not None]
    waits = Axis.of(values, rates.bottom + 30, rates.bottom + 150, log=True)
    bottom = waits.bottom if values else rates.bottom
    out = [*rates.marks(f"exchanges per {unit}", show), *times.marks(top, bottom)]
    for place, incident in enumerate(incidents):
        out.append(_shaded(incident, 20 * place, times, bottom))
    piled, seen = _columns(known, width, times, rates, per_us, show)
    out += piled
    keys = [(kind, name) for kind, column, name in _PILED if column in seen]
    if values:
        drawn, named = _lines(lines, times, waits, show_us, ("s6", "s2"))
        out += waits.marks("latency", show_us) + drawn
        keys += named
    return svg(bottom + BOTTOM, "Overview", out) + legend(keys)


def _columns(
    windows: Sequence[tuple[int, Row]],
    width: int,
    times: TimeAxis,
    axis: Axis,
    per_us: int,
    show: Show,
) -> tuple[list[str], set[str]]:
    """Return a stacked column per window, and the window columns in use."""
    out, seen = [], set()
    for at, row in windows:
        counts = {column: int(number_of(row[column]) or 0) for _, column, _ in _PILED if column}
        counts[""] = int(number_of(row["exchanges"]) or 0) - sum(counts.values())
        x = times.x(at)
        # Less than a pixel would not be visible.
        wide = max(1.5, times.x(at + width) - x - 0.6)
        y = axis.bottom
        for kind, column, name in _PILED:
            if counts[column] <= 0:
                continue
            seen.add(column)
            high = axis.bottom - axis.y(counts[column] * per_us / width)
            high = max(high, 3.0 if column else 0.5)  # one error in a thousand is visible
            y -= high
            title = f"{show(counts[column])} {name} at {times.label(at, 1000)}"
            out.append(_rect(f"bar {kind}", x, max(axis.top - 2, y), wide, high, title))
    return out, seen


def _shaded(incident: ShadedIncident, y: float, times: TimeAxis, bottom: float) -> str:
    """Return the shading of an incident, and its label with a link to its card."""
    x = times.x(incident.first)
    width = max(3.0, times.x(incident.last) - x)
    room_right = WIDTH - RIGHT - x
    right = room_right > 360 or room_right > x + width - LEFT
    # a character is about 6.4 px wide
    room = int((room_right if right else x + width - LEFT) / 6.4)
    what = incident.title.partition(": ")[0]  # the card and the tooltip have the rest
    most = max(12, room)
    shown = what if len(what) <= most else f"{what[: most - 1]}…"
    at, anchor = (x + 4, "start") if right else (x + width - 4, "end")
    label = _text(at, y + 14, shown, "name", anchor)
    bar = _rect(f"shade {incident.severity}", x, y, width, bottom - y, incident.title)
    if incident.number is None:
        return tag("g", bar + label)
    return tag("a", bar + label, href=f"#incident-{incident.number}")


def heat_chart(
    title: str, rows: Sequence[Row], parts: Mapping[str, str], show_y: Show, show_value: Show
) -> str:
    """Return a heatmap: one column per window, one row per bucket, darker for more."""
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
    out = [_text(LEFT, TOP - 8, f"{parts['axis']}, at least"), *times.marks(TOP, bottom)]
    place = {level: bottom - step * (index + 1) for index, level in enumerate(levels)}
    for level in levels[:: max(1, round(18 / step))]:
        out.append(_text(LEFT - 8, place[level] + step - 2, show_y(level), anchor="end"))
    for at, y, value in cells:
        x = times.x(at)
        # by logarithm: a few slow exchanges beside thousands of fast ones are visible
        heat = 1 + int(8 * math.log1p(value) / math.log1p(high))
        said = f"{show_value(round(value))} from {show_y(y)} at {times.label(at, 1000)}"
        wide = max(1.5, times.x(at + width_us) - x - 0.6)
        out.append(_rect(f"heat h{heat}", x, place[y], wide, step - 0.6, said))
    scale = "".join(tag("span", kind=f"key heatkey h{heat}") for heat in range(1, 10))
    few, many = escaped(show_value(1)), escaped(show_value(round(high)))
    of = escaped(parts["value"])
    below = tag("ul", tag("li", f"{of} per cell: {few} {scale} {many}"), kind="legend")
    return svg(bottom + BOTTOM, title, out) + below


def _levels(seen: set[int]) -> list[int]:
    """Return all powers of two from the lowest to the highest value, including empty ones."""
    levels, level = [], min(seen)
    while level <= max(seen):
        levels.append(level)
        level = level * 2 if level else 1
    return levels


class FlowBand(NamedTuple):
    """A band between two names."""

    start: str
    """name at the left"""
    end: str
    """name at the right"""
    value: float
    """width"""
    label: object
    """additional text of its title; None: nothing"""


def flows_of(rows: Iterable[Row], parts: Mapping[str, str]) -> list[list[FlowBand]]:
    """Return the flows in rows as one stage, the largest first, at most `MOST_FLOWS`."""
    flows = []
    for row in rows:
        value = number_of(row.get(parts["value"]))
        start, end = row.get(parts["start"]), row.get(parts["end"])
        if value and start is not None:
            to = str(end) if end is not None else "gave up"
            flows.append(FlowBand(str(start), to, value, row.get(parts.get("label", ""))))
    return [sorted(flows, key=lambda flow: -flow.value)[:MOST_FLOWS]] if flows else []


def topology_of(rows: Iterable[Row], parts: Mapping[str, str]) -> list[list[FlowBand]]:
    """Return the stages into and out of the topics with the largest flows.

    Each has its largest flows, at most `MOST_FLOWS`.
    """
    flows = [
        (str(row[parts["topic"]]), row[parts["role"]] == "consumes", str(row[parts["party"]]), row)
        for row in rows
    ]
    weights = _sums((topic, number_of(row[parts["value"]]) or 0) for topic, _, _, row in flows)
    shown = sorted(weights, key=lambda topic: -weights[topic])[:_MOST_TOPICS]
    stages: list[list[FlowBand]] = [[], []]
    for topic, consumes, party, row in flows:
        if topic in shown:
            ends = (topic, party) if consumes else (party, topic)
            value = number_of(row[parts["value"]]) or 0.0
            stages[consumes].append(FlowBand(*ends, value, None))
    for stage in stages:
        if len(stage) > MOST_FLOWS:
            stage.sort(key=lambda flow: -flow.value)
            del stage[MOST_FLOWS:]
    return stages if any(stages) else []


def flows_chart(title: str, stages: Sequence[Sequence[FlowBand]], show: Show) -> str:
    """Return bands between columns of names, with widths proportional to their values.

    Each stage leads from one column of names to the next.
    """
    if not stages:
        return ""
    columns: list[dict[str, float]] = []
    for place in range(len(stages) + 1):
        into = _sums((flow.end, flow.value) for flow in stages[place - 1]) if place else {}
        out = stages[place] if place < len(stages) else ()
        leaving = _sums((flow.start, flow.value) for flow in out)
        columns.append(
            # What leaves a topic may be more (several groups) or less than what enters it.
            {name: max(into.get(name, 0), leaving.get(name, 0)) for name in {**into, **leaving}}
        )
    most = max(map(len, columns))
    total = max(sum(column.values()) for column in columns) or 1.0
    gap = 12.0 if len(stages) == 1 else 22.0
    scale = (max(120.0, 34.0 * most) - gap * (most - 1)) / total
    height = 36 + max(
        sum(max(1.0, value * scale) for value in column.values()) + gap * len(column)
        for column in columns
    )
    left, right = float(_LABEL), WIDTH - float(_LABEL)
    out_, tops = [], []
    xs = [left + (right - left) * place / len(stages) for place in range(len(columns))]
    for place, (x, column) in enumerate(zip(xs, columns, strict=True)):
        y, top = float(TOP), {}
        is_first, is_last = not place, place == len(stages)
        for name, value in column.items():
            top[name] = y
            wide = max(1.0, value * scale)
            out_.append(
                _rect(
                    "node",
                    x - 14 * is_first - 7 * (not is_first and not is_last),
                    y,
                    14,
                    wide,
                    name,
                )
            )
            label = f"{short(name, 19 if is_first or is_last else 40)} ({show(round(value))})"
            if is_first or is_last:
                at = (x - 20, "end") if is_first else (x + 20, "start")
                out_.append(_text(at[0], y + wide / 2 + 4, label, "name", at[1]))
            else:
                out_.append(_text(x, y - 4, label, "name", "middle"))
            y += wide + gap
        tops.append(top)
    # by start: a producer, and in the second stage a topic, has one color
    colours = dict(zip(columns[0] | columns[-2], cycle(SERIES)))
    bands = []
    for place, stage in enumerate(stages):
        starts, ends = dict(tops[place]), dict(tops[place + 1])
        x0 = xs[place] + 7 * bool(place)
        x1 = xs[place + 1] - 7 * (place + 1 < len(stages))
        middle = (x0 + x1) / 2
        for flow in stage:
            width = flow.value * scale
            y0, y1 = starts[flow.start] + width / 2, ends[flow.end] + width / 2
            label = f"{flow.start} → {flow.end}: {show(round(flow.value))}"
            label += f", {flow.label}" if flow.label else ""
            bands.append(
                tag(
                    "path",
                    tag("title", escaped(label)),
                    kind=f"band {colours[flow.start]}",
                    d=f"M{x0:.1f} {y0:.1f} C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f}"
                    f" {x1:.1f} {y1:.1f}",
                    stroke_width=max(1.0, width),
                )
            )
            starts[flow.start] += width
            ends[flow.end] += width
    return svg(height, title, [*bands, *out_])


def _sums(flows: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, value in flows:
        sums[name] = sums.get(name, 0.0) + value
    return sums


def timeline_chart(
    title: str,
    rows: Sequence[Row],
    parts: Mapping[str, str],
    show_colour: Show,
    show: Mapping[str, Show],
) -> str:
    """Return bars from start to end, one line per row name, colored by category.

    `show` formats the columns of a bar's title.
    """
    names = parts["row"].split()
    bars: dict[str, list[tuple[int, int | None, str, Row]]] = {}
    for row in rows:
        start, end = micros_of(row.get(parts["start"])), micros_of(row.get(parts["end"]))
        if start is None:
            continue
        name = " · ".join(str(row.get(column)) for column in names if row.get(column) is not None)
        if name not in bars and len(bars) == MOST_STRETCHES:
            continue  # later stretches of the shown rows still count
        bars.setdefault(name, []).append((start, end, show_colour(row.get(parts["colour"])), row))
    if not bars:
        return ""
    every = [bar for stretches in bars.values() for bar in stretches]
    first = min(start for start, _, _, _ in every)
    last = max(end if end is not None else start for start, end, _, _ in every)
    times = TimeAxis(first, last + max(1000, (last - first) // 40), left=_LABEL + 10)
    step, bottom = 22.0, TOP + 22.0 * len(bars)
    kinds: dict[str, str] = {}
    out = times.marks(TOP, bottom)
    for index, (name, stretches) in enumerate(bars.items()):
        y = TOP + step * index
        out.append(_text(_LABEL, y + 15, short(name, 27), "name", "end"))
        for start, end, kind, row in stretches:
            colour = kinds.setdefault(kind, SERIES[len(kinds) % len(SERIES)])
            said = ", ".join(
                f"{head_of(column)} {shown(row.get(column))}"
                for column, shown in show.items()
                if row.get(column) is not None
            )
            x = times.x(start)
            width = max(2.0, times.x(times.last if end is None else end) - x)
            out.append(_rect(f"bar {colour}", x, y + 3, width, step - 7, said))
    return svg(bottom + BOTTOM, title, out) + legend((kind, name) for name, kind in kinds.items())
