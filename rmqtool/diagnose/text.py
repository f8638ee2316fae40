"""A diagnosis as text: the verdict first, then incidents, the cause before what followed from it.

Rules: a screenful without `-V`; everything from the network is printable; nothing is cut that is
needed to act, lines are wrapped instead.
"""

from __future__ import annotations

import re
from typing import Final

from analytics.diagnosis.engine import Diagnosis, not_judged
from analytics.diagnosis.problem import Problem

from ..summary.verdict import LABELS, verdict
from ..ui.console import UNLIMITED, Style, Terminal, one_line, styled, wrapped
from ..ui.figures import clock, count, counted, day, zone_name

MOST_SHOWN: Final = 30
"""problems that are shown without `-V`"""
MOST_LINES: Final = 40
"""lines of one paragraph"""
_WIDTH: Final = 9
"""cells of the severity"""


def diagnosis_lines(
    diagnosis: Diagnosis, name: str, terminal: Terminal, verbose: bool
) -> list[str]:
    """Return the diagnosis as printable lines."""
    writer = _Writer(terminal)
    writer.paragraph(f"{one_line(name)}: {verdict(diagnosis)}", Style.BOLD)
    writer.paragraph(looked_at(diagnosis), Style.DIM)
    problems = diagnosis.problems
    shown = problems if verbose or len(problems) <= MOST_SHOWN else problems[:MOST_SHOWN]
    incident = 0
    for problem in shown:
        if problem.incident != incident:
            incident = problem.incident
            writer.lines.append("")
        writer.problem(problem, verbose)
    if len(shown) < len(problems):
        writer.lines.append("")
        writer.paragraph(f"… and {counted(len(problems) - len(shown), 'more problem')}; -V has all")
    limits = not_judged(diagnosis)
    if limits:
        writer.lines.append("")
        for line in limits if verbose else limits[:3]:
            writer.paragraph(line, Style.DIM)
    if problems and not verbose:
        writer.paragraph(
            "Evidence and advice: -V. A rule in words: rmqtool diagnose --explain"
            f" {problems[0].rule}",
            Style.DIM,
        )
    return writer.lines


def looked_at(diagnosis: Diagnosis) -> str:
    """Return what was looked at."""
    context = diagnosis.context
    if context.first_time is None or context.last_time is None:
        return f"no exchange to look at; {counted(context.quality.connections, 'connection')}"
    first, last = context.first_time, context.last_time
    until = clock(last) if day(first) == day(last) else f"{day(last)} {clock(last)}"
    return (
        f"{counted(context.exchanges, 'exchange')}, {day(first)} {clock(first)} to {until}"
        f" {zone_name()}, by {counted(diagnosis.spoke, 'rule')}"
    )


class _Writer:
    def __init__(self, terminal: Terminal) -> None:
        self.lines: list[str] = []
        self._terminal = terminal

    def paragraph(self, text: str, style: str = "", indent: int = 0) -> None:
        """Add a text as many lines as it needs."""
        width = self._terminal.width
        lines = [text] if width >= UNLIMITED else wrapped(text, width - indent, MOST_LINES)
        for line in lines:
            self.lines.append(" " * indent + self._styled(line, style))

    def problem(self, problem: Problem, verbose: bool) -> None:
        """Add a problem: its sentence, then when, how sure, by which rule, with which packets."""
        label, colour = LABELS[problem.severity]
        follows = problem.consequence_of is not None
        indent = 2 if follows else 0
        head = ("└ " if follows else "") + label
        width = self._terminal.width
        room = UNLIMITED if width >= UNLIMITED else width - _WIDTH - indent
        title = one_line(problem.title)
        lines = [title] if room >= UNLIMITED else wrapped(title, room, MOST_LINES)
        start = " " * (indent - 2 if follows else 0)
        for number, line in enumerate(lines):
            first = head.ljust(_WIDTH + 2) if follows else head.ljust(_WIDTH)
            mark = self._styled(first, colour) if not number else " " * len(first)
            self.lines.append(f"{start}{mark}{self._styled(line, Style.BOLD)}")
        inner = _WIDTH + indent
        self.paragraph(_facts_line(problem), Style.DIM, inner)
        if problem.reason:
            self.paragraph(f"{problem.confidence}: {one_line(problem.reason)}", "", inner)
        if verbose:
            self._more(problem, inner)
        elif not follows:
            self.paragraph(f"What to do: {first_sentence(problem.advice)}", "", inner)

    def _more(self, problem: Problem, indent: int) -> None:
        for text in problem.details:
            self.paragraph(one_line(text), "", indent)
        for one in problem.evidence:
            packet = f"packet {one.packet}" if one.packet is not None else "connection"
            self.paragraph(
                f"{clock(one.time)} {one_line(one.capture)} {packet}"
                f" (conversation {one.conversation}): {one_line(one.what)}",
                "",
                indent,
            )
        if problem.filter:
            self.paragraph(f"Wireshark: {problem.filter}", "", indent)
        self.paragraph(f"Why: {problem.explanation}", "", indent)
        self.paragraph(f"What to do: {problem.advice}", "", indent)
        if problem.references:
            self.paragraph(f"See: {', '.join(problem.references)}", Style.DIM, indent)

    def _styled(self, text: str, style: str) -> str:
        return styled(text, style) if self._terminal.colour and style else text


def _facts_line(problem: Problem) -> str:
    first, last = problem.first_time, problem.last_time
    when = clock(first)
    if last > first:
        when += f" to {clock(last) if day(first) == day(last) else f'{day(last)} {clock(last)}'}"
    often = f", {count(problem.count)} times" if problem.count > 1 else ""
    return f"{when}{often}, {problem.confidence}; {problem.rule}{_packets(problem)}"


def _packets(problem: Problem) -> str:
    packets = [one.packet for one in problem.evidence if one.packet is not None]
    if not packets:
        numbers = sorted({one.conversation for one in problem.evidence})
        return f"; conversation {', '.join(map(str, numbers[:4]))}" if numbers else ""
    more = ", …" if len(packets) > 4 or problem.count > len(packets) else ""
    noun = "packet" if len(packets) == 1 else "packets"
    return f"; {noun} {', '.join(map(str, packets[:4]))}{more}"


def first_sentence(text: str) -> str:
    """Return a text up to the end of its first sentence."""
    end = re.search(r"\.(?=\s+[A-Z])", text)
    return text[: end.end()] if end is not None else text
