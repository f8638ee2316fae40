"""Tables of reports on terminals: what is left out first where they do not fit."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from analytics.reports.latency_tables import SLOWEST
from rmqtool.report.text import columns_of
from rmqtool.ui.console import Terminal
from rmqtool.ui.screen.shapes import table_lines

ROW = {
    "latency_us": 10_300,
    "time": datetime(2026, 11, 22, 8, 43, 45, 476_781, UTC),
    "operation": "CONSUMER_SEND_MSG_BACK",
    "broker": "broker-a",
    "topic": "DeadTopic",
    "network_us": 17,
    "retransmitted": False,
    "response": "SUCCESS",
    "client_address": "127.0.0.1:51314",
    "capture": "captures/2026-11-22/incident-of-the-morning.pcap",
    "request_packet": 63_412,
    "response_packet": 63_415,
}


@pytest.mark.parametrize(
    ("width", "shown"),
    [(80, []), (120, ["BROKER", "RESPONSE"]), (160, ["CLIENT ADDRESS", "NETWORK"])],
)
def test_the_slowest_exchanges_show_time_and_packet_before_the_path(
    width: int, shown: list[str]
) -> None:
    found = table_lines([ROW], columns_of(SLOWEST), Terminal(True, width, False))
    text = "\n".join(found.lines)
    for title in ("LATENCY", "TIME", "REQUEST PACKET", "OPERATION", *shown):
        assert title in text, text
    assert "2026-11-22 08:43:45.476Z" in text
    assert "63412" in text.replace(",", "")
    assert max(map(len, found.lines)) <= width
