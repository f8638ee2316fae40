"""`rmqtool wireshark`: what can be asked about the dissector for Wireshark."""

from __future__ import annotations

from typing import Annotated

import typer

from ..ui.errors import guarded
from ..ui.letters import named
from ..ui.status import ExitStatus

Target = Annotated[
    str | None,
    typer.Option(
        *named("--output"), metavar="FILE|-", help="Where to write; default: standard output."
    ),
]
Install = Annotated[
    bool,
    typer.Option("--install", help="Put it into the personal Lua plugins of Wireshark and tshark."),
]
Uninstall = Annotated[bool, typer.Option("--uninstall", help="Remove it from there.")]


def wireshark(
    output: Target = None, install: Install = False, uninstall: Uninstall = False
) -> None:
    """Write a RocketMQ dissector for Wireshark and tshark 4.x, in Lua.

    It knows what rmqtool knows: codes, every header field, messages, which response answers which
    request. It needs nothing but Wireshark.

    Examples:

    \b
      rmqtool wireshark --install
      rmqtool wireshark -o rocketmq.lua
      tshark -X lua_script:rocketmq.lua -r incident.pcap -Y 'rocketmq.time > 0.1'
      rmqtool wireshark --uninstall

    Fields to filter by, and recipes: rmqtool help wireshark.
    """

    def run() -> ExitStatus:
        from .install import run_wireshark

        return run_wireshark(output, install, uninstall)

    raise typer.Exit(int(guarded(run)))
