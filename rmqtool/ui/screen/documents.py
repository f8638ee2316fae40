"""Documents of the project, laid out by rich; never a text from the network: it may be Markdown."""

from __future__ import annotations

from rich.markdown import Markdown

from ..console import Terminal
from .drawing import lines_of


def document_lines(text: str, terminal: Terminal) -> list[str]:
    """Return a document as lines that fit."""
    return lines_of(terminal, Markdown(text))
