"""`rmqtool browse`: its help; its options are in `arguments`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .arguments import BrowseArguments


def _run(given: BrowseArguments) -> ExitStatus:
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

    return run_browse(given)


browse = command_with(BrowseArguments, _run)
