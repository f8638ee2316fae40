"""Lives of messages as ladder diagrams for a terminal: parties side by side, time downwards.

Rules: a step is an arrow between two parties, then its words; texts of the network are printable,
and wrapped where the terminal ends. Where not all parties have room, those of a kind share a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from analytics.life.lanes import KINDS, Lane
from analytics.life.life import Life
from dissectors.rows.message_record import DEAD, REFUSED, RETURNED, ROLLED_BACK, SENT

from ..ui.console import UNLIMITED, Style, Terminal, cut, one_line
from ..ui.figures import clock, day, duration, zone_name
from ..ui.screen.ladders import Ladder

WIDEST: Final = 160
"""cells of a ladder where there is no terminal, and at most"""
_LEFT: Final = 23
"""cells of the time and what passed since the step before"""
_LANE: Final = 16
"""cells of the narrowest lane"""
_INDENT: Final = 4
"""cells before the words of a step"""
_MOST_OF_EVENT: Final = 40
"""columns of the word on an arrow: a log of somebody else has any text there"""
_MOST_LINES: Final = 12
_WRONG: Final = {
    REFUSED: Style.RED,
    DEAD: Style.RED,
    SENT: Style.YELLOW,
    RETURNED: Style.YELLOW,
    ROLLED_BACK: Style.YELLOW,
}


class _Lanes(NamedTuple):
    """Where the parties stand."""

    heads: list[Lane]
    column: dict[Lane, int]
    """party → index of its lane"""


def ladder_lines(lives: Sequence[Life], terminal: Terminal) -> list[str]:
    """Return the diagrams as printable lines."""
    width = WIDEST if terminal.width >= UNLIMITED else min(terminal.width, WIDEST)
    shown = terminal._replace(width=width)
    lines: list[str] = []
    for life in lives:
        lines += ["", *_lines_of(life, shown)] if lines else _lines_of(life, shown)
    return lines


def _lines_of(life: Life, terminal: Terminal) -> list[str]:
    """Return the head, the steps, and what cannot be seen."""
    lanes = _lanes_of(life, terminal.width - _LEFT)
    ladder = Ladder(terminal, _LEFT, len(lanes.heads))
    told = [f"{name} {text}" for name, text in (("keys", life.keys), ("tag", life.tags)) if text]
    head = f"Message {life.name}" + (f" of {life.topic}" if life.topic else "")
    ladder.text(_shown(", ".join([head, *told]), terminal, 0), Style.BOLD)
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
    """Return a text of the network, as much of it as some lines hold."""
    return cut(one_line(text), (terminal.width - indent) * _MOST_LINES)


def _lanes_of(life: Life, room: int) -> _Lanes:
    """Return the lanes; where they have no room, those of a kind become one."""
    heads = list(life.lanes)
    column = {lane: index for index, lane in enumerate(heads)}
    if heads and room // len(heads) < _LANE:
        kinds = [kind for kind in KINDS if any(lane.kind == kind for lane in heads)]
        numbers = {kind: sum(lane.kind == kind for lane in life.lanes) for kind in kinds}
        column = {lane: kinds.index(lane.kind) for lane in life.lanes}
        first = {lane.kind: lane.name for lane in reversed(life.lanes)}
        heads = [
            Lane(kind, f"{numbers[kind]} {kind}s" if numbers[kind] > 1 else first[kind])
            for kind in kinds
        ]
    return _Lanes(heads, column)
