"""`rmqtool wireshark`: what can be asked about the dissector for Wireshark."""

from __future__ import annotations

from typing import Annotated

import typer

from ..ui.errors import guarded
from ..ui.letters import named
from ..ui.status import ExitStatus

Target = Annotated[
    str | None,
    typer.Option(*named("--output"), metavar="FILE|-", help="Output file (default: stdout)."),
]
Install = Annotated[
    bool,
    typer.Option(
        "--install", help="Install into the personal Lua plugins of Wireshark and tshark."
    ),
]
Uninstall = Annotated[bool, typer.Option("--uninstall", help="Remove the installed dissector.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing output.")]


def wireshark(
    output: Target = None,
    install: Install = False,
    uninstall: Uninstall = False,
    force: Force = False,
) -> None:
    """Write a RocketMQ dissector for Wireshark and tshark 4.x, in Lua.

    Decodes codes, header fields, and messages; pairs requests with responses.

    Examples:
      rmqtool wireshark --install
      rmqtool wireshark -o rocketmq.lua
      tshark -X lua_script:rocketmq.lua -r incident.pcap -Y 'rocketmq.time > 0.1'
      rmqtool wireshark --uninstall

    Filter fields and recipes: rmqtool help wireshark.
    """

    def run() -> ExitStatus:
        from .install import run_wireshark

        return run_wireshark(output, install, uninstall, force)

    raise typer.Exit(int(guarded(run)))
