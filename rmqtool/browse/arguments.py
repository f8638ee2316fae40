"""The options of `browse`: each is declared once, with type, help and default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import typer

from dissectors.tcp.decompression import MOST_TIMES

from ..ui import common_options as options
from ..ui.letters import named

_LIVE = "Live capture"


@dataclass(slots=True)
class BrowseArguments:
    """The command line as it is, not checked yet; the fields are its options."""

    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="Captures, folders of captures, or decoded logs.",
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
            help="Capture from this network interface.",
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
            help="Keep the newest N exchanges of a live capture.",
            rich_help_panel=_LIVE,
        ),
    ] = 1_000_000
