"""`rmqtool decode hex` and `decode stream`: what can be asked about bytes without a capture."""

from __future__ import annotations

from typing import Annotated

import typer

from ..decode.options import View, format_of, plugins_option, view_of
from ..ui import common_options as options
from ..ui.common_options import RowFormat
from ..ui.console import When
from ..ui.errors import guarded
from ..ui.letters import named
from ..ui.option_values import size_option, usage_error
from ..ui.status import ExitStatus
from .pasted import BytesForm

Texts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TEXT|FILE|-]...", help="Bytes to decode (default: stdin)."),
]
InputForm = Annotated[
    BytesForm,
    typer.Option("--input", help="Encoding of the input.", rich_help_panel="Input"),
]
FormatName = Annotated[
    RowFormat | None,
    typer.Option(
        *named("--format"),
        metavar="table|json|jsonl",
        help="Output format; json is one array (default: table).",
        rich_help_panel="Output",
    ),
]


def decode_hex(
    texts: Texts = None,
    input_: InputForm = BytesForm.auto,
    commands: options.Commands = False,
    format_: FormatName = None,
    body_limit: options.BodyLimit = None,
    max_output: options.MaxOutput = None,
    plugin: options.Plugins = None,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
) -> None:
    """Decode one frame from pasted hex, base64, or a hex dump.

    Accepts plain hex, base64, and dumps of xxd, hexdump -C, Wireshark, or Netty.

    Examples:
      rmqtool decode hex 0000006e 00000064 7b22636f6465...
      grep -o 'frame=[0-9a-f]*' broker.log | cut -c7- | head -1 | rmqtool decode hex -
      xxd frame.bin | rmqtool decode hex -T jsonl
    """
    view = View.commands if commands else View.tree
    raise typer.Exit(
        _run(view, texts, input_, format_, (body_limit, max_output), plugin, color, quiet)
    )


def decode_stream(
    texts: Texts = None,
    input_: InputForm = BytesForm.auto,
    verbose: options.Verbose = False,
    format_: FormatName = None,
    body_limit: options.BodyLimit = None,
    max_output: options.MaxOutput = None,
    plugin: options.Plugins = None,
    color: options.Color = When.auto,
    quiet: options.Quiet = False,
) -> None:
    """Decode a raw byte stream: one line per command, with its offset.

    The stream may start anywhere. Bytes outside frames are reported by offset.
    Reads Wireshark's "Follow TCP Stream" hex dumps, both directions.

    Examples:
      rmqtool decode stream stream.bin
      rmqtool decode stream -V follow.txt
      nc -l 10911 | rmqtool decode stream --input raw -
    """
    view = view_of(False, verbose, False) if verbose else View.commands
    raise typer.Exit(
        _run(view, texts, input_, format_, (body_limit, max_output), plugin, color, quiet)
    )


def _run(
    view: View,
    texts: list[str] | None,
    form: BytesForm,
    format_: RowFormat | None,
    sizes: tuple[str | None, str | None],
    plugins: list[str] | None,
    color: When,
    quiet: bool,
) -> int:
    def run() -> ExitStatus:
        from .run import HexRequest, run_hex

        chosen = format_of(format_, "-", View.commands)
        if chosen is not RowFormat.table and not chosen.is_json:
            raise usage_error("--format", f"must be one of table, json, jsonl, not {chosen}")
        limit = size_option("--body-limit", sizes[0])
        most = size_option("--max-output", sizes[1])
        loaded = plugins_option(plugins)
        return run_hex(
            HexRequest(texts or [], form, view, chosen, limit, color, quiet, most, loaded)
        )

    return int(guarded(run))
