"""`rmqtool report`: its help; its options are in `options`, the work is in `run`."""

from __future__ import annotations

from ..ui.declared import command_with
from ..ui.status import ExitStatus
from .options import ReportRequest


def _run(request: ReportRequest) -> ExitStatus:
    """Build reports on latency, retries, isolation, consumers, and more.

    Examples:
      rmqtool report captures/
      rmqtool report latency incident.pcap --window 1s
      rmqtool report retries isolation log/ -o report.html
      rmqtool report log/ -o report/               page, JSON, CSV, and Parquet
      rmqtool report latency today/ --compare yesterday/
      rmqtool report latency log/ --table latency_brokers -T csv
      rmqtool report today/ --cells cells/monday/   write counts to merge
      rmqtool report cells/monday cells/tuesday     merge them
      rmqtool report --follow captures/ --cells state/ -o report.html
      rmqtool report log/ --engine spark
      rmqtool report log/ --master spark://host:7077

    More: rmqtool help reports.
    """
    if request.show_list:
        from .output import show_reports

        return show_reports(request)
    request.refuse_unused()
    if request.follow:
        from .follow import follow_report

        return follow_report(request)
    from .run import run_report

    return run_report(request)


report = command_with(ReportRequest, _run)
