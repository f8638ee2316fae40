"""Progress: only for who waits, and gone when it is over."""

from __future__ import annotations

import io
import re

import pytest

from rmqtool.ui.console import cells
from rmqtool.ui.screen.progress import LOG_MARK, Far, Progress, StageLine


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")


def shown(stream: io.StringIO, *seconds: float, wanted: bool = True, endless: bool = False) -> str:
    clock = Clock()
    progress = Progress(stream, wanted, "exchanges", clock, endless)
    for second in seconds:
        clock.now = 100 + second
        progress.update(int(second * 1_000_000), 10_000_000, int(second * 100))
    progress.clear()
    return stream.getvalue()


def test_a_bar_that_renews_itself() -> None:
    _, first, second, cleared = shown(Screen(), 0.5, 1.9, 2.1, 2.2, 2.5).split("\r")
    assert (
        first
        == f"{'━' * 5} {' ' * 18}  21% of 10.0 MB, 1.00 MB/s, 210 exchanges, 7.90 s left\x1b[K"
    )
    assert second.startswith("━━━━━━ ")
    assert cleared == "\x1b[K"


def test_a_log_gets_a_line_every_ten_seconds() -> None:
    lines = shown(io.StringIO(), *(number / 2 for number in range(46))).splitlines()
    assert lines == [
        f"{LOG_MARK}100% of 10.0 MB, 1.00 MB/s, 1,000 exchanges, 0 s left",
        f"{LOG_MARK}20.0 MB read, 1.00 MB/s, 2,000 exchanges",
    ]
    assert shown(io.StringIO(), 0.5, 9.9) == ""


def test_nothing_without_a_wish_or_an_end() -> None:
    for stream in (io.StringIO(), Screen()):
        assert shown(stream, 5, 30, wanted=False) == ""
    assert shown(io.StringIO(), 5, 30, endless=True) == ""
    assert shown(Screen(), 5, 30, endless=True)


def test_a_spinner_where_the_end_is_not_known() -> None:
    stream, clock = Screen(), Clock()
    progress = Progress(stream, True, "commands", clock)
    marks = set()
    for _ in range(9):
        clock.now += 4.1
        progress.update(8_000_000, None, 12)
        line = stream.getvalue().split("\r")[-1]
        marks.add(line[0])
        assert re.match(r"[⠁-⣿] 8\.00 MB read, .*/s, 12 commands", line)
    assert len(marks) > 3


@pytest.mark.parametrize("width", [40, 80, 160])
@pytest.mark.parametrize("share", [None, 0.0, 0.5, 1.0])
def test_a_line_fits(monkeypatch: pytest.MonkeyPatch, width: int, share: float | None) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for colour in ("", "1"):
        monkeypatch.setenv("NO_COLOR", colour)
        stages = StageLine(Screen(), True, Clock())
        stages.at("订单 [red]evil[/red] " * 20, lambda: Far("x" * 100, share))
        screen = Screen()
        stages._line._stream = screen
        stages._line.show(stages.far())
        line = re.sub(r"\x1b\[\d*[mK]", "", screen.getvalue()).strip("\r")
        assert cells(line) < width
        assert line.isprintable()
        assert "订单 [re" in line


def test_stages_say_what_is_done_and_how_far_it_is() -> None:
    clock = Clock()
    stages = StageLine(io.StringIO(), True, clock)
    stages.at("decoding", lambda: Far("3 of 4", 0.75))
    clock.now += 3
    assert stages.far() == Far("decoding, 3 of 4, 3.00 s", 0.75)
    stages.at("ending", lambda: Far(str(1 / 0)))
    assert stages.far() == Far("ending, 3.00 s")
