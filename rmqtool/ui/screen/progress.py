"""Progress on standard error: a line that updates itself on a terminal, periodic lines elsewhere.

Rules: on a terminal rich draws a bar if the total is known, otherwise a spinner, but nothing while
rows are printed on the same screen. Elsewhere lines show in a log that a long run continues;
endless runs write none.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from ..console import UNLIMITED, Style, Terminal, cut, terminal_of
from ..figures import count, duration, size

if TYPE_CHECKING:
    from rich.console import RenderableType

PATIENCE: Final = 2.0
"""seconds before the first line on a terminal"""
INTERVAL: Final = 0.2
"""seconds between updates on a terminal"""
LOG_INTERVAL: Final = 10.0
"""seconds between lines elsewhere, and before the first"""
LOG_MARK: Final = "rmqtool: progress: "
"""prefix of a line without a terminal"""
_BAR: Final = 24
"""cells of a bar"""


class Far(NamedTuple):
    """A progress state."""

    text: str
    """printable"""
    share: float | None = None
    """fraction done, 0 to 1; None: unknown"""


class ProgressLine:
    """Decides where and when progress is shown."""

    def __init__(
        self, stream: TextIO, wanted: bool, now: Callable[[], float], patience: float = PATIENCE
    ) -> None:
        """`wanted`: whether to show progress at all."""
        terminal = terminal_of(stream)
        width = (80 if terminal.width >= UNLIMITED else terminal.width) - 1
        self.wanted = wanted
        self.terminal: Terminal = terminal._replace(width=width)
        self.interval = INTERVAL if terminal.is_terminal else LOG_INTERVAL
        self.patience = patience if terminal.is_terminal else LOG_INTERVAL
        self.start = now()
        self._stream = stream
        self._now = now
        self._next = self.start + self.patience
        self._visible = False

    def is_due(self) -> bool:
        """Return whether an update is due; if so, schedule the next."""
        if not self.wanted:
            return False
        now = self._now()
        if now < self._next:
            return False
        self._next = now + self.interval
        return True

    @property
    def seconds(self) -> float:
        """The elapsed time."""
        return self._now() - self.start

    def show(self, far: Far) -> None:
        """Show the progress."""
        if self.terminal.is_terminal:
            # The cursor is not hidden, so that a killed run leaves the terminal intact.
            self._stream.write(f"\r{drawn(far, self.seconds, self.terminal)}\x1b[K")
            self._visible = True
        else:
            self._stream.write(f"{LOG_MARK}{far.text.strip()}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Clear the line for other output."""
        if self._visible:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._visible = False


def drawn(far: Far, seconds: float, terminal: Terminal) -> str:
    """Return a bar or a spinner with the text beside it, as one line."""
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table

    from .drawing import lines_of, style_of, text_of

    mark: RenderableType
    if far.share is None:
        spinner = Spinner("dots", style=style_of(Style.CYAN))
        spinner.start_time = 0.0
        mark, taken = spinner.render(seconds), 2
    else:
        dim, done = style_of(Style.DIM), style_of(Style.CYAN)
        bar = min(_BAR, terminal.width // 4)
        mark = ProgressBar(1.0, far.share, bar, style=dim, complete_style=done, finished_style=done)
        taken = bar + 1
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_row(mark, text_of(cut(far.text, terminal.width - taken)))
    return lines_of(terminal, grid)[0]


class Progress:
    """The progress of a run."""

    def __init__(
        self,
        stream: TextIO,
        wanted: bool,
        noun: str,
        now: Callable[[], float] = monotonic,
        endless: bool = False,
    ) -> None:
        """`wanted`: whether to show progress; `noun`: plural noun of what is counted.

        `endless`: the run continues until it is stopped, so a log gets no progress lines.
        """
        self._line = ProgressLine(stream, wanted, now)
        self._line.wanted &= self._line.terminal.is_terminal or not endless
        self._noun = noun

    def update(self, read: int, total: int | None, found: int) -> None:
        """Update to `read` bytes of `total` and `found` rows."""
        if self._line.is_due():
            self._line.show(self.far(read, total, found, self._line.seconds))

    def clear(self) -> None:
        """Clear the line for other output."""
        self._line.clear()

    def far(self, read: int, total: int | None, found: int, seconds: float) -> Far:
        """Return the current text."""
        rate = read / seconds if seconds > 0 else 0.0
        found_text = f"{count(found)} {self._noun}"
        if total is None or total < read:  # a file that grows
            return Far(f"{size(read)} read, {size(int(rate))}/s, {found_text}")
        left = duration(int((total - read) / rate * 1_000_000)) if rate and read < total else "0 s"
        done = read / total if total else 1.0
        text = f"{int(100 * done):3d}% of {size(total)}, {size(int(rate))}/s, {found_text}"
        return Far(f"{text}, {left} left", done)


class StageLine:
    """The current stage of a run; a context manager whose thread updates the line."""

    def __init__(self, stream: TextIO, wanted: bool, now: Callable[[], float] = monotonic) -> None:
        self._line = ProgressLine(stream, wanted, now, PATIENCE / 5)
        self._stage = ""
        self._far: Callable[[], Far] = lambda: Far("")
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> StageLine:
        if self._line.wanted:
            # Single calls of Spark block for seconds.
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._line.clear()

    def at(self, stage: str, far: Callable[[], Far] = lambda: Far("")) -> None:
        """Start a stage; another thread calls `far` for its progress."""
        self._stage, self._far = stage, far

    def far(self) -> Far:
        """Return the current line."""
        far = Far("")
        with suppress(Exception):  # Spark may just be ending
            far = self._far()
        elapsed = duration(int(self._line.seconds * 1_000_000))
        return Far(", ".join(filter(None, [self._stage, far.text, elapsed])), far.share)

    def _run(self) -> None:
        wait = self._line.patience
        while not self._ended.wait(wait):
            if self._stage:
                self._line.show(self.far())
            wait = self._line.interval
