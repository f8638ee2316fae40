"""`rmqtool diagnose`: its help; its options are in `request`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.option_values import usage_error
from ..ui.status import ExitStatus
from .request import DiagnoseRequest


def _run(request: DiagnoseRequest) -> ExitStatus:
    """Find problems: what went wrong, why, and how to fix it.

    Problems are grouped into incidents, cause first.
    What a capture cannot show is reported as unknown.

    Examples:
      rmqtool diagnose incident.pcap
      rmqtool diagnose incident.pcap -V
      rmqtool diagnose captures/ -T jsonl | jq 'select(.severity == "error")'
      rmqtool diagnose log/ --fail-on error
      rmqtool diagnose --list
      rmqtool diagnose --explain send-queue-timeout
      sudo rmqtool diagnose -i eth0 -f 'tcp port 10911 or tcp port 9876'
      sudo rmqtool diagnose -i eth0 -T jsonl -w incident.pcapng

    More: rmqtool help diagnosis.
    """
    from .rules_text import explained, listed
    from .run import run_diagnose

    if request.show_list and request.explain is not None:
        raise usage_error("--list and --explain", "cannot be combined")
    if request.show_list:
        return listed(request)
    if request.explain is not None:
        return explained(request, request.explain)
    request.check()
    return run_diagnose(request)


diagnose = command_with(DiagnoseRequest, _run)
