"""One line per exchange, one line per command: what an operator reads first."""

from __future__ import annotations

import re

from rmqtool.decode.exchange_lines import exchange_lines
from rmqtool.ui.console import UNLIMITED, Style, Terminal
from tests.dissectors.made_rows import START, record, unanswered

FILE = Terminal(False, UNLIMITED, False)
SCREEN = Terminal(True, 200, False)
COLOUR = Terminal(True, 200, True)


def test_a_file_has_the_time_in_full_and_no_sections() -> None:
    head, line = exchange_lines(FILE, 1, live=True).lines_of([record()])
    assert head.split()[:3] == ["PACKET", "TIME", "LATENCY"]
    assert re.split(r"  +", line.strip())[:6] == [
        "4",
        "2026-11-20T10:00:00.123456Z",
        "1.23 ms",
        "SEND_MESSAGE_V2",
        "SUCCESS",
        "OrderTopic",
    ]


def test_a_screen_has_the_date_where_it_changes() -> None:
    table = exchange_lines(SCREEN, 1, live=True)
    next_day = START + 86_400 * 10**9
    lines = table.lines_of([record(), record(), record(request_time=next_day)])
    assert [line for line in lines if line.startswith("--")] == [
        "-- 2026-11-20 UTC --",
        "-- 2026-11-21 UTC --",
    ]
    assert "10:00:00.123" in lines[2]


def test_several_captures_are_sections_or_a_column() -> None:
    rows = [record(), record(capture="b\x1b.pcap")]
    lines = exchange_lines(SCREEN, 2, live=True).lines_of(rows)
    assert r"-- 2026-11-20 UTC  b\x1b.pcap --" in lines
    head, first, second = exchange_lines(FILE, 2, live=True).lines_of(rows)
    assert (head.split()[0], first.split()[0]) == ("CAPTURE", "a.pcap")
    assert second.startswith(r"b\x1b.pcap")


def test_outcomes() -> None:
    orphan = record(status="orphan", request_name=None, request_packet=None, request_time=None)
    rows = [unanswered(), unanswered(status="oneway"), orphan]
    _, *lines = exchange_lines(FILE, 1, live=True).lines_of(rows)
    assert "unanswered" in lines[0]
    assert "oneway" in lines[1]
    assert " ?  " in lines[2]
    assert "orphan SUCCESS" in lines[2]


def test_the_remark_of_a_failure_is_shown_and_that_of_a_success_is_not() -> None:
    refused = record(response_code=2, response_name="SYSTEM_BUSY", remark="busy\nnow")
    found = record(remark="FOUND", findings=["GAP"], missing_bytes=7)
    _, bad, good = exchange_lines(FILE, 1, live=True).lines_of([refused, found])
    assert bad.endswith(r"busy\nnow")
    assert good.endswith("[GAP] [7 bytes missing]")


def test_colours_mark_what_is_wrong() -> None:
    refused = record(response_code=2, response_name="SYSTEM_BUSY")
    slow = record(latency_us=2_000_000)
    poll = record(latency_us=2_000_000, request_name="PULL_MESSAGE")
    *_, bad, late, waits = exchange_lines(COLOUR, 1, live=True).lines_of([refused, slow, poll])
    assert f"{Style.RED}SYSTEM_BUSY" in bad
    assert f"{Style.YELLOW}     2.00 s" in late
    assert Style.YELLOW not in waits
