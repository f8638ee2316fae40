"""Charts of the HTML page as SVG text: flows between brokers, stretches of time.

Rules are those of `charts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..report import Row
from .charts import (
    BOTTOM,
    SERIES,
    TOP,
    WIDTH,
    Show,
    TimeAxis,
    escaped,
    legend,
    micros_of,
    number_of,
    short,
    svg,
)

MOST_FLOWS = 40
"""Flows that are drawn, the largest; the table has all."""
MOST_STRETCHES = 60
"""Rows of a timeline that are drawn, in the order of the table."""
_NODE = 14
_LABEL = 196


def flows_chart(title: str, rows: Sequence[Row], parts: Mapping[str, str], show: Show) -> str:
    """Return bands from the names at the left to those at the right, as wide as their value."""
    flows = []
    for row in rows:
        value = number_of(row.get(parts["value"]))
        start, end = row.get(parts["start"]), row.get(parts["end"])
        label = row.get(parts.get("label", ""))
        if value and start is not None:
            flows.append((str(start), str(end) if end is not None else "gave up", value, label))
    flows = sorted(flows, key=lambda flow: -flow[2])[:MOST_FLOWS]
    if not flows:
        return ""
    left = _heights([(start, value) for start, _, value, _ in flows])
    right = _heights([(end, value) for _, end, value, _ in flows])
    total = sum(value for _, _, value, _ in flows)
    gap = 12.0
    most = max(len(left), len(right))
    scale = (max(120.0, 34.0 * most) - gap * (most - 1)) / total
    height = 28 + max(total * scale + gap * (len(side) - 1) for side in (left, right))
    starts, ends = _places(left, scale, gap), _places(right, scale, gap)
    x0, x1 = float(_LABEL), WIDTH - float(_LABEL)
    out = _nodes(left, starts, x0 - _NODE, scale, "end", x0 - _NODE - 6, show)
    out += _nodes(right, ends, x1, scale, "start", x1 + _NODE + 6, show)
    numbers = {name: number for number, name in enumerate(left)}
    for start, end, value, label in flows:
        out.append(
            _band(
                (x0, starts[start]),
                (x1, ends[end]),
                value * scale,
                f"s{numbers[start] % SERIES}",
                f"{start} → {end}: {show(round(value))}" + (f", {label}" if label else ""),
            )
        )
        starts[start] += value * scale
        ends[end] += value * scale
    return svg(height, title, out)


def _heights(flows: Sequence[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, value in flows:
        sums[name] = sums.get(name, 0.0) + value
    return sums


def _places(sums: Mapping[str, float], scale: float, gap: float) -> dict[str, float]:
    places, y = {}, float(TOP)
    for name, value in sums.items():
        places[name] = y
        y += value * scale + gap
    return places


def _nodes(
    sums: Mapping[str, float],
    places: Mapping[str, float],
    x: float,
    scale: float,
    anchor: str,
    text_x: float,
    show: Show,
) -> list[str]:
    out = []
    for name, value in sums.items():
        y, height = places[name], max(1.0, value * scale)
        said = f"{short(name, 19)} ({show(round(value))})"
        out.append(
            f'<rect class="node" x="{x:.1f}" y="{y:.1f}" width="{_NODE}" height="{height:.1f}">'
            f"<title>{escaped(name)}</title></rect>"
            f'<text class="name" x="{text_x:.1f}" y="{y + height / 2 + 4:.1f}" '
            f'text-anchor="{anchor}">{escaped(said)}</text>'
        )
    return out


def _band(
    start: tuple[float, float], end: tuple[float, float], width: float, kind: str, said: str
) -> str:
    (x0, y0), (x1, y1) = start, end
    y0, y1 = y0 + width / 2, y1 + width / 2
    middle = (x0 + x1) / 2
    return (
        f'<path class="band {kind}" d="M{x0:.1f} {y0:.1f} C{middle:.1f} {y0:.1f} '
        f'{middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}" stroke-width="{max(1.0, width):.1f}">'
        f"<title>{escaped(said)}</title></path>"
    )


def timeline_chart(
    title: str,
    rows: Sequence[Row],
    parts: Mapping[str, str],
    show_colour: Show,
    show: Mapping[str, Show],
) -> str:
    """Return bars from start to end, a line for each row name, coloured by what they are.

    `show` says how the columns of a bar's title are shown, by column.
    """
    names = parts["row"].split()
    bars: dict[str, list[tuple[int, int | None, str, Row]]] = {}
    for row in rows:
        start, end = micros_of(row.get(parts["start"])), micros_of(row.get(parts["end"]))
        if start is None:
            continue
        name = " · ".join(str(row.get(column)) for column in names if row.get(column) is not None)
        if name not in bars and len(bars) == MOST_STRETCHES:
            continue
        bars.setdefault(name, []).append((start, end, show_colour(row.get(parts["colour"])), row))
    if not bars:
        return ""
    times = _span_of(bars)
    step, bottom = 22.0, TOP + 22.0 * len(bars)
    kinds: dict[str, int] = {}
    out = times.marks(TOP, bottom)
    for index, (name, stretches) in enumerate(bars.items()):
        y = TOP + step * index
        out.append(
            f'<text class="name" x="{_LABEL}" y="{y + 15:.1f}" text-anchor="end">'
            f"{escaped(short(name, 27))}<title>{escaped(name)}</title></text>"
        )
        for start, end, kind, row in stretches:
            number = kinds.setdefault(kind, len(kinds))
            said = ", ".join(
                f"{column.replace('_', ' ')} {shown(row.get(column))}"
                for column, shown in show.items()
                if row.get(column) is not None
            )
            x = times.x(start)
            width = max(2.0, times.x(times.last if end is None else end) - x)
            out.append(
                f'<rect class="bar s{number % SERIES}" x="{x:.1f}" y="{y + 3:.1f}" '
                f'width="{width:.1f}" height="{step - 7:.1f}" rx="2">'
                f"<title>{escaped(said)}</title></rect>"
            )
    keys = [(f"s{number % SERIES}", kind) for kind, number in kinds.items()]
    return svg(bottom + BOTTOM, title, out) + legend(keys)


def _span_of(bars: Mapping[str, Sequence[tuple[int, int | None, str, Row]]]) -> TimeAxis:
    every = [bar for stretches in bars.values() for bar in stretches]
    first = min(start for start, _, _, _ in every)
    last = max(end if end is not None else start for start, end, _, _ in every)
    margin = max(1000, (last - first) // 40)
    return TimeAxis(first, last + margin, left=_LABEL + 10)
