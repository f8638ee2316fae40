"""Details of the selected row: its fields as a tree with its bytes, or lines about it."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from rich.style import Style as RichStyle
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import ContentSwitcher, Static, Tree
from textual.widgets.tree import TreeNode

from ...ui.console import cells, cut, padded
from ..model.detail import Detail, FrameBytes, Node, Span, hex_lines
from .lines_view import LinesView
from .paint import PLAIN, Piece, text_of

FIELDS, SIDES, BODIES, LIFE, TALK = "fields", "sides", "bodies", "life", "talk"
MODES: Final = {
    FIELDS: ("i", "fields"),
    SIDES: ("y", "side by side"),
    BODIES: ("b", "bodies"),
    LIFE: ("L", "trace"),
    TALK: ("o", "conversation"),
}
"""mode → its key and its name"""
_OPEN_DEPTH: Final = 4
_MARKED: Final = RichStyle(reverse=True)


class FieldTree(Tree[Node]):
    """The field tree; texts are never read as markup."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", show=False),
        Binding("k", "cursor_up", show=False),
        Binding("g", "scroll_home", show=False),
        Binding("G", "scroll_end", show=False),
        Binding("tab", "app.other_pane", show=False),
        Binding("h,left", "cursor_parent", show=False),
        Binding("l,right", "toggle_node", show=False),
    ]


class Details(Vertical):
    """The pane of details."""

    DEFAULT_CSS = """
    Details { height: 1fr; border-top: solid $panel; }
    Details:focus-within { border-top: solid $primary; }
    Details .title { height: 1; background: $panel; }
    Details FieldTree { height: 2fr; scrollbar-size: 1 1; }
    Details #bytes { height: 1fr; min-height: 3; border-top: dashed $panel; }
    Details ContentSwitcher { height: 1fr; }
    """

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.mode = FIELDS
        self._detail: Detail | None = None
        self._frame = -1

    def compose(self) -> ComposeResult:
        """Compose the widgets."""
        yield Static("", classes="title", markup=False)
        with ContentSwitcher(initial="tree"):
            with Vertical(id="tree"):
                tree = FieldTree(text_of(""), id="field-tree")
                tree.show_root = False
                tree.guide_depth = 2
                yield tree
                yield LinesView(id="bytes")
            yield LinesView(id="lines")

    @property
    def tree_of_fields(self) -> FieldTree:
        """The tree."""
        return self.query_one(FieldTree)

    def show_detail(self, detail: Detail) -> None:
        """Show fields and bytes of a row."""
        self._detail = detail
        self.query_one(ContentSwitcher).current = "tree"
        tree = self.tree_of_fields
        tree.clear()
        for node in detail.nodes:
            self._add(tree.root, node, 0)
        tree.root.expand()
        has_bytes = any(frame is not None for frame in detail.frames)
        self.query_one("#bytes").display = has_bytes and self.app.size.height >= 20
        tree.cursor_line = 0
        self._show_bytes(0 if detail.frames and detail.frames[0] else 1, None)
        self.show_title(detail.title + (f" ({detail.note})" if detail.note else ""))

    def show_title(self, title: str) -> None:
        """Show the title and the modes."""
        modes = " ".join(f"{key}:{name}" for key, name in MODES.values())
        room = max(10, self.size.width - cells(modes) - 2)
        text = f"{padded(cut(title, room), room)} {modes}" if self.size.width > 90 else title
        self.query_one(".title", Static).update(text_of(text))

    def show_lines(self, title: str, lines: list[str]) -> None:
        """Show lines about the row, which may contain our SGR sequences."""
        self.query_one(ContentSwitcher).current = "lines"
        self.query_one("#lines", LinesView).show_lines(lines)
        self.show_title(title)

    def show_sides(self, detail: Detail) -> None:
        """Show request and response side by side."""
        self._detail = detail
        half = max(20, (self.size.width - 3) // 2)
        left, right = (_wrapped(side, half) for side in detail.sides)
        lines: list[list[Piece]] = []
        for at in range(max(len(left), len(right))):
            first = left[at] if at < len(left) else ""
            second = right[at] if at < len(right) else ""
            lines.append([(padded(first, half), PLAIN), (" │ ", PLAIN), (second, PLAIN)])
        self.query_one(ContentSwitcher).current = "lines"
        self.query_one("#lines", LinesView).show_pieces(lines)
        self.show_title(detail.title)

    def focus_content(self) -> None:
        """Focus the shown widget."""
        shown = self.query_one(ContentSwitcher).current
        (self.tree_of_fields if shown == "tree" else self.query_one("#lines")).focus()

    def jump_side(self) -> None:
        """Toggle between request and response."""
        tree = self.tree_of_fields
        tops = list(tree.root.children)
        node = tree.cursor_node
        while node is not None and node.parent is not None and node.parent is not tree.root:
            node = node.parent
        if tops:
            place = tops.index(node) if node in tops else -1
            tree.move_cursor(tops[(place + 1) % len(tops)])
            tree.scroll_to_node(tops[(place + 1) % len(tops)], animate=False)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Node]) -> None:
        """Highlight the bytes of the field."""
        node = event.node.data
        if node is not None:
            self._show_bytes(node.frame, node.span)

    def _add(self, parent: TreeNode[Node], node: Node, depth: int) -> None:
        label = text_of(node.text)
        if not node.children:
            parent.add_leaf(label, node)
            return
        below = parent.add(label, node, expand=depth < _OPEN_DEPTH)
        for child in node.children:
            self._add(below, child, depth + 1)

    def _show_bytes(self, index: int, span: Span | None) -> None:
        detail = self._detail
        if detail is None or not 0 <= index < len(detail.frames):
            return
        frame = detail.frames[index]
        if frame is None:
            return
        view = self.query_one("#bytes", LinesView)
        view.show_pieces(_bytes_lines(frame, span), keep=True)
        line = 0 if span is None else span.start // 16
        view.scroll_to(y=max(0, line - 1), animate=False, immediate=True)


def _bytes_lines(frame: FrameBytes, span: Span | None) -> list[list[Piece]]:
    lines: list[list[Piece]] = []
    for text, marks in hex_lines(frame.data, span):
        pieces: list[Piece] = []
        at = 0
        for start, end in marks:
            pieces += [(text[at:start], PLAIN), (text[start:end], _MARKED)]
            at = end
        lines.append([*pieces, (text[at:], PLAIN)])
    if frame.missing > 0:
        lines.append([(f"… {frame.missing} bytes of the body are not shown", PLAIN)])
    return lines


def _wrapped(lines: list[str], width: int) -> list[str]:
    """Return lines with long ones wrapped."""
    result = []
    for line in lines:
        rest = line
        while cells(rest) > width:
            part = cut(rest, width).removesuffix("…") or rest[:1]
            result.append(part)
            rest = "    " + rest[len(part) :]
            if len(result) > 5000:
                return result
        result.append(rest)
    return result
