"""`rmqtool replay`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import ReplayRequest


def _run(request: ReplayRequest) -> ExitStatus:
    """Replay captured messages to a safe target and compare the results.

    Examples:
      rmqtool replay incident.pcap --dry-run
      rmqtool replay incident.pcap --target sandbox
      rmqtool replay incident.pcap -n 127.0.0.1:9876 --speed 2x
      rmqtool replay incident.pcap -n test:9876 -Y 'topic == Orders' --rate 500/s
      rmqtool replay incident.pcap -n test:9876 --rewrite rules.toml -y -o run-1
      rmqtool replay --resume run-1 -n test:9876 --yes
      sudo rmqtool replay -i eth0 -f 'tcp port 10911' -n test:9876 --yes
      rmqtool replay incident.pcap --target sandbox --fail-on 'p99>2x'

    More: rmqtool help replay.
    """
    from .run import run_replay

    return run_replay(request)


replay = command_with(ReplayRequest, _run)
