"""Questions to the user on standard error, by rich.

Rules: a question has its own words only, none of the network: those stand above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from ..console import Style, terminal_of
from .panels import question_lines

if TYPE_CHECKING:
    from rich.prompt import Prompt


def typed(title: str, texts: Sequence[str], question: str, input_: TextIO, output: TextIO) -> str:
    """Return the answer to a question; empty at the end of the input.

    `texts`: context to show before the question, under a title.
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
