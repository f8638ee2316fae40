"""`rmqtool broker`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import BrokerRequest


def _run(request: BrokerRequest) -> ExitStatus:
    """Run a local sandbox cluster with optional fault injection.

    Examples:
      rmqtool broker
      rmqtool broker --brokers 2 -t Orders:4 --store sandbox.db
      rmqtool broker --fault 'busy p=0.3 broker=broker-a from=10s until=20s'
      rmqtool broker --brokers 2 --fault 'latency=300ms broker=broker-b'
      rmqtool broker --faults faults.toml --seed 7 --format jsonl
      rmqtool broker --port 0 --namesrv-port 0 --duration 60s

    Then, in another terminal:
      rmqtool send -n 127.0.0.1:9876 -t Orders --body hello
    """
    from .run import run_broker

    return run_broker(request)


broker = command_with(BrokerRequest, _run)
