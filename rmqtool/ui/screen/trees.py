"""Trees with guides, drawn by rich from indented lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..console import Style, Terminal

MOST_DRAWN: Final = 2_000
"""most lines of a drawn tree: rich takes some 100 µs per line"""
_OURS: Final = re.compile("((?:\x1b\\[\\d+m)+)([^\x1b]*)\x1b\\[0m")
"""a styled part of a line; the rest is printable and has no escapes"""


def tree_lines(lines: Sequence[str], step: int, terminal: Terminal) -> list[str]:
    """Return a tree with guides; children are indented by `step` cells.

    The first line is the root. Long lines are wrapped, never cut. A tree of very many lines is
    returned unchanged.
    """
    if not 0 < len(lines) <= MOST_DRAWN:
        return list(lines)
    from rich.tree import Tree

    from .drawing import folded_text, lines_of, style_of

    guide = style_of(Style.DIM)
    nodes = [Tree(folded_text(""), guide_style=guide)]
    for number, line in enumerate(lines):
        bare = line.lstrip(" ")
        depth = min((len(line) - len(bare)) // step, len(nodes)) if number else 0
        text, end = folded_text(""), 0
        for part in _OURS.finditer(bare):
            text.append(bare[end : part.start()]).append(part[2], style_of(part[1]))
            end = part.end()
        text.append(bare[end:])
        if not number:
            nodes[0].label = text
            continue
        del nodes[max(depth, 1) :]
        nodes.append(nodes[-1].add(text, guide_style=guide))
    return lines_of(terminal, nodes[0])
