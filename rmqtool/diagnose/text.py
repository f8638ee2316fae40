"""A diagnosis as text: the verdict first, then incidents, the cause before what followed from it.

Rules: a screenful without `-V`; everything from the network is printable; nothing is cut that is
needed to act, lines are wrapped instead.
"""

from __future__ import annotations

import re
from itertools import groupby
from typing import Final

from analytics.diagnosis.engine import Diagnosis, not_judged, not_judged_in_short
from analytics.diagnosis.incidents import impact_of
from analytics.diagnosis.problem import Problem, occurrences_text
from dissectors.quantities import counted

from ..summary.verdict import LABEL_CELLS, LABELS, verdict
from ..ui.console import Style, Terminal, one_line
from ..ui.figures import clock, day, duration, zone_name
from ..ui.screen.panels import Labelled, fact_lines, panel_lines

MOST_SHOWN: Final = 30
"""most problems that are shown without `-V`"""


def diagnosis_lines(
    diagnosis: Diagnosis, name: str, terminal: Terminal, verbose: bool
) -> list[str]:
    """Return the diagnosis as printable lines; on a terminal each incident is in a frame."""
    problems = diagnosis.problems
    style = Style.BOLD if problems else Style.BOLD + Style.GREEN
    lines = fact_lines(
        [
            Labelled(f"{one_line(name)}: {verdict(diagnosis)}", style),
            Labelled(looked_at(diagnosis), Style.DIM),
        ],
        terminal,
    )
    shown = problems if verbose or len(problems) <= MOST_SHOWN else problems[:MOST_SHOWN]
    lines += [""] if shown else []
    for number, (_, incident) in enumerate(groupby(shown, lambda one: one.incident)):
        lines += [""] if number and not terminal.is_terminal else []
        lines += _incident_lines(list(incident), terminal, verbose)
    last = []
    if len(shown) < len(problems):
        last.append(
            Labelled(f"… and {counted(len(problems) - len(shown), 'more problem')}; -V shows all")
        )
        lines.append("")
    lines += fact_lines(last, terminal)
    limits = not_judged(diagnosis) if verbose else not_judged_in_short(diagnosis)
    last = [Labelled(line, Style.DIM) for line in limits]
    lines += [""] if limits else []
    if problems and not verbose:
        way = f"rmqtool diagnose --explain {problems[0].rule}"
        last.append(Labelled(f"Evidence and advice: -V. About this rule: {way}", Style.DIM))
    return lines + fact_lines(last, terminal)


def _incident_lines(problems: list[Problem], terminal: Terminal, verbose: bool) -> list[str]:
    """Return problems grouped by incident, the cause first."""
    impact = impact_of(problems)
    first = [Labelled(f"Impact: {one_line(impact)}", Style.BOLD)] if impact else []
    if not terminal.is_terminal:
        facts = [
            *first,
            *(fact for problem in problems for fact in problem_facts(problem, verbose)),
        ]
        return fact_lines(facts, terminal)
    cause, *others = problems
    label, colour = LABELS[cause.severity]
    facts = [
        *first,
        *(fact._replace(label="", indent=0) for fact in problem_facts(cause, verbose)),
        *(fact for problem in others for fact in problem_facts(problem, verbose)),
    ]
    return panel_lines(f"{label} {cause.rule}", colour, facts, terminal)


def looked_at(diagnosis: Diagnosis) -> str:
    """Return the facts on the input."""
    context = diagnosis.context
    if context.first_time is None or context.last_time is None:
        return f"no exchanges; {counted(context.quality.connections, 'connection')}"
    first, last = context.first_time, context.last_time
    until = clock(last) if day(first) == day(last) else f"{day(last)} {clock(last)}"
    length = duration((last - first) // 1000)
    window = f"{day(first)} {clock(first)} to {until} {zone_name()} ({length})"
    connections = context.quality.connections
    on = f" on {counted(connections, 'connection')}" if connections else ""
    return (
        f"{window}: {counted(context.exchanges, 'exchange')}{on},"
        f" checked against {counted(diagnosis.spoke, 'rule')}"
    )


def problem_facts(problem: Problem, verbose: bool) -> list[Labelled]:
    """Return a problem: title, time, confidence, rule, and packets."""
    label, colour = LABELS[problem.severity]
    follows = problem.consequence_of is not None
    indent = LABEL_CELLS + 2 if follows else LABEL_CELLS
    head = f"└ {label}" if follows else label
    texts = [(_facts_line(problem), Style.DIM)]
    if problem.reason:
        texts.append((f"not certain: {one_line(problem.reason)}", ""))
    if verbose:
        texts += _details(problem)
    elif not follows:
        texts.append((f"What to do: {first_sentence(problem.advice)}", ""))
    title = Labelled(one_line(problem.title), Style.BOLD, head, colour, indent)
    return [title, *(Labelled(text, style, indent=indent) for text, style in texts)]


def _details(problem: Problem) -> list[tuple[str, str]]:
    """Return the details that `-V` shows, with their styles."""
    texts = [(one_line(text), "") for text in problem.details]
    for evidence in problem.evidence:
        packet = f"packet {evidence.packet}" if evidence.packet is not None else "connection"
        where = f"{clock(evidence.time)} {one_line(evidence.capture)} {packet}"
        texts.append(
            (f"{where} (conversation {evidence.conversation}): {one_line(evidence.what)}", "")
        )
    if problem.filter:
        texts.append((f"Wireshark: {problem.filter}", ""))
    texts += [(f"Explanation: {problem.explanation}", ""), (f"What to do: {problem.advice}", "")]
    if problem.references:
        texts.append((f"References: {', '.join(problem.references)}", Style.DIM))
    return texts


def _facts_line(problem: Problem) -> str:
    first, last = problem.first_time, problem.last_time
    until = clock(last) if day(first) == day(last) else f"{day(last)} {clock(last)}"
    # A count of messages is already in the title.
    times = 1 if problem.count in problem.impact.values() else problem.count
    when = occurrences_text(clock(first), until, times, problem.state)
    return f"{when}; confidence: {problem.confidence}; {problem.rule}{_packets(problem)}"


def _packets(problem: Problem) -> str:
    shown = [evidence.packet for evidence in problem.evidence if evidence.packet is not None]
    packets = list(dict.fromkeys(shown))  # several calls may share one
    if not packets:
        numbers = sorted({evidence.conversation for evidence in problem.evidence})
        if not numbers:
            return ""
        noun = "conversation" if len(numbers) == 1 else "conversations"
        more = ", …" if len(numbers) > 4 else ""
        return f"; {noun} {', '.join(map(str, numbers[:4]))}{more}"
    more = ", …" if len(packets) > 4 or problem.count > len(shown) else ""
    noun = "packet" if len(packets) == 1 else "packets"
    return f"; {noun} {', '.join(map(str, packets[:4]))}{more}"


def first_sentence(text: str) -> str:
    """Return a text up to the end of its first sentence."""
    end = re.search(r"\.(?=\s)", text)
    return text[: end.end()] if end is not None else text
