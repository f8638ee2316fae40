"""Timeline of the listed rows: rate, errors, latency; a range can be selected."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rich.style import Style as RichStyle
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from dissectors.quantities import counted

from ...ui.figures import clock, count, duration
from ..model.listing import Bucket, Timeline
from .paint import PLAIN, Piece, strip_of

_BARS: Final = " ▁▂▃▄▅▆▇█"
_WRONG: Final = RichStyle(color="red")
_WRONG_BAR: Final = "!"
"""bar characters without colours"""
_SLOW: Final = RichStyle(color="yellow")
_PICKED: Final = RichStyle(reverse=True)


class TimelineStrip(Widget, can_focus=True):
    """Bars of rows and of the longest latency, from the first row to the last."""

    DEFAULT_CSS = """
    TimelineStrip { height: 3; border: none; }
    TimelineStrip:focus { background: $boost; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("h,left", "go(-1)", "earlier", show=False),
        Binding("l,right", "go(1)", "later", show=False),
        Binding("H,shift+left", "go(-10)", "much earlier", show=False),
        Binding("L,shift+right", "go(10)", "much later", show=False),
        Binding("space,v", "begin", "start a range", show=False),
        Binding("enter", "pick", "list this range", show=False),
        Binding("tab", "app.other_pane", "details", show=False),
    ]

    class Picked(Message):
        """A time range was selected."""

        def __init__(self, first: int, end: int) -> None:
            super().__init__()
            self.first = first
            """nanoseconds since the epoch"""
            self.end = end

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._buckets: list[Bucket] = []
        self._at = 0
        self._begun: int | None = None

    def show(self, timeline: Timeline) -> None:
        """Show the timeline of other rows."""
        buckets = timeline.columns(max(1, self.size.width - 1))
        if buckets == self._buckets:
            return
        self._buckets = buckets
        self._at = max(0, min(self._at, len(self._buckets) - 1))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Return a line of the strip: rows, latencies, or times."""
        width, buckets = self.size.width, self._buckets
        if y == 2 or not buckets:
            return strip_of([(self._words() if y == 2 else "", PLAIN)], self.rich_style, width)
        most = max(max((bucket.rows if y == 0 else bucket.latency_us) for bucket in buckets), 1)
        first, last = self._part()
        pieces: list[Piece] = []
        for at, bucket in enumerate(buckets):
            value = bucket.rows if y == 0 else bucket.latency_us
            bar = _BARS[-(-value * (len(_BARS) - 1) // most)]  # rounded up: one row is visible
            style = (_WRONG if bucket.bad else PLAIN) if y == 0 else _SLOW
            if y == 0 and bucket.bad and self.app.no_color:
                bar = _WRONG_BAR
            if self.has_focus and first <= at <= last:
                style += _PICKED
            pieces.append((bar, style))
        return strip_of(pieces, self.rich_style, width)

    def _part(self) -> tuple[int, int]:
        begun = self._at if self._begun is None else self._begun
        return min(begun, self._at), max(begun, self._at)

    def _words(self) -> str:
        buckets = self._buckets
        if not buckets:
            return ""
        if self.has_focus:
            first, last = self._part()
            part = buckets[first : last + 1]
            slow = max(bucket.latency_us for bucket in part)
            text = (
                f"{clock(part[0].start)} to {clock(part[-1].end)}:"
                f" {counted(sum(bucket.rows for bucket in part), 'row')},"
                f" {count(sum(bucket.bad for bucket in part))} bad"
                f"{f', up to {duration(slow)}' if slow else ''}"
            )
            return f"{text}  Space:start a range Enter:list rows"
        rows, slow = (
            max(bucket.rows for bucket in buckets),
            max(bucket.latency_us for bucket in buckets),
        )
        words = f"{clock(buckets[0].start)} to {clock(buckets[-1].end)}; highest bars:"
        return f"{words} {counted(rows, 'row')}" + (f", {duration(slow)}" if slow else "")

    def action_go(self, by: int) -> None:
        """Move to another bar."""
        self._at = max(0, min(self._at + by, len(self._buckets) - 1))
        self.refresh()

    def action_begin(self) -> None:
        """Start a range at this bar, or cancel it."""
        self._begun = self._at if self._begun is None else None
        self.refresh()

    def action_pick(self) -> None:
        """List the rows of the range."""
        if self._buckets:
            first, last = self._part()
            self._begun = None
            self.post_message(self.Picked(self._buckets[first].start, self._buckets[last].end))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start a range under the mouse."""
        self.focus()
        self._begun = self._at = max(0, min(event.x, len(self._buckets) - 1))
        self.capture_mouse()
        self.refresh()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Extend the range."""
        if self._begun is not None and event.button:
            self._at = max(0, min(event.x, len(self._buckets) - 1))
            self.refresh()

    def on_mouse_up(self) -> None:
        """List the rows of the range; a single bar is only selected."""
        self.release_mouse()
        if self._begun is not None and self._begun != self._at:
            self.action_pick()
        self._begun = None

    def on_focus(self) -> None:
        """Show the selection."""
        self.refresh()

    def on_blur(self) -> None:
        """Show the whole time range."""
        self.refresh()
