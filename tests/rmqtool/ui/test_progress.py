"""Progress: only for who waits, and gone when it is over."""

from __future__ import annotations

import io

from rmqtool.ui.screen.progress import Progress


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def shown(stream: io.StringIO, wanted: bool = True) -> list[str]:
    clock = Clock()
    progress = Progress(stream, wanted, "exchanges", clock)
    for second in (0.5, 1.9, 2.1, 2.2, 2.5):
        clock.now = 100 + second
        progress.update(int(second * 1_000_000), 10_000_000, int(second * 100))
    progress.clear()
    return stream.getvalue().split("\r")


def test_a_line_that_renews_itself() -> None:
    _, first, second, cleared = shown(Screen())
    assert first == " 21% of 10.0 MB, 1.00 MB/s, 210 exchanges, 7.90s left\x1b[K"
    assert second.startswith(" 25% of 10.0 MB")
    assert cleared == "\x1b[K"


def test_nothing_without_a_terminal_or_a_wish() -> None:
    assert shown(io.StringIO()) == [""]
    assert shown(Screen(), wanted=False) == [""]


def test_a_size_that_is_not_known() -> None:
    stream, clock = Screen(), Clock()
    progress = Progress(stream, True, "commands", clock)
    clock.now += 4
    progress.update(8_000_000, None, 12)
    assert "8.00 MB read, 2.00 MB/s, 12 commands" in stream.getvalue()
