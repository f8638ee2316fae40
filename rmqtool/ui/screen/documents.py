"""Documents of the project, laid out by rich; never a text from the network: it may be Markdown."""

from __future__ import annotations

from typing import Final

from rich.markdown import Markdown

from ..console import Terminal
from .drawing import lines_of

_STYLES: Final = {"markdown.code": "cyan", "markdown.code_block": "cyan"}
"""styles that are readable on light and dark screens: without background"""
_CODE: Final = "ansi_light"


def document_lines(text: str, terminal: Terminal) -> list[str]:
    """Return a document as lines that fit the terminal."""
    return lines_of(terminal, Markdown(text, code_theme=_CODE), styles=_STYLES)
