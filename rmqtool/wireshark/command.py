"""`rmqtool wireshark`: its options and its help; the work is in `install`."""

from __future__ import annotations

from ..ui.declared import command_with, declared, option
from ..ui.status import ExitStatus


@declared
class WiresharkRequest:
    """A `wireshark` command: the destination of the dissector."""

    output: str | None = option("Output file (default: stdout).", metavar="FILE|-")
    install: bool = option(
        "Install into the personal Lua plugins of Wireshark and tshark.", None, False
    )
    uninstall: bool = option("Remove the installed dissector.", None, False)
    force: bool = option("Overwrite existing output.", None, False)


def _run(request: WiresharkRequest) -> ExitStatus:
    """Write a RocketMQ dissector in Lua for Wireshark and tshark 4.x.

    Decodes codes, header fields, and messages; pairs requests with responses.

    Examples:
      rmqtool wireshark --install
      rmqtool wireshark -o rocketmq.lua
      tshark -X lua_script:rocketmq.lua -r incident.pcap -Y 'rocketmq.time > 0.1'
      rmqtool wireshark --uninstall

    Filter fields and recipes: rmqtool help wireshark.
    """

    from .install import run_wireshark

    return run_wireshark(request.output, request.install, request.uninstall, request.force)


wireshark = command_with(WiresharkRequest, _run)
