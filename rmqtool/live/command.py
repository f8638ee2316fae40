"""`rmqtool decode live`: its help; its options are in `arguments`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .arguments import LiveArguments


def _run(given: LiveArguments) -> ExitStatus:
    """Decode live traffic on a network interface: one line per exchange by default.

    Ctrl-C ends the capture and shows pending requests. Short options follow tshark.

    Examples:
      rmqtool decode live -D
      sudo rmqtool decode live -i eth0 -f 'tcp port 10911 or tcp port 9876'
      sudo rmqtool decode live -i lo --where 'latency > 50ms or status == unanswered'
      sudo rmqtool decode live -i eth0 --duration 10m --summary -w incident.pcapng
      ssh host sudo tcpdump -U -w - port 10911 | rmqtool decode pcap -

    Permissions, buffers, remote hosts: rmqtool help live.
    """
    from .options import decode_request_of, live_request_of
    from .run import run_live, show_interfaces

    if given.list_interfaces:
        return show_interfaces(given.colour)
    live = live_request_of(given)
    return run_live(decode_request_of(given), live)


decode_live = command_with(LiveArguments, _run)
