"""The options of `decode hex` and `decode stream`, with their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..decode.options import BODY_LIMIT, View, format_of
from ..ui import common_options as options
from ..ui.common_options import RowFormat
from ..ui.console import When
from ..ui.declared import argument, declared, named_options, option
from ..ui.option_values import refuse_named, usage_error
from .pasted import BytesForm

if TYPE_CHECKING:
    from dissectors.remoting.bodies.custom import NamedDecoder


def _format(option: str, wanted: RowFormat | None) -> RowFormat:
    chosen = format_of(option, wanted, "-", View.commands)
    if chosen is not RowFormat.table and not chosen.is_json:
        raise usage_error(option, f"must be one of table, json, jsonl, not {chosen}")
    return chosen


@declared
class HexRequest:
    """A `decode hex` or `decode stream` command: input and output."""

    texts: list[str] = argument("[TEXT|FILE|-]...", "Bytes to decode (default: stdin).")
    """text in pieces, a file, or ``-``; none: standard input"""
    input: BytesForm = option("Encoding of the input.", "Input", BytesForm.auto)
    commands: bool = options.COMMANDS
    verbose: bool = options.VERBOSE
    view: View = View.tree
    """a tree of one frame, or a line per frame"""
    format: RowFormat = option(
        "Output format; json is one array (default: table).",
        "Output",
        metavar="table|json|jsonl",
        value=RowFormat.table,
        typed=RowFormat | None,
        read=_format,
    )
    body_limit: int | None = BODY_LIMIT
    max_output: int | None = options.MAX_OUTPUT
    plugins: tuple[NamedDecoder, ...] = options.PLUGINS
    colour: When = options.COLOR
    quiet: bool = options.QUIET
    named_options: Mapping[str, str] = named_options()

    def check(self) -> None:
        """Raise CommandError for options of bodies, if only lines without bodies are shown."""
        if self.view is View.commands and not self.format.is_json:
            of_bodies = ("body_limit", "max_output", "plugins")
            refuse_named(self.named_options, of_bodies, "lines show no bodies; use -T json")
