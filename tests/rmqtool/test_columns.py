"""Lines of columns: which columns stay, what is cut, when the first line comes."""

from __future__ import annotations

from rmqtool.columns import Column, LineTable
from rmqtool.console import UNLIMITED, Style, Terminal, cells

Row = tuple[str, str, str]

SCREEN = Terminal(True, 40, False)
FILE = Terminal(False, UNLIMITED, False)
COLUMNS: list[Column[Row]] = [
    Column("A", lambda row: row[0], 1, 4, 10),
    Column("B", lambda row: row[1], 8, 10, 30, right=True),
    Column("C", lambda row: row[2], 2, 6, 20, keep_end=True),
]


def lines(terminal: Terminal, *rows: Row) -> list[str]:
    table = LineTable(COLUMNS, terminal)
    return table.lines_of(rows) + table.rest()


def test_without_a_terminal_nothing_is_cut() -> None:
    long = "x" * 500
    assert lines(FILE, (long, "b", "c"))[1].split() == [long, "b", "c"]


def test_on_a_terminal_lines_fit_and_the_important_stays() -> None:
    wide = ("a" * 30, "b" * 30, "c" * 30)
    for width in (40, 24, 20, 15):
        found = lines(Terminal(True, width, False), wide)
        assert max(map(cells, found)) <= width
    head, row = lines(Terminal(True, 20, False), wide)
    assert head.split() == ["A", "C"]
    assert row.split()[1].startswith("…c")


def test_columns_are_aligned_also_with_wide_characters() -> None:
    found = lines(SCREEN, ("订单", "1", "x"), ("ab", "22", "x"))
    assert [cells(line.split("x")[0]) for line in found[1:]] == [cells(found[1]) - 1] * 2


def test_empty_columns_are_left_out() -> None:
    head, _ = lines(SCREEN, ("a", "", "c"))
    assert head.split() == ["A", "C"]


def test_rows_wait_for_the_sample() -> None:
    table = LineTable(COLUMNS, SCREEN, sample=3)
    assert table.lines_of([("a", "b", "c")]) == []
    assert table.lines_of([("a", "b", "c")]) == []
    assert len(table.lines_of([("a", "b", "c")])) == 4
    assert len(table.lines_of([("a", "b", "c")])) == 1
    assert table.rest() == []


def test_what_comes_slowly_is_shown_at_once_with_room_for_more() -> None:
    table = LineTable(COLUMNS, SCREEN, sample=1)
    assert len(table.lines_of([("a", "b", "c")])) == 2
    (line,) = table.lines_of([("a" * 10, "b", "c" * 20)])
    assert line.split() == ["a" * 10, "b", "c" * 20] or cells(line) == 40


def test_sections_are_lines_of_their_own() -> None:
    table = LineTable(COLUMNS, SCREEN, 1, lambda row: f"-- {row[2]} --")
    found = table.lines_of([("1", "", "x"), ("2", "", "x"), ("3", "", "y")])
    assert [line.split()[0] for line in found] == ["A", "--", "1", "2", "--", "3"]


def test_colours_do_not_count_as_width() -> None:
    column = Column[Row]("A", lambda row: row[0], 1, 4, 10, style=lambda _: Style.RED)
    table = LineTable([column, COLUMNS[1]], Terminal(True, 40, True), 1)
    _, line = table.lines_of([("a", "b", "c")])
    assert line.startswith("\x1b[31ma")
    assert "\x1b[0m" in line
