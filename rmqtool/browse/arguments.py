"""The options of `browse`: each is declared once, with type, help and default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer

from dissectors.tcp.decompression import MOST_TIMES

from ..ui import common_options as options
from ..ui.letters import named

_LIVE = "A live interface"


@dataclass(slots=True)
class BrowseArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Captures, folders of them, decoded logs.",
            show_default=False,
        ),
    ] = field(default_factory=list)
    where: options.Where = ""
    tz: options.TimeZone = "UTC"
    decode_as: options.DecodeAs = None
    tls_keylog: options.TlsKeylog = None
    max_ratio: options.MaxRatio = MOST_TIMES
    plugin: options.Plugins = None
    follow: options.Follow = False
    interface: Annotated[
        str | None,
        typer.Option(
            *named("--interface"),
            metavar="NAME",
            help="Look at this network interface.",
            rich_help_panel=_LIVE,
        ),
    ] = None
    filter: Annotated[str, options.capture_filter(_LIVE)] = ""
    keep: Annotated[
        int,
        typer.Option(
            "--keep",
            min=1,
            metavar="N",
            help="Keep at most N exchanges of an interface; the oldest are dropped.",
            rich_help_panel=_LIVE,
        ),
    ] = 1_000_000
