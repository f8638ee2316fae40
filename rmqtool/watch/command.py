"""`rmqtool watch`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import WatchRequest


def _run(request: WatchRequest) -> ExitStatus:
    """Monitor live traffic continuously: problems, metrics, and incident captures.

    Reports problems as they start, change, and end, also to webhooks and syslog.
    Ctrl-C or SIGTERM stops it.

    Examples:
      sudo rmqtool watch -i eth0 -f 'tcp port 10911 or tcp port 9876'
      sudo rmqtool watch -i eth0 --metrics 127.0.0.1:9464
      sudo rmqtool watch -i eth0 --webhook http://127.0.0.1:8080/alerts
      sudo rmqtool watch -i eth0 --ring-dir ring --incidents kept --before 60s
      ssh host sudo tcpdump -U -w - port 10911 | rmqtool watch - -T jsonl

    More: rmqtool help watch.
    """
    from .run import run_watch

    request.check()
    return run_watch(request)


watch = command_with(WatchRequest, _run)
