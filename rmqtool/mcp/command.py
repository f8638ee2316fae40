"""`rmqtool mcp`: its options and its help; the server is in `server`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from dissectors.endpoint import split_endpoint

from ..errors import Error
from ..ui import common_options as options
from ..ui.declared import argument, command_with, declared, text_option
from ..ui.errors import print_note
from ..ui.extras import require
from ..ui.option_values import usage_error
from ..ui.status import CommandError, ExitStatus

if TYPE_CHECKING:
    from dissectors.broker_store.evidence import StoreEvidence

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def _address(name: str, text: str | None) -> tuple[str, int] | None:
    """Return host and port; raise CommandError for an address that is not loopback."""
    if text is None:
        return None
    # a bare port is on loopback
    place = split_endpoint(text if ":" in text else f"{LOOPBACK[0]}:{text}")
    if place is None or (":" in place[0] and not text.startswith("[")):
        raise usage_error(name, f"{text!r} is not an address; use 127.0.0.1:8000")
    if place[0] not in LOOPBACK:
        raise usage_error(
            name, f"{place[0]} is not a loopback address; the server has no authentication"
        )
    return place


@declared
class McpRequest:
    """The options of `mcp`."""

    inputs: list[str] = argument(
        "INPUT...", "Captures, folders of captures, or decoded logs.", required=True
    )
    http: tuple[str, int] | None = text_option(
        "Serve HTTP on this loopback address instead of standard input and output.",
        "Server",
        metavar="[HOST:]PORT",
        read=_address,
    )
    store: StoreEvidence | None = options.STORE
    decode_as: frozenset[int] = options.DECODE_AS
    tls_keylog: str = options.TLS_KEYLOG
    max_ratio: int = options.MAX_RATIO


def _run(request: McpRequest) -> ExitStatus:
    """Serve captures and decoded logs to AI agents (Model Context Protocol).

    The server is read-only: it reads only the named inputs and stores.

    Examples:
      rmqtool mcp incident.pcapng
      rmqtool mcp monday.log/ tuesday.log/ --http 8000
      claude mcp add rmqtool -- rmqtool mcp /captures/incident.pcapng

    More: rmqtool help mcp.
    """
    require("an MCP server", "mcp", "mcp")
    from .server import serve
    from .sources import sources_of

    try:
        sources = sources_of(
            request.inputs,
            request.decode_as,
            request.tls_keylog,
            request.max_ratio,
            [] if request.store is None else [store.folder for store in request.store.stores],
        )
    except Error as error:
        raise CommandError(str(error).partition("\n")[0], error.hint) from None
    if request.http is None and sys.stdin.isatty():
        print_note("waiting for an MCP client on standard input; clients start this command")
    serve(sources, request.http)
    return ExitStatus.OK


mcp = command_with(McpRequest, _run)
