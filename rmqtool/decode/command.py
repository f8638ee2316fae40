"""`rmqtool decode pcap`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import DecodeRequest


def _run(request: DecodeRequest) -> ExitStatus:
    """Decode captures: one line per exchange by default.

    Examples:
      rmqtool decode pcap incident.pcap
      rmqtool decode pcap incident.pcap --summary
      rmqtool decode pcap *.pcap -Y 'response_code != 0 or status == unanswered'
      rmqtool decode pcap incident.pcap -V -Y 'latency > 1s and topic ~ Order'
      rmqtool decode pcap incident.pcap --commands -T jsonl | jq .
      rmqtool decode pcap captures/ -T parquet -o log/
      rmqtool decode pcap today/ -o log/ --partition date       add a day to a log
      rmqtool decode pcap incident.pcap --summary --check --fail-on 'failed>1%'
      rmqtool decode pcap incident.pcap --follow-conversation 3
      rmqtool decode pcap incident.pcap --messages -o bodies/ -Y 'name ~ SEND'
      tcpdump -i eth0 -U -w - port 10911 | rmqtool decode pcap -

    Columns: rmqtool help decoded-log. Filters: rmqtool help decoded-log filters.
    """
    from .run import run_decode

    request.refuse_unused()
    return run_decode(request)


decode_pcap = command_with(DecodeRequest, _run)
