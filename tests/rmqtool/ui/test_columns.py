"""Lines of columns: which columns stay, what is cut, when the first line comes."""

from __future__ import annotations

import weakref

from dissectors.printable import MOST_SHOWN
from rmqtool.ui.columns import LineColumn, LineTable
from rmqtool.ui.console import UNLIMITED, Style, Terminal, cells

Row = tuple[str, str, str]

SCREEN = Terminal(True, 40, False)
FILE = Terminal(False, UNLIMITED, False)
COLUMNS: list[LineColumn[Row]] = [
    LineColumn("A", lambda row: row[0], 1, 4, 10),
    LineColumn("B", lambda row: row[1], 8, 10, 30, right=True),
    LineColumn("C", lambda row: row[2], 2, 6, 20, keep_end=True),
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


def test_an_absent_remark_has_no_line_below_its_row() -> None:
    remark: LineColumn[Row] = LineColumn("REMARK", lambda row: row[2], 8, 4, 200, wraps=True)
    table = LineTable([COLUMNS[0], remark], SCREEN)
    found = table.lines_of([("a", "", "-"), ("b", "", "no such topic " * 5)]) + table.rest()
    assert [line.split()[0] for line in found[:3]] == ["A", "a", "b"]
    assert found[3].startswith("  └ no such topic")


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
    column = LineColumn[Row]("A", lambda row: row[0], 1, 4, 10, style=lambda _: Style.RED)
    table = LineTable([column, COLUMNS[1]], Terminal(True, 40, True), 1)
    _, line = table.lines_of([("a", "b", "c")])
    assert line.startswith("\x1b[31ma")
    assert "\x1b[0m" in line


NOTED: list[LineColumn[Row]] = [
    LineColumn("A", lambda row: row[0], 1, 4, 10),
    LineColumn("NOTE", lambda row: row[1], 2, 10, 200, wraps=True),
    LineColumn("C", lambda row: row[2], 3, 6, 20),
]


def noted(terminal: Terminal, *rows: Row) -> list[str]:
    table = LineTable(NOTED, terminal)
    return table.lines_of(rows) + table.rest()


def test_a_text_that_wraps_is_in_the_line_where_all_of_it_fits() -> None:
    head, row = noted(SCREEN, ("a", "short", "c"))
    assert head.split() == ["A", "NOTE", "C"]
    assert row.split() == ["a", "short", "c"]


def test_a_text_that_wraps_is_below_its_row_where_it_does_not_fit() -> None:
    text = "the broker's disk is full and that is the whole cause"
    found = noted(SCREEN, ("a", "", "c"), ("b", text, "d"), ("e", "订单 " * 30, "f"))
    assert found[0].split() == ["A", "C"]
    assert [line.split()[0] for line in found if not line.startswith("  ")] == ["A", "a", "b", "e"]
    assert max(map(cells, found)) <= 40
    below = found[3:5]
    assert below[0].startswith("  └ the broker's disk")
    assert " ".join(" ".join(below).replace("└", "").split()) == text


def test_a_text_that_comes_later_is_below_its_row_too() -> None:
    table = LineTable(NOTED, SCREEN, sample=1)
    assert len(table.lines_of([("a", "", "c")])) == 2
    row, below = table.lines_of([("b", "why it failed", "d")])
    assert "why it failed" not in row
    assert below.strip() == "└ why it failed"


def test_a_text_without_end_takes_four_lines() -> None:
    found = noted(SCREEN, ("a", "x" * 5000, "c"))
    assert len(found) == 2 + 4
    assert found[-1].endswith("…")


def test_columns_without_room_are_named() -> None:
    table = LineTable(COLUMNS, Terminal(True, 15, False))
    table.lines_of([("a" * 30, "b" * 30, "c" * 30)])
    table.rest()
    assert table.hidden == ["B"]
    table = LineTable(COLUMNS, SCREEN)
    table.lines_of([("a", "", "c")])
    table.rest()
    assert table.hidden == []


def test_one_long_cell_does_not_widen_the_other_rows() -> None:
    found = lines(FILE, ("x" * 20_000, "b", "c"), ("a", "b", "c"))
    assert found[1].startswith("x" * MOST_SHOWN + "… 19,000 more ")
    assert len(found[2]) < 60


def test_rows_that_wait_are_not_kept_but_their_cells() -> None:
    class Large:
        pass

    kept: list[weakref.ref[Large]] = []
    table = LineTable([LineColumn[Large]("A", lambda _: "a", 1, 4, 10)], FILE)
    for _ in range(9):
        one = Large()
        kept.append(weakref.ref(one))
        assert table.lines_of([one]) == []
    del one
    assert [ref() for ref in kept] == [None] * 9
    assert table.rest() == ["A", *["a"] * 9]
