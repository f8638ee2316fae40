"""Labelled texts and questions: drawn by rich on a terminal, framed or not; plain elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Final, NamedTuple, TextIO

from ..console import UNLIMITED, Style, Terminal, cells, styled, terminal_of, wrapped

if TYPE_CHECKING:
    from rich.prompt import Prompt
    from rich.table import Table

_WIDEST: Final = 120
"""width of a frame around an error or a question"""
MOST_LINES: Final = 60
"""most lines of a text without a terminal, if lines are limited"""


class Labelled(NamedTuple):
    """A text that wraps."""

    text: str
    """printable"""
    style: str = ""
    """SGR sequence"""
    label: str = ""
    """label before the first line"""
    label_style: str = ""
    """SGR sequence of the label"""
    indent: int = 0
    """indent of the text, which holds the label"""
    hang: int = 0
    """additional indent of all lines but the first"""


def fact_lines(facts: Sequence[Labelled], terminal: Terminal) -> list[str]:
    """Return texts as lines: drawn by rich on a terminal, plain elsewhere."""
    if terminal.is_terminal and terminal.width < UNLIMITED and facts:
        from .drawing import lines_of

        return lines_of(terminal, *_grids(facts))
    return _plain_lines(facts, terminal)


def indented_facts(lines: Sequence[str]) -> list[Labelled]:
    """Return lines as texts with the same indentation."""
    bare = [line.lstrip(" ") for line in lines]
    return [
        Labelled(text, indent=len(line) - len(text), hang=2)
        for line, text in zip(lines, bare, strict=True)
    ]


def _plain_lines(facts: Sequence[Labelled], terminal: Terminal) -> list[str]:
    lines = []
    for fact in facts:
        room = terminal.width - fact.indent
        fits = terminal.width >= UNLIMITED or cells(fact.text) <= room
        texts = [fact.text] if fits else wrapped(fact.text, room - fact.hang, MOST_LINES)
        for number, text in enumerate(texts):
            mark = "" if number else fact.label
            start = " " * (fact.indent - len(mark) + (fact.hang if number else 0))
            if terminal.colour:
                mark, text = styled(mark, fact.label_style), styled(text, fact.style)
            lines.append(f"{mark}{start}{text}")
    return lines


class FactLines:
    """Lines of headings and texts for a terminal, as they come."""

    def __init__(self, terminal: Terminal) -> None:
        self.lines: list[str] = []
        """lines so far"""
        self.terminal = terminal

    def heading(self, text: str) -> None:
        """Start a section after an empty line."""
        if self.lines:
            self.lines.append("")
        self.text(Labelled(text, Style.BOLD + Style.CYAN))

    def text(self, *facts: Labelled) -> None:
        """Add texts."""
        self.lines += fact_lines(facts, self.terminal)


def panel_lines(title: str, style: str, facts: Sequence[Labelled], terminal: Terminal) -> list[str]:
    """Return a frame with a title around texts; `style` is that of the frame and the title."""
    from rich.console import Group
    from rich.panel import Panel

    from .drawing import lines_of, style_of, text_of

    panel = Panel(
        Group(*_grids(facts)),
        title=text_of(title, style),
        title_align="left",
        border_style=style_of(style),
        width=terminal.width,
    )
    return lines_of(terminal, panel)


def error_lines(texts: Sequence[str], stream: IO[str]) -> list[str]:
    """Return an error in a frame for the terminal `stream`."""
    return _notice("Error", Style.RED, texts, terminal_of(stream))


def question_lines(title: str, texts: Sequence[str], stream: IO[str]) -> list[str]:
    """Return the context of a question, in a frame on a terminal."""
    terminal = terminal_of(stream)
    if not terminal.is_terminal:
        return list(texts)
    return _notice(title, Style.YELLOW, texts, terminal)


def _notice(title: str, style: str, texts: Sequence[str], terminal: Terminal) -> list[str]:
    shown = terminal._replace(width=min(terminal.width, _WIDEST))
    return panel_lines(title, style, indented_facts(texts), shown)


def _grids(facts: Sequence[Labelled]) -> list[Table]:
    """Return the texts; those with the same indent in a row share a grid."""
    from rich.table import Table

    from .drawing import Hanging, folded_text, text_of

    grids: list[Table] = []
    last = -1
    for fact in facts:
        if fact.indent != last:
            last = fact.indent
            grid = Table.grid()
            if fact.indent:
                grid.add_column(width=fact.indent, no_wrap=True)
            grid.add_column(overflow="fold")
            grids.append(grid)
        labels = [text_of(fact.label, fact.label_style)] if fact.indent else []
        text = folded_text(fact.text, fact.style)
        grids[-1].add_row(*labels, Hanging(text, fact.hang) if fact.hang else text)
    return grids


def typed(title: str, texts: Sequence[str], question: str, input_: TextIO, output: TextIO) -> str:
    """Return the answer to a question; empty at the end of the input.

    `texts`: context to show before the question, under a title. Words of the network are only
    there, never in the question.
    """
    print("\n".join(question_lines(title, texts, output)), file=output)
    return _prompt(question, output)(default="", stream=input_)


def asked(title: str, texts: Sequence[str], question: str, output: TextIO) -> None:
    """Print the question without waiting for the answer."""
    print("\n".join(question_lines(title, texts, output)), file=output)
    prompt = _prompt(question, output)
    prompt.console.print(prompt.make_prompt(""), end="")
    output.flush()


def _prompt(question: str, output: TextIO) -> Prompt:
    from rich.prompt import Prompt
    from rich.text import Text

    from .drawing import console_on, style_of

    terminal = terminal_of(output)
    console = console_on(output, terminal)
    return Prompt(Text(question, style_of(Style.BOLD)), console=console, show_default=False)
