"""`rmqtool browse`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import BrowseRequest


def _run(request: BrowseRequest) -> ExitStatus:
    """Explore captures, decoded logs, or live traffic in a terminal UI.

    Exchanges, messages, connections, and problems, down to each byte. Press ? for keys.

    Examples:
      rmqtool browse incident.pcap
      rmqtool browse incident.pcap -Y bad
      rmqtool browse captures/
      rmqtool browse log/                 a decoded log
      rmqtool browse -i eth0 -f 'tcp port 10911'

    More: rmqtool help browse.
    """
    from .run import run_browse

    return run_browse(request)


browse = command_with(BrowseRequest, _run)
