"""A line to type in, with what the word may become and what is wrong at the place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from dissectors.where.filter import WhereError

from ..model.expressions import Offer
from .paint import text_of

MOST_SHOWN: Final = 6
_NO_OFFER: Final = Offer(0, [])


class LineInput(Input):
    """The line itself; the words that it offers are chosen with the arrows and Tab."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("down", "offer(1)", "next word", show=False, priority=True),
        Binding("up", "offer(-1)", "word before", show=False, priority=True),
        Binding("escape", "leave", "leave", show=False, priority=True),
    ]

    def action_complete(self) -> None:
        """Take the word."""
        self._line.complete()

    def action_offer(self, by: int) -> None:
        """Choose among the words, or the lines typed before."""
        self._line.choose(by)

    def action_leave(self) -> None:
        """Go back to the list."""
        self._line.post_message(FilterLine.Left(self._line))

    @property
    def _line(self) -> FilterLine:
        parent = self.parent
        assert isinstance(parent, FilterLine)
        return parent


class FilterLine(Vertical):
    """A line with completion."""

    DEFAULT_CSS = """
    FilterLine { height: auto; display: none; background: $surface; }
    FilterLine.open { display: block; }
    FilterLine > * { min-width: 10; }  /* words of no width cannot be drawn */
    FilterLine Input { padding: 0 1; }
    FilterLine OptionList { border: none; max-height: 6; height: auto; padding: 0 1; }
    FilterLine .wrong { color: $error; height: auto; padding: 0 1; }
    """

    class Entered(Message):
        """The line was finished."""

        def __init__(self, line: FilterLine, text: str) -> None:
            super().__init__()
            self.line = line
            self.text = text

    class Left(Message):
        """The line was left."""

        def __init__(self, line: FilterLine) -> None:
            super().__init__()
            self.line = line

    def __init__(
        self,
        check: Callable[[str], object] = lambda _: None,
        offers: Callable[[str], Offer] = lambda _: _NO_OFFER,
        **given: Any,
    ) -> None:
        """`check` raises WhereError for a wrong text; `offers`: what its last word may become."""
        super().__init__(**given)
        self.check = check
        self.offers = offers
        self.history: list[str] = []
        self._offer = _NO_OFFER

    def compose(self) -> ComposeResult:
        """Make the parts."""
        yield OptionList(markup=False)
        yield Static("", classes="wrong", markup=False)
        yield LineInput(placeholder="", select_on_focus=False, compact=True)

    def on_mount(self) -> None:
        """Hide what is offered while there is nothing."""
        words = self.query_one(OptionList)
        words.can_focus = False
        words.display = False
        self.query_one(".wrong").display = False

    @property
    def input(self) -> LineInput:
        """The line itself."""
        return self.query_one(LineInput)

    def open(self, text: str, placeholder: str = "") -> None:
        """Let somebody type."""
        self.add_class("open")
        self.input.placeholder = placeholder
        self.input.value = text
        self.input.cursor_position = len(text)
        self.input.focus()
        self._look()

    def shut(self) -> None:
        """Take it from the screen."""
        self.remove_class("open")

    def complete(self) -> None:
        """Put the chosen word in place of the one that is typed."""
        words = self._offer.words
        if not words:
            return
        at = self.query_one(OptionList).highlighted or 0
        value, cursor = self.input.value, self.input.cursor_position
        word = words[min(at, len(words) - 1)]
        head = value[: self._offer.start] + word + " "
        self.input.value = head + value[cursor:].lstrip()
        self.input.cursor_position = len(head)

    def choose(self, by: int) -> None:
        """Go through the words; in an empty line, through those typed before."""
        if not self.input.value and self.history and by < 0:
            self.input.value = self.history[-1]
            self.input.cursor_position = len(self.input.value)
            return
        words = self.query_one(OptionList)
        count = words.option_count
        if count:
            words.highlighted = ((words.highlighted or 0) + by) % count

    def on_input_changed(self, event: Input.Changed) -> None:
        """Look at what was typed."""
        event.stop()
        self._look()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the line, unless it is wrong."""
        event.stop()
        text = event.value.strip()
        if self._wrong(event.value):
            return
        if text and text not in self.history[-1:]:
            self.history.append(text)
        self.post_message(self.Entered(self, text))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Take the word under the mouse."""
        event.stop()
        self.complete()
        self.input.focus()

    def _look(self) -> None:
        value = self.input.value[: self.input.cursor_position]
        self._offer = self.offers(value)
        words = self.query_one(OptionList)
        words.clear_options()
        words.add_options([Option(text_of(one)) for one in self._offer.words])
        words.display = bool(self._offer.words)
        if self._offer.words:
            words.highlighted = 0
        self._wrong(self.input.value, typing=True)

    def _wrong(self, text: str, typing: bool = False) -> bool:
        """Show what is wrong with a text, under its place; `typing`: its end may be missing."""
        said = ""
        try:
            self.check(text)
        except WhereError as error:
            at_end = error.position >= len(text.rstrip()) or self._offer.start <= error.position
            if not (typing and at_end):
                said = f"{error.pointed()}\n  {error.reason}"
        wrong = self.query_one(".wrong", Static)
        wrong.display = bool(said)
        wrong.update("\n".join(text_of(line).plain for line in said.split("\n")))
        return bool(said)
