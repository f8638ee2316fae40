"""`rmqtool decode live`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import NOT_LIVE, LiveDecodeRequest


def _run(request: LiveDecodeRequest) -> ExitStatus:
    """Decode live traffic on a network interface, one line per exchange.

    Ctrl-C ends the capture and shows pending requests. Short options follow tshark.

    Examples:
      rmqtool decode live -D
      sudo rmqtool decode live -i eth0 -f 'tcp port 10911 or tcp port 9876'
      sudo rmqtool decode live -i lo -Y 'latency > 50ms or status == unanswered'
      sudo rmqtool decode live -i eth0 --duration 10m --summary -w incident.pcapng
      ssh host sudo tcpdump -U -w - port 10911 | rmqtool decode pcap -

    Permissions, buffers, remote hosts: rmqtool help live.
    """
    from .run import run_live, show_interfaces

    if request.list_interfaces:
        return show_interfaces(request.colour)
    request.refuse_unused()
    return run_live(request)


decode_live = command_with(LiveDecodeRequest, _run, NOT_LIVE)
