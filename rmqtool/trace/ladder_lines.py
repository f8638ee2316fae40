"""Lives of messages as ladder diagrams for a terminal: parties side by side, time downwards.

Rules: a step is an arrow between two parties, then its words; texts of the network are printable,
and wrapped where the terminal ends. Where not all parties have room, those of a kind share a lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from analytics.life.lanes import KINDS, Lane
from analytics.life.life import Life, Step
from dissectors.rows.message_record import DEAD, REFUSED, RETURNED, ROLLED_BACK, SENT

from ..ui.console import UNLIMITED, Style, Terminal, cut, one_line, padded, styled, wrapped
from ..ui.figures import clock, day, duration, zone_name

WIDEST: Final = 160
"""cells of a ladder where there is no terminal, and at most"""
_LEFT: Final = 23
"""cells of the time and what passed since the step before"""
_LANE: Final = 16
"""cells of the narrowest lane"""
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
    room: int
    """cells of a lane"""

    def at(self, index: int) -> int:
        """Return the cell of a lane's line."""
        return index * self.room + self.room // 2


def ladder_lines(lives: Sequence[Life], terminal: Terminal) -> list[str]:
    """Return the diagrams as printable lines."""
    width = WIDEST if terminal.width >= UNLIMITED else min(terminal.width, WIDEST)
    lines: list[str] = []
    for life in lives:
        if lines:
            lines.append("")
        lines += _Ladder(life, width, terminal.colour).lines()
    return lines


class _Ladder:
    def __init__(self, life: Life, width: int, colour: bool) -> None:
        self._life = life
        self._width = width
        self._colour = colour
        self._lanes = _lanes_of(life, width - _LEFT)
        self._lines: list[str] = []

    def lines(self) -> list[str]:
        """Return the head, the steps, and what cannot be seen."""
        life = self._life
        told = [
            f"{name} {text}" for name, text in (("keys", life.keys), ("tag", life.tags)) if text
        ]
        head = f"Message {life.name}" + (f" of {life.topic}" if life.topic else "")
        self._text(", ".join([head, *told]), 0, Style.BOLD)
        if not life.steps:
            return self._lines
        self._heads()
        before: int | None = None
        date = ""
        for step in life.steps:
            if day(step.time) != date:
                date = day(step.time)
                self._add(f"-- {date} {zone_name()} --", Style.DIM)
            self._step(step, before)
            before = step.time
        for line in life.summary:
            self._text(line, 0)
        for line in life.unseen:
            self._text(f"Not seen: {line}", 0, Style.YELLOW)
        return self._lines

    def _heads(self) -> None:
        lanes = self._lanes
        kinds = "".join(_centred(lane.kind, lanes.room) for lane in lanes.heads)
        names = "".join(_centred(one_line(lane.name), lanes.room) for lane in lanes.heads)
        self._add(" " * _LEFT + kinds.rstrip(), Style.DIM)
        self._add(" " * _LEFT + names.rstrip(), Style.BOLD)

    def _step(self, step: Step, before: int | None) -> None:
        since = "" if before is None else f"+{duration((step.time - before) // 1000)}"
        left = f"{clock(step.time)} {since:>9} "
        style = _WRONG.get(step.row.event, "")
        self._lines.append(self._styled(left, Style.DIM) + self._styled(self._arrow(step), style))
        packet = f"packet {step.row.packet}: " if step.row.packet is not None else ""
        words = packet + step.words + (f" ({step.why})" if step.why else "")
        self._text(words, 4)
        if step.row.body is not None:
            self._text(f"body ({step.row.body_form}): {step.row.body}", 4, Style.DIM)

    def _arrow(self, step: Step) -> str:
        lanes = self._lanes
        cells = [" "] * (lanes.at(len(lanes.heads) - 1) + 1)
        for index in range(len(lanes.heads)):
            cells[lanes.at(index)] = "│"
        start, end = lanes.at(lanes.column[step.source]), lanes.at(lanes.column[step.target])
        low, high = min(start, end), max(start, end)
        for at in range(low + 1, high):
            cells[at] = "─"
        if start < end:
            cells[start], cells[end - 1], cells[end] = "├", "▶", "│"
        elif end < start:
            cells[start], cells[end + 1], cells[end] = "┤", "◀", "│"
        label = f" {step.row.event} "
        at = low + (high - low - len(label)) // 2
        if high - low >= len(label) + 2:
            cells[at : at + len(label)] = list(label)
        return "".join(cells)

    def _text(self, text: str, indent: int, style: str = "") -> None:
        for line in wrapped(one_line(text), self._width - indent, _MOST_LINES):
            self._lines.append(" " * indent + self._styled(line, style))

    def _add(self, text: str, style: str) -> None:
        self._lines.append(self._styled(cut(text, self._width), style))

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._colour and style else text


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
    return _Lanes(heads, column, room // max(1, len(heads)))


def _centred(text: str, room: int) -> str:
    text = cut(text, room - 2, keep_end=True)
    blanks = room - len(padded(text, 0))
    left = blanks // 2
    return padded(" " * left + text, room)
