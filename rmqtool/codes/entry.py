"""`rmqtool codes`: its help and options; the work is in `command`, which loads the tables."""

from __future__ import annotations

import typer

from ..ui import common_options
from ..ui.console import When
from ..ui.errors import guarded
from ..ui.status import ExitStatus
from . import options


def codes(
    query: options.Words = None,
    kind: options.KindName = None,
    format_: options.FormatName = options.CodesFormat.table,
    color: common_options.Color = When.auto,
) -> None:
    """Look up codes, headers, bodies, properties, and versions.

    Examples:
      rmqtool codes 310
      rmqtool codes 3442                  a code truncated to 16 bits
      rmqtool codes response 17
      rmqtool codes PopMessageRequestHeader
      rmqtool codes UNIQ_KEY
      rmqtool codes --kind response --format json

    Codes and fields of all headers: rmqtool codes.
    """

    def run() -> ExitStatus:
        from .command import codes

        return codes(query or [], kind, format_, color)

    raise typer.Exit(int(guarded(run)))
