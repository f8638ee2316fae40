"""`rmqtool send`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import SendCommand


def _run(request: SendCommand) -> ExitStatus:
    """Send messages and show each attempt: broker, reason, latency, result.

    Examples:
      rmqtool send -n 127.0.0.1:9876 -t Orders --body hello --tags paid -k 17
      rmqtool send -t Orders --file body.bin -b broker-a --queue 2
      rmqtool send -t Orders --body hello --count 5000 --mode async
      rmqtool send -t Orders --body hello --count 60 --fault-strategy 5.1 -V
      rmqtool send -t Orders --body hello --transaction rollback
      rmqtool send -t Orders - < lines.txt
      rmqtool send events.jsonl --log attempts.parquet --capture sent.pcapng

    Asks before sending to non-loopback brokers. More: rmqtool help send.
    """
    from .run import run_send

    return run_send(request)


send = command_with(SendCommand, _run)
