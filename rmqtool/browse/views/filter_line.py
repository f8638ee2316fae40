"""An input line with completion and a pointer to errors."""

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

_NO_OFFER: Final = Offer(0, [])


class LineInput(Input):
    """The input field; completions are chosen with the arrows and Tab."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "complete", show=False, priority=True),
        Binding("down", "offer(1)", "next word", show=False, priority=True),
        Binding("up", "offer(-1)", "word before", show=False, priority=True),
        Binding("escape", "leave", "leave", show=False, priority=True),
    ]

    def action_complete(self) -> None:
        """Accept the completion."""
        self._line.complete()

    def action_offer(self, by: int) -> None:
        """Select a completion, or a line of the history."""
        self._line.choose(by)

    def action_leave(self) -> None:
        """Move the focus to the list."""
        self._line.post_message(FilterLine.Left())

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
        """The line was submitted."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The line was cancelled."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.check: Callable[[str], object] = lambda _: None
        """raises WhereError for an invalid text"""
        self.offers: Callable[[str], Offer] = lambda _: _NO_OFFER
        """returns completions"""
        self.history: list[str] = []
        self._offer = _NO_OFFER

    def compose(self) -> ComposeResult:
        """Compose the widgets."""
        yield OptionList(markup=False)
        yield Static("", classes="wrong", markup=False)
        yield LineInput(placeholder="", select_on_focus=False, compact=True)

    def on_mount(self) -> None:
        """Hide the completions at first."""
        words = self.query_one(OptionList)
        words.can_focus = False  # a click must not take the keys from the input
        words.display = False
        self.query_one(".wrong").display = False

    @property
    def input(self) -> LineInput:
        """The input field."""
        return self.query_one(LineInput)

    def open(self, text: str, placeholder: str = "") -> None:
        """Open the line."""
        self.add_class("open")
        self.input.placeholder = placeholder
        self.input.value = text
        self.input.cursor_position = len(text)
        self.input.focus()
        self._look()

    def shut(self) -> None:
        """Close the line."""
        self.remove_class("open")

    def complete(self) -> None:
        """Replace the typed word with the selected completion."""
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
        """Move through the completions, or in an empty line through the history."""
        if not self.input.value and self.history and by < 0:
            self.input.value = self.history[-1]
            self.input.cursor_position = len(self.input.value)
            return
        words = self.query_one(OptionList)
        count = words.option_count
        if count:
            words.highlighted = ((words.highlighted or 0) + by) % count

    def on_input_changed(self, event: Input.Changed) -> None:
        """Check the typed text."""
        event.stop()
        self._look()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Submit the line if it is valid."""
        event.stop()
        text = event.value.strip()
        if self._wrong(event.value):
            return
        if text and text not in self.history[-1:]:
            self.history.append(text)
        self.post_message(self.Entered(text))

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Accept the completion under the mouse."""
        event.stop()
        self.complete()
        self.input.focus()

    def _look(self) -> None:
        value = self.input.value[: self.input.cursor_position]
        self._offer = self.offers(value)
        words = self.query_one(OptionList)
        words.clear_options()
        words.add_options([Option(text_of(word)) for word in self._offer.words])
        words.display = bool(self._offer.words)
        if self._offer.words:
            words.highlighted = 0
        self._wrong(self.input.value, typing=True)

    def _wrong(self, text: str, typing: bool = False) -> bool:
        """Show an error under its position; `typing`: the end may be missing."""
        message = ""
        try:
            self.check(text)
        except WhereError as error:
            # The word that is being typed is not wrong yet.
            at_end = error.position >= len(text.rstrip()) or self._offer.start <= error.position
            if not (typing and at_end):
                message = f"{error.pointed()}\n  {error.reason}"
        wrong = self.query_one(".wrong", Static)
        wrong.display = bool(message)
        wrong.update("\n".join(text_of(line).plain for line in message.split("\n")))
        return bool(message)
