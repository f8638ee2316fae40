"""The options of `browse`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dissectors.times import Moment, Zone

from ..ui import common_options as options
from ..ui.declared import argument, declared, named_options, option

if TYPE_CHECKING:
    from dissectors.remoting.bodies.custom import NamedDecoder

_LIVE = "Live capture"


@declared
class BrowseRequest:
    """A `browse` command: its input and initial filter."""

    inputs: list[str] = argument("INPUT...", "Captures, folders of captures, or decoded logs.")
    where: str = options.WHERE
    since: Moment | None = options.SINCE
    until: Moment | None = options.UNTIL
    columns: tuple[str, ...] = options.COLUMNS
    sort: options.Order | None = option(
        "Sort by time, slowest first, or as completed (default: time for files).", "Filters"
    )
    zone: Zone = options.TIME_ZONE
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    max_ratio: int = options.MAX_RATIO
    plugins: tuple[NamedDecoder, ...] = options.PLUGINS
    follow: bool = options.FOLLOW
    interface: str | None = option("Capture from this network interface.", _LIVE, metavar="NAME")
    filter: str = options.capture_filter(_LIVE)
    keep: int = option(
        "Keep the newest N exchanges of a live capture.", _LIVE, 1_000_000, min=1, metavar="N"
    )
    named_options: Mapping[str, str] = named_options()
