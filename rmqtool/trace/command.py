"""`rmqtool trace`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import TraceRequest


def _run(request: TraceRequest) -> ExitStatus:
    """Trace one message: sent, stored, delivered, and acknowledged or lost.

    Searches all connections, brokers, and captures.
    What a capture cannot show is reported as unknown.

    Examples:
      rmqtool trace incident.pcap order-4711
      rmqtool trace producer.pcap broker.pcap 0A0000051F90...0001
      rmqtool trace captures/ order-4711 -o order.html
      rmqtool trace incident.pcap -Y 'event == returned'
      rmqtool trace incident.pcap order-4711 -T otlp -o trace.json
      rmqtool trace log/ order-4711 -T jsonl | jq .unseen

    More: rmqtool help trace.
    """
    from .run import run_trace

    return run_trace(request)


trace = command_with(TraceRequest, _run)
