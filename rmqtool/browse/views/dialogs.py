"""Dialogs over the lists: help, texts, questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from ...ui.console import Style, cells, padded, styled
from .keys import GROUPS, IN_LISTS
from .lines_view import LinesView
from .paint import text_of


class TextDialog(ModalScreen[str | None]):
    """A dialog with lines and an optional action."""

    CSS: ClassVar[str] = """
    TextDialog { align: center middle; }
    TextDialog > Vertical { width: 90%; max-width: 110; height: 80%; border: round $primary;
        background: $surface; }
    TextDialog .head { height: 1; text-style: bold; padding: 0 1; }
    TextDialog LinesView { padding: 0 1; }
    TextDialog .foot { height: 1; color: $text-muted; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark", "leave", "close"),
        Binding("enter", "accept", "accept"),
    ]

    def __init__(self, title: str, lines: Sequence[str], accept: str = "", **given: Any) -> None:
        """`accept`: label of the action of Enter; empty: Enter only closes."""
        super().__init__(**given)
        self._title = title
        self._lines = list(lines)
        self._accept = accept

    def compose(self) -> ComposeResult:
        """Compose the widgets."""
        with Vertical():
            yield Static(text_of(self._title), classes="head")
            yield LinesView()
            does = f"Enter: {self._accept}   " if self._accept else ""
            yield Static(text_of(f"{does}Esc: close"), classes="foot")

    def on_mount(self) -> None:
        """Show the lines."""
        view = self.query_one(LinesView)
        view.show_lines(self._lines)
        view.focus()

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

    def action_accept(self) -> None:
        """Do it."""
        self.dismiss("accepted" if self._accept else None)


def help_lines() -> list[str]:
    """Return the help text of the keys."""
    lines: list[str] = []
    parts: list[tuple[str, Sequence[tuple[str, str]]]] = [("In a list", IN_LISTS)]
    parts += [
        (name, tuple((key.shown, key.says) for key in group)) for name, group in GROUPS.items()
    ]
    width = max(cells(shown) for _, keys in parts for shown, _ in keys)
    for name, keys in parts:
        lines += [""] if lines else []
        lines.append(styled(name, Style.BOLD + Style.CYAN))
        lines += [f"  {padded(shown, width)}  {says}" for shown, says in keys]
    return lines
