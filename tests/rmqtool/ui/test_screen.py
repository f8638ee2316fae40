"""What rich draws: it fits, shows what was given and nothing else, and is not loaded early."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from rmqtool.ui.columns import LineColumn
from rmqtool.ui.console import (
    KNOWN_CELLS,
    ONE_CELL_EACH,
    UNLIMITED,
    Style,
    Terminal,
    cells,
    one_line,
    styled,
)
from rmqtool.ui.screen.drawing import document_lines, lines_of, style_of, text_of
from rmqtool.ui.screen.panels import Labelled, fact_lines, indented_facts, panel_lines
from rmqtool.ui.screen.shapes import BarRow, bar_lines, table_lines

from ..command import PROGRAM, ROOT

Row = tuple[str, str, str]
COLUMNS: list[LineColumn[Row]] = [
    LineColumn("A", lambda row: one_line(row[0]), 1, 4, 30, style=lambda _: Style.RED),
    LineColumn("B", lambda row: one_line(row[1]), 8, 10, 70, right=True),
    LineColumn("NOTE", lambda row: one_line(row[2]), 2, 6, 200, wraps=True),
]
MARKUP = [
    *("[red]evil[/red]", "[link=https://evil.example]here[/link]", "[/]", "[bold", "[@click=f]x"),
    *(":smile:", ":red_circle: text", "10.0.0.1 'text' 42 True None https://x.example /etc/passwd"),
    *("\\[red]", "{red}", "a\tb", "\x1b]8;;https://evil.example\x07here\x1b]8;;\x07", "\x9b31m"),
]
"""texts that rich, asked in the usual way, would change, colour or make a link of"""


def shown(terminal: Terminal, *rows: Row) -> list[str]:
    return table_lines(rows, COLUMNS, terminal).lines


@pytest.mark.parametrize("text", MARKUP)
@pytest.mark.parametrize("colour", [False, True])
def test_a_text_stays_what_it_is(text: str, colour: bool) -> None:
    lines = shown(Terminal(True, 200, colour), ("a", text, text))
    visible = re.sub(r"\x1b\[\d*m", "", "\n".join(lines))
    assert visible.count(one_line(text)) == 2
    assert visible.replace("\n", "").isprintable()


def test_only_our_own_colours_are_shown() -> None:
    lines = shown(Terminal(True, 200, True), *(("a", text, text) for text in MARKUP))
    assert set(re.findall(r"\x1b[^m]*m?", "\n".join(lines))) <= {
        *(Style.DIM, Style.BOLD, Style.RED, Style.RESET)
    }


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
def test_a_table_fits(width: int) -> None:
    long = "订单 " * 40
    rows: list[Row] = [("a" * 40, "1", long), ("❤️" * 20, "x" * 30, "short"), ("", "", "")]
    lines = shown(Terminal(True, width, False), *rows)
    assert max(map(cells, lines)) <= width
    assert lines[1].strip("─") == ""
    assert any(line.startswith("  └ 订单") for line in lines)


def test_a_table_of_one_row_is_as_wide_as_it_must_be() -> None:
    assert max(map(cells, shown(Terminal(True, 200, False), ("a", "b", "c")))) < 40


@pytest.mark.parametrize("text", MARKUP)
def test_a_text_in_a_frame_stays_what_it_is(text: str) -> None:
    text = one_line(text)
    facts = [Labelled(text, Style.BOLD), Labelled(text, "", text[:2], Style.RED, 10)]
    lines = panel_lines(text, Style.YELLOW, facts, Terminal(True, 160, True))
    codes = set(re.findall(r"\x1b[^m]*m?", "\n".join(lines)))
    assert codes <= {Style.BOLD, Style.RED, Style.YELLOW, Style.RESET}
    assert re.sub(r"\x1b\[\d*m", "", "\n".join(lines)).count(text) == 3


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_a_frame_fits_and_has_all_of_its_text(width: int) -> None:
    words = [f"订单{number}" for number in range(90)]
    facts = [Labelled(" ".join(words)), Labelled("x" * 500, "", "ERROR", Style.RED, 9)]
    lines = panel_lines("订单" * 90, Style.RED, facts, Terminal(True, width, False))
    assert set(map(cells, lines)) == {width}
    inner = "".join(line[1:-1] for line in lines)
    assert all(word in inner for word in words)
    assert inner.count("x") == 500
    plain = fact_lines(facts, Terminal(False, width, False))
    assert max(map(cells, plain)) <= width
    assert fact_lines(facts, Terminal(False, UNLIMITED, False))[1] == f"ERROR    {'x' * 500}"


def test_without_a_terminal_nothing_is_drawn() -> None:
    assert shown(Terminal(False, UNLIMITED, False), ("a", "b", "c")) == [
        "A              B  NOTE",
        "a              b  c",
    ]


@given(st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"))).map(one_line))
def test_a_cell_is_what_rich_takes_for_one(text: str) -> None:
    assert cells(text) == cell_len(text)


def test_characters_that_rich_is_not_asked_for_are_as_wide_as_it_says() -> None:
    letters = "".join(map(chr, range(0xD7A4)))
    known = KNOWN_CELLS[:-1], ONE_CELL_EACH[:-1]
    found = [char for one in known for char in re.findall(one, letters) if char.isprintable()]
    assert len(found) > 30_000
    assert [char for char in found if cells(char) != cell_len(char)] == []


@pytest.mark.parametrize(
    "style", [Style.DIM, Style.BOLD, Style.RED, Style.GREEN, Style.YELLOW, Style.CYAN]
)
def test_streams_and_rich_have_the_same_colours(style: str) -> None:
    assert lines_of(Terminal(True, 40, True), text_of("x", style)) == [styled("x", style)]
    for system in ("standard", "256", "truecolor"):
        console = Console(force_terminal=True, color_system=system, _environ={})  # type: ignore[arg-type]
        with console.capture() as capture:
            console.print(Text("x", style_of(style)), end="")
        assert capture.get() == styled("x", style)


@pytest.mark.slow
def test_rich_is_not_loaded_where_it_is_not_used() -> None:
    sample = str(ROOT / "samples" / "send-sync-5x.pcap")
    code = PROGRAM[2].replace(
        "main()",
        "import sys\ntry:\n    main()\nfinally:\n    print('rich' in sys.modules, file=sys.stderr)",
    )
    for options in ((), ("--summary",), ("-V",)):
        done = subprocess.run(
            [sys.executable, "-c", code, "decode", "pcap", sample, "-q", *options],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=True,
        )
        assert done.stderr.split()[-1] == "False"


FACTS = [
    Labelled("Verdict", Style.BOLD),
    Labelled("订单 stands still " * 9, "", "  group", Style.DIM, 12),
    Labelled("a hanging text goes on further to the right " * 4, indent=2, hang=2),
    *(Labelled(one_line(text), indent=4) for text in MARKUP),
]


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_texts_with_labels_fit_and_say_the_same_everywhere(width: int) -> None:
    drawn = fact_lines(FACTS, Terminal(True, width, True))
    plain = [re.sub("\x1b\\[[0-9;]*m", "", line) for line in drawn]
    assert max(map(cells, plain)) <= width
    assert all(line.isprintable() for line in plain)
    piped = fact_lines(FACTS, Terminal(False, UNLIMITED, False))
    assert len(piped) == len(FACTS)
    assert "".join("".join(plain).split()) == "".join("".join(piped).split())
    assert "".join("".join(fact_lines(FACTS, Terminal(False, width, False))).split()) == "".join(
        "".join(piped).split()
    )


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_text_hangs_below_its_first_line(is_terminal: bool) -> None:
    lines = fact_lines([Labelled("word " * 30, indent=2, hang=3)], Terminal(is_terminal, 60, False))
    assert len(lines) > 2
    assert [len(line) - len(line.lstrip()) for line in lines] == [2, *[5] * (len(lines) - 1)]


def test_lines_keep_their_indentation() -> None:
    lines = ["a", "  b", "    c"]
    assert fact_lines(indented_facts(lines), Terminal(True, 80, False)) == lines


BARS = [BarRow("1ms – 2ms", 1, ("1", "0.1%")), BarRow("2ms – 5ms", 900, ("900", "99.9%"))]


@pytest.mark.parametrize("width", [40, 80, 160])
def test_bars_fit_and_none_that_counts_is_empty(width: int) -> None:
    for is_terminal in (True, False):
        lines = bar_lines(BARS, Terminal(is_terminal, width, False))
        assert len(lines) == 2
        assert max(map(cells, lines)) <= width
        for line, row in zip(lines, BARS, strict=True):
            assert row.label in line
            assert line.endswith(row.notes[1])
            assert re.search("[\u2588-\u258f]", line)
    assert (
        bar_lines(BARS, Terminal(False, UNLIMITED, False))[1] == f"  2ms – 5ms {'█' * 40} 900 99.9%"
    )
    assert bar_lines([], Terminal(True, width, False)) == []


def test_documents_have_no_background_of_their_own() -> None:
    text = "Give `--pager`:\n\n```\nrmqtool help\n```\n\n```python\nimport rmqtool\n```\n"
    lines = "\n".join(document_lines(text, Terminal(True, 80, True)))
    codes = {code for one in re.findall("\x1b\\[([0-9;]*)m", lines) for code in one.split(";")}
    assert codes
    assert not codes & {str(code) for code in (*range(40, 49), *range(100, 108))}
