"""Message traces as one self-contained HTML page, with an SVG ladder diagram for each.

Rules are those of `html` and `charts`: nothing is loaded, nothing runs, every text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dissectors.rows.message_record import DEAD, REFUSED, RETURNED, ROLLED_BACK, SENT
from dissectors.times import text_of_time

from ..life.lanes import CONNECT_FAILED
from ..life.life import MessageTrace, TraceStep
from .charts import escaped, short
from .html import page_around

_LEFT: Final = 120
_LANE: Final = 190
_TOP: Final = 46
_STEP: Final = 34
_WRONG: Final = frozenset((CONNECT_FAILED, DEAD, REFUSED, RETURNED, ROLLED_BACK, SENT))
"""events drawn in the error color"""


def ladder_page(lives: Sequence[MessageTrace], asked: str, version: str) -> str:
    """Return the page; `asked` is the key or filter, `version` rmqtool's."""
    sections = [(f"m{number}", life) for number, life in enumerate(lives, 1)]
    links = "".join(
        f'<a href="#{name}">{escaped(short(life.name, 40))}</a>' for name, life in sections
    )
    about = [("Messages", str(len(lives))), ("Created", f"by rmqtool {version}")]
    main = "".join(_section(name, life) for name, life in sections)
    return page_around(f"Message trace: {asked}", about, links, main)


def _section(name: str, life: MessageTrace) -> str:
    facts = [f"{what} {text}" for what, text in (("keys", life.keys), ("tag", life.tags)) if text]
    about = ", ".join([f"Topic {life.topic or 'unknown'}", *facts, *life.summary])
    unseen = "".join(f"<li>{escaped(line)}</li>" for line in life.unseen)
    notes = (
        f'<p class="dim">Not visible in this capture:</p><ul class="remarks">{unseen}</ul>'
        if unseen
        else ""
    )
    return (
        f'<section class="report" id="{name}"><h2>{escaped(life.name)}</h2>'
        f'<p class="dim">{escaped(about)}</p>{notes}'
        f'<figure><div class="scroll">{_svg(life)}</div></figure>{_table(life)}</section>'
    )


def _svg(life: MessageTrace) -> str:
    width = _LEFT + _LANE * max(1, len(life.lanes))
    height = _TOP + _STEP * len(life.steps) + 14
    x = {lane: _LEFT + _LANE * at + _LANE // 2 for at, lane in enumerate(life.lanes)}
    parts = [
        f'<svg class="chart" role="img" viewBox="0 0 {width} {height}">'
        f"<title>{escaped(f'Message trace: {life.name}')}</title>"
    ]
    for lane, at in x.items():
        parts.append(
            f'<text class="tick" x="{at}" y="14" text-anchor="middle">{escaped(lane.kind)}</text>'
            f'<text x="{at}" y="30" text-anchor="middle"><title>{escaped(lane.name)}</title>'
            f"{escaped(short(lane.name, 28))}</text>"
            f'<line class="grid" x1="{at}" y1="{_TOP - 8}" x2="{at}" y2="{height - 6}"/>'
        )
    for number, step in enumerate(life.steps):
        parts.append(_arrow(step, x[step.source], x[step.target], _TOP + _STEP * number + 20))
    return "".join(parts) + "</svg>"


def _arrow(step: TraceStep, start: int, end: int, y: int) -> str:
    colour = "s5" if step.row.event in _WRONG else "s0"
    ahead = 1 if end > start else -1
    tip = f"{end},{y} {end - 9 * ahead},{y - 4} {end - 9 * ahead},{y + 4}"
    packet = "" if step.row.packet is None else f", packet {step.row.packet}"
    return (
        f"<g><title>{escaped(_words(step))}</title>"
        f'<text class="tick" x="0" y="{y + 4}">{text_of_time(step.time)[11:23]}</text>'
        f'<line class="line {colour}" x1="{start}" y1="{y}" x2="{end - 8 * ahead}" y2="{y}"/>'
        f'<polygon class="bar {colour}" points="{tip}"/>'
        f'<text x="{(start + end) // 2}" y="{y - 5}" text-anchor="middle">'
        f"{escaped(step.row.event + packet)}</text></g>"
    )


def _words(step: TraceStep) -> str:
    return f"{step.words} ({step.why})" if step.why else step.words


def _table(life: MessageTrace) -> str:
    heads = ("time (UTC)", "from", "to", "what", "capture", "packet", "conversation")
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    if any(step.row.body is not None for step in life.steps):
        head += '<th scope="col">body</th>'
    rows = "".join(
        f"<tr><td>{text_of_time(step.time)}</td><td>{escaped(step.source.name)}</td>"
        f"<td>{escaped(step.target.name)}</td>"
        f'<td title="{escaped(_words(step))}">{escaped(_words(step))}</td>'
        f"<td>{escaped(step.row.capture)}</td>"
        f'<td class="n">{"–" if step.row.packet is None else step.row.packet}</td>'
        f'<td class="n">{step.row.conversation}</td>{_body_cell(step)}</tr>'
        for step in life.steps
    )
    return (
        '<details open><summary><h3>Steps</h3></summary><div class="rows"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _body_cell(step: TraceStep) -> str:
    """Return the cell of a body, if rows have one; its text is escaped like all others."""
    body = step.row.body
    return "" if body is None else f'<td title="{escaped(body)}">{escaped(short(body, 200))}</td>'
