"""Trees with guides: every line of them, as it is, and no wider than the terminal."""

from __future__ import annotations

import re

import pytest

from dissectors.processes.choice import decode_of
from rmqtool.decode.tree import STEP, Tree
from rmqtool.ui.console import Style, Terminal, cells, styled
from rmqtool.ui.screen.shapes import MOST_DRAWN, tree_lines
from tests.rmqtool.command import ROOT
from tests.rmqtool.ui.test_screen import MARKUP, one_line

LINES = ["root", "  a", "    b: 1", "    c: 2", "  d", f"    {styled('e', Style.CYAN)}: 3"]
SCREEN = Terminal(True, 80, False)


def test_what_belongs_together_is_joined() -> None:
    assert tree_lines(LINES[:5], 2, SCREEN) == [
        "root",
        "├── a",
        "│   ├── b: 1",
        "│   └── c: 2",
        "└── d",
    ]
    coloured = tree_lines(LINES, 2, SCREEN._replace(colour=True))
    assert coloured[-1].endswith(f"{Style.CYAN}e{Style.RESET}: 3")


@pytest.mark.parametrize("text", MARKUP)
def test_a_value_stays_what_it_is(text: str) -> None:
    lines = ["root", f"  name: {one_line(text)}", f"      {one_line(text)}"]
    drawn = tree_lines(lines, 2, Terminal(True, 160, True))
    plain = [re.sub(r"\x1b\[\d*m", "", line) for line in drawn]
    assert plain == ["root", f"└── name: {one_line(text)}", f"    └── {one_line(text)}"]
    assert set(re.findall(r"\x1b[^m]*m?", "".join(drawn))) <= {Style.DIM, Style.RESET}


@pytest.mark.parametrize("width", [40, 80, 160])
def test_trees_of_a_capture_fit_and_have_all_fields(width: int) -> None:
    decode = decode_of([str(ROOT / "samples" / "busy-overload-5x.pcap")], None, 1)
    tree = Tree(["a.pcap"], False, None)
    for batch in decode.exchanges():
        for exchange in batch[:4]:
            lines = tree.exchange(exchange)[:-1]
            drawn = tree_lines(lines, len(STEP), Terminal(True, width, False))
            assert max(map(cells, drawn)) <= width
            shown = re.sub(r"[│├└─ \n]", "", "".join(drawn))
            for line in lines:
                assert line.replace(" ", "") in shown


def test_a_tree_of_very_many_lines_is_not_drawn() -> None:
    lines = ["root", *["  x"] * MOST_DRAWN]
    assert tree_lines(lines, 2, SCREEN) == lines
    assert tree_lines([], 2, SCREEN) == []
