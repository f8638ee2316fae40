"""Tiles and the overview of the page."""

from __future__ import annotations

import re

from analytics.page.charts import (
    MOST_CARDS,
    MOST_INCIDENTS,
    ShadedIncident,
    micros_of,
    overview_chart,
)
from analytics.page.html import incidents_in, page_of, summary_of
from analytics.report import ReportOptions
from analytics.reports import report_of
from analytics.result import computed
from rmqtool.report.text import shower_of
from tests.analytics import fakes
from tests.analytics.page.test_html import seen_in
from tests.analytics.reported import input_of

START = micros_of(fakes.START) or 0


def test_a_hang_is_seen_at_once() -> None:
    file = "samples/fault-freeze-5x.pcap"
    reports = [report_of(name) for name in ("diagnosis", "latency", "quality")]
    results = computed(reports, input_of((file,)), ReportOptions())
    page = page_of("t", [], results, shower_of, [file])
    tiles = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd>", page.split("<figure", 1)[0]))
    assert tiles["Verdict"] == "2 errors, 1 warning, 1 info"
    assert (tiles["Exchanges"], tiles["Failed responses"], tiles["Unanswered"]) == ("97", "0", "1")
    timeline = page.split('id="timeline"', 1)[1].split("</figure>", 1)[0]
    assert timeline.count('class="shade error"') == 1
    assert "1 unanswered at 08:32:43.200" in timeline
    assert "broker-a (127.77.0.61:10911) hung" in timeline
    assert 'href="#incident-1"' in timeline
    assert 'id="incident-1"' in page


def test_one_error_of_many_is_visible() -> None:
    row = {
        "window_start": fakes.START,
        "window_us": 1_000_000,
        "exchanges": 100_000,
        "failed": 1,
        "unanswered": 0,
        "p50_us": 1000,
        "p99_us": 1000,
    }
    drawn = overview_chart([row], [], str, str)
    (height,) = re.findall(r'class="bar s5"[^>]* height="([\d.]+)"', drawn)
    assert float(height) >= 3
    assert re.findall(r"</span>([^<]+)</li>", drawn) == ["failed", "answered", "p50, p99"]
    many = [
        ShadedIncident(n, "error", f"no. {n}", START, START + 9) for n in range(MOST_INCIDENTS + 2)
    ]
    assert overview_chart([row], many, str, str).count("<a ") == MOST_INCIDENTS


def test_the_most_severe_incident_is_first_and_texts_stay_texts() -> None:
    rows = [
        {
            "incident": number,
            "severity": severity,
            "title": fakes.EVIL[1],
            "first_time": fakes.START,
            "last_time": fakes.START,
        }
        for number, severity in enumerate(("info", "warning", fakes.EVIL[0], "error"), 1)
    ]
    found = incidents_in(rows)
    assert [one.number for one in found] == [4, 2, 1, 3]
    cardless = incidents_in([*rows[:1] * MOST_CARDS, rows[3]])
    assert [one.number for one in cardless] == [None, 1]
    window = dict.fromkeys(("exchanges", "failed", "unanswered", "p50_us", "p99_us"), 1)
    windows = [{"window_start": fakes.START, "window_us": 1000, **window}]
    drawn = overview_chart(windows, cardless, str, str)
    assert re.findall(r'href="([^"]*)"', drawn) == ["#incident-1"]
    tags = {tag for tag, _ in seen_in(overview_chart(windows, found, str, str)).tags}
    assert not {"img", "script"} & tags


def test_without_its_tables_there_is_nothing() -> None:
    assert summary_of([fakes.result()], shower_of) == ""
