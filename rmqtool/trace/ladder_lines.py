"""Message traces as ladder diagrams for a terminal: parties side by side, time downwards.

Rules: a step is an arrow between two parties, then its text; texts from the network are printable,
and wrapped to the terminal. If not all parties fit, those of a kind share a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from analytics.life.lanes import CONNECT_FAILED, KINDS, Lane
from analytics.life.life import MessageTrace
from dissectors.rows.message_record import DEAD, REFUSED, RETURNED, ROLLED_BACK, SENT

from ..ui.console import UNLIMITED, Style, Terminal, cut, one_line
from ..ui.figures import clock, day, duration, zone_name
from ..ui.screen.shapes import Ladder

WIDEST: Final = 160
"""width of a ladder without a terminal, and at most"""
_LEFT: Final = 23
"""width of the time and the delay since the previous step"""
_LANE: Final = 16
"""width of the narrowest lane"""
_INDENT: Final = 4
"""indent of the text of a step"""
_MOST_OF_EVENT: Final = 40
"""width of the label on an arrow: a foreign log may have any text"""
_MOST_LINES: Final = 12
_WRONG: Final = {
    CONNECT_FAILED: Style.RED,
    REFUSED: Style.RED,
    DEAD: Style.RED,
    SENT: Style.YELLOW,
    RETURNED: Style.YELLOW,
    ROLLED_BACK: Style.YELLOW,
}


class _Lanes(NamedTuple):
    """The lanes of the parties."""

    heads: list[Lane]
    column: dict[Lane, int]
    """party → index of its lane"""


def ladder_lines(lives: Sequence[MessageTrace], terminal: Terminal) -> list[str]:
    """Return the diagrams as printable lines."""
    width = WIDEST if terminal.width >= UNLIMITED else min(terminal.width, WIDEST)
    shown = terminal._replace(width=width)
    lines: list[str] = []
    for life in lives:
        lines += ["", *_lines_of(life, shown)] if lines else _lines_of(life, shown)
    return lines


def _lines_of(life: MessageTrace, terminal: Terminal) -> list[str]:
    """Return the header, the steps, and what is not visible."""
    lanes = _lanes_of(life, terminal.width - _LEFT)
    ladder = Ladder(terminal, _LEFT, len(lanes.heads))
    labels = [f"{name} {text}" for name, text in (("keys", life.keys), ("tag", life.tags)) if text]
    head = f"Message {life.name}" + (f" of {life.topic}" if life.topic else "")
    ladder.text(_shown(", ".join([head, *labels]), terminal, 0), Style.BOLD)
    if not life.steps:
        return ladder.lines()
    ladder.heads([lane.kind for lane in lanes.heads], Style.DIM)
    ladder.heads([one_line(lane.name) for lane in lanes.heads], Style.BOLD)
    before: int | None = None
    date = ""
    for step in life.steps:
        if day(step.time) != date:
            date = day(step.time)
            ladder.text(f"-- {date} {zone_name()} --", Style.DIM)
        since = "" if before is None else f"+{duration((step.time - before) // 1000)}"
        before = step.time
        ends = lanes.column[step.source], lanes.column[step.target]
        style = _WRONG.get(step.row.event, "")
        ladder.arrow(
            f"{clock(step.time)} {since:>9} ",
            *ends,
            cut(one_line(step.row.event), _MOST_OF_EVENT),
            style,
        )
        packet = f"packet {step.row.packet}: " if step.row.packet is not None else ""
        words = packet + step.words + (f" ({step.why})" if step.why else "")
        ladder.text(_shown(words, terminal, _INDENT), "", _INDENT)
        if step.row.body is not None:
            body = f"body ({step.row.body_form}): {step.row.body}"
            ladder.text(_shown(body, terminal, _INDENT), Style.DIM, _INDENT)
    for line in life.summary:
        ladder.text(_shown(line, terminal, 0))
    for line in life.unseen:
        ladder.text(_shown(f"Not visible in this capture: {line}", terminal, 0), Style.YELLOW)
    return ladder.lines()


def _shown(text: str, terminal: Terminal, indent: int) -> str:
    """Return a text from the network, cut to a few lines."""
    return cut(one_line(text), (terminal.width - indent) * _MOST_LINES)


def _lanes_of(life: MessageTrace, room: int) -> _Lanes:
    """Return the lanes; without enough space, merge those of a kind."""
    heads = list(life.lanes)
    column = {lane: index for index, lane in enumerate(heads)}
    if heads and room // len(heads) < _LANE:
        kinds = [kind for kind in KINDS if any(lane.kind == kind for lane in heads)]
        numbers = {kind: sum(lane.kind == kind for lane in life.lanes) for kind in kinds}
        column = {lane: kinds.index(lane.kind) for lane in life.lanes}
        # reversed, so that the first one of a kind stays
        first = {lane.kind: lane.name for lane in reversed(life.lanes)}
        heads = [
            Lane(kind, f"{numbers[kind]} {kind}s" if numbers[kind] > 1 else first[kind])
            for kind in kinds
        ]
    return _Lanes(heads, column)
