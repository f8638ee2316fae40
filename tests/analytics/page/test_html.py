"""The page: whole, self-contained, and deaf to what the texts of a capture want."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from analytics.page.charts import (
    MOST_CARDS,
    MOST_FLOWS,
    Axis,
    TimeAxis,
    lines_chart,
    points_of,
    short,
    topology_of,
)
from analytics.page.html import MOST_ROWS, Proofs, page_of, problem_card
from analytics.report import Chart, Report, Row
from analytics.reports.diagnosis_folding import PROBLEMS
from analytics.result import ReportResult
from rmqtool.report.text import shower_of
from tests.analytics import fakes

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PLAIN = ("broker-a", "broker-b", "broker-c")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium")


def page(texts: tuple[str, ...] = fakes.EVIL) -> str:
    about = [("Input", texts[0]), ("Made", "now")]
    return page_of("RocketMQ report", about, [fakes.result(texts)], shower_of)


class Seen(HTMLParser):
    """Every tag with its attributes, and the text outside of style and script."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.within = tag

    def handle_endtag(self, tag: str) -> None:
        self.within = ""

    def handle_data(self, data: str) -> None:
        if self.within not in ("script", "style"):
            self.texts.append(data)


def seen_in(text: str) -> Seen:
    seen = Seen()
    seen.feed(text)
    return seen


def test_texts_of_a_capture_become_neither_tags_nor_attributes() -> None:
    evil, plain = seen_in(page()), seen_in(page((*PLAIN, "d", "e", "f", "g")))
    assert [tag for tag, _ in evil.tags] == [tag for tag, _ in plain.tags]
    for (_, found), (_, expected) in zip(evil.tags, plain.tags, strict=True):
        assert set(found) - {"title"} == set(expected) - {"title"}  # long texts have one
    assert sum(tag == "script" for tag, _ in evil.tags) == 1
    assert not any(name.startswith("on") for _, attrs in evil.tags for name in attrs)


def test_texts_are_shown_printable() -> None:
    text = page()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    shown = "".join(seen_in(text).texts)
    assert "</script><script>document.title='owned'</script>" in shown
    assert "\\u202eevil" in shown


def test_the_page_asks_for_nothing() -> None:
    text = page()
    for _, attrs in seen_in(text).tags:
        assert not {"src", "srcset", "data", "action", "background", "style"} & set(attrs)
        assert (attrs.get("href") or "#").startswith("#")
    assert "url(" not in text
    assert "@import" not in text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy


def test_unknown_is_a_dash_and_never_zero() -> None:
    row = re.search(r"<tr><td>silent</td>(.*?)</tr>", page())
    assert row is not None
    assert re.findall(r"<td[^>]*>([^<]*)</td>", row[1]) == ["-"] * 7
    assert "Not in the input: Network." in page()


def test_tables_without_rows_are_one_line() -> None:
    whole = fakes.result(PLAIN)
    columns = (fakes.brokers().table.columns[0],)
    for name in ("first", "second"):
        whole.tables[name] = fakes.table_of(name, columns, [])
    text = page_of("t", [], [whole], shower_of)
    assert "No rows: Title of first, Title of second." in text
    assert 'id="first"' not in text


def test_a_table_shows_its_brief_columns_and_has_a_switch_for_all() -> None:
    brokers = fakes.brokers(PLAIN)
    whole = fakes.result(PLAIN)
    table = brokers.table._replace(brief=("exchanges", "broker"))
    whole.tables["brokers"] = type(brokers)(table, brokers.data)
    text = page_of("t", [], [whole], shower_of)
    (head,) = re.findall(r'id="brokers">.*?<thead>(.*?)</thead>', text)
    kinds = re.findall(r"<th(?: class=\"([^\"]*)\")?", head)
    assert kinds == ["n", "", "ev", "n x", "n x", "n x", "x", "x", "x"]
    assert "all 8 columns</label>" in text


def test_what_is_seldom_needed_is_behind_a_switch() -> None:
    whole = fakes.result(PLAIN)
    brokers = fakes.brokers(PLAIN)
    whole.tables["aside"] = type(brokers)(
        brokers.table._replace(name="aside", aside=True), brokers.data
    )
    text = page_of("t", [], [whole], shower_of)
    main, _, more = text.partition("<summary>More</summary>")
    assert 'id="brokers"' in main
    assert 'id="aside"' in more
    assert 'id="windows"' in more  # a terminal does not show it


def test_a_table_is_cut_and_says_so() -> None:
    columns = (fakes.brokers().table.columns[0],)
    many = fakes.table_of("many", columns, [{"broker": str(n)} for n in range(MOST_ROWS + 7)])
    whole = fakes.result(PLAIN)
    whole.tables["many"] = many
    text = page_of("t", [], [whole], shower_of)
    assert f"{MOST_ROWS + 7} rows; the page has the first {MOST_ROWS}" in text
    assert text.count("<tr>") < 2 * MOST_ROWS


def test_a_missing_window_interrupts_a_line() -> None:
    rows = fakes.windows(PLAIN).rows()
    all_of_them = [row for row in rows if row["broker"] == "broker-a"]
    points = points_of(all_of_them, "window_start", "p50_us", "window_us")
    assert [value for _, value in points].count(None) == 1
    assert len(points) == len(all_of_them) + 1
    drawn = lines_chart("", {"p50": points}, "latency", str, True)
    (path,) = re.findall(r'<path class="line s0" d="([^"]+)"', drawn)
    assert path.count("M") == 2


def test_lines_that_are_alike_have_one_entry_and_zeros_are_no_chart() -> None:
    line = [(1_000_000, 5.0), (2_000_000, 7.0)]
    drawn = lines_chart("", {"p95": line, "p99": line, "max": [(0, 9.0)]}, "latency", str, True)
    assert re.findall(r"</span>([^<]+)</li>", drawn) == ["p95, p99", "max"]
    assert "latency (log scale)" in drawn
    assert lines_chart("", {"lag": [(0, 0.0), (1, None)]}, "messages", str, False) == ""


def test_each_kind_of_chart_is_drawn_with_its_table() -> None:
    text = page(PLAIN)
    assert text.count("<figure>") == 5
    for kind in ('class="line s1"', 'class="heat h9"', 'class="band s0"', 'class="bar s0"'):
        assert kind in text
    for name in ("windows", "stretches", "brokers"):
        assert f'<div class="table" id="{name}">' in text


def test_a_topology_has_the_largest_flows() -> None:
    names = ("topic", "role", "party", "value")
    rows = [
        dict(zip(names, ("Orders", "produces", f"p{n}", n), strict=True))
        for n in range(1, MOST_FLOWS + 11)
    ]
    produced, consumed = topology_of(rows, {name: name for name in names})
    assert {flow.value for flow in produced} == set(range(11, MOST_FLOWS + 11))
    assert consumed == []


def test_axes_have_what_they_were_made_for() -> None:
    axis = Axis.of([0, 3, 7000], 10, 210, log=True)
    assert (axis.low, axis.high) == (1, 10_000)
    assert axis.y(1) == 210
    assert axis.y(10_000) == pytest.approx(10)
    assert axis.y(0) == 210
    linear = Axis.of([0, 34], 10, 210, log=False)
    assert (linear.low, linear.high) == (0, 40)
    assert linear.y(20) == pytest.approx(110)
    ticks = re.findall(r">([^<]+)</text>", "".join(linear.marks("messages", str)))
    assert ticks == ["messages", "0", "10", "20", "30", "40"]
    times = TimeAxis(0, 1_000_000)
    assert times.x(-5) == times.x(0)
    assert times.x(1_000_000) > times.x(500_000)
    one = TimeAxis(5, 5)
    assert one.marks(0, 10)
    assert short("abcdefghij", 5) == "ab…ij"


@pytest.mark.slow
@needs_browser
@pytest.mark.slow
def test_a_browser_runs_our_script_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page(), encoding="utf-8")
    dom = browse(tmp_path / "page.html", "--dump-dom").decode()
    assert "<title>RocketMQ report</title>" in dom
    assert dom.count("<svg") == 5
    assert "<img" not in dom


@pytest.mark.slow
@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_it_on_a_phone_and_a_screen(tmp_path: Path, width: int) -> None:
    (tmp_path / "page.html").write_text(page(PLAIN), encoding="utf-8")
    shot = tmp_path / "shot.png"
    browse(tmp_path / "page.html", f"--window-size={width},2000", f"--screenshot={shot}")
    data = shot.read_bytes()
    assert struct.unpack(">II", data[16:24]) == (width, 2000)
    assert len(data) > 40_000  # an empty page has some 5 kB


@pytest.mark.slow
@needs_browser
@pytest.mark.slow
def test_a_browser_prints_it(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page(PLAIN), encoding="utf-8")
    paper = tmp_path / "page.pdf"
    browse(tmp_path / "page.html", f"--print-to-pdf={paper}")
    assert paper.read_bytes().startswith(b"%PDF")
    assert len(paper.read_bytes()) > 20_000


def browse(path: Path, *options: str) -> bytes:
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={path.parent / 'profile'}",
            *options,
            path.as_uri(),
        ],
        capture_output=True,
        timeout=180,
        check=True,
    )
    return done.stdout


def test_a_text_that_nobody_can_read_is_cut_and_the_rest_counted() -> None:
    text = page(tuple(f"{name}{'y' * 100_000}" for name in PLAIN))
    assert re.search(r"<td[^>]*>broker-[abc]y{992}… 99,008 more</td>", text)
    assert "y" * 4001 not in text


HOSTILE = "<img src=x onerror=alert(1)>\"'"


def row(**changed: object) -> Row:
    return {
        "incident": 1,
        "severity": "error",
        "title": "broker-a is gone",
        "confidence": "certain",
        "reason": None,
        "rule": "broker-gone",
        "consequence_of": None,
        "count": 1,
        "impact": [],
        "state": None,
        "first_time": fakes.START,
        "last_time": fakes.START,
        "evidence": ["packet 7"],
        "filter": "frame.number in {7}",
        "details": [],
        "explanation": "why",
        "advice": "what to do",
        "references": [],
        **changed,
    }


def cards(rows: list[Row]) -> str:
    made = [{"place": place, **row} for place, row in enumerate(rows)]
    table = fakes.table_of("diagnosis_problems", PROBLEMS.columns, [dict(one) for one in made])
    chart = Chart("incidents", "Incidents", "diagnosis_problems", {})
    report = Report("r", "R", "?", (table.table,), lambda given, options: {}, (chart,))
    return page_of("t", [], [ReportResult(report, {"diagnosis_problems": table})], shower_of)


def test_problems_of_one_incident_stand_together() -> None:
    page = cards([row(), row(consequence_of="broker-gone", severity="info"), row(incident=2)])
    assert page.count('<li class="incident" id=') == 2
    assert page.count('class="problem error"') == 2
    assert page.count('class="problem info follows"') == 1


def test_nothing_wrong_is_no_card() -> None:
    page = cards([])
    assert "<figure" not in page
    assert "No problems found" in page


def test_texts_of_the_network_stay_texts() -> None:
    names = ("title", "reason", "rule", "severity", "filter", "explanation", "advice")
    changed = dict.fromkeys(names, HOSTILE)
    lists = {name: [HOSTILE] for name in ("evidence", "details", "references")}
    page = problem_card(row(**changed, **lists), str, Proofs())
    assert "<img" not in page
    assert page.count("&lt;img") == len(names) - 1 + len(lists)  # a severity is one of three


def test_an_ongoing_problem_has_no_end() -> None:
    times = {"first_time": "2026-11-20 10:00:00", "last_time": "2026-11-20 10:05:00", "count": 3}
    ongoing = problem_card(row(**times, state="ongoing"), str, Proofs())
    assert "since 2026-11-20 10:00:00, 3 occurrences, ongoing; " in ongoing
    ended = problem_card(row(**times, state="ended"), str, Proofs())
    assert "2026-11-20 10:00:00 to 10:05:00, 3 occurrences, ended; " in ended


def test_a_count_of_messages_is_no_count_of_occurrences() -> None:
    counted = {"title": "12 messages were lost", "count": 12}
    lost = problem_card(row(**counted, impact=["messages_lost=12"]), str, Proofs())
    assert "occurrences" not in lost
    other = problem_card(row(**counted, impact=["messages_lost=2"]), str, Proofs())
    assert ", 12 occurrences" in other


def test_many_problems_are_cut_and_counted() -> None:
    page = cards([row(incident=number) for number in range(MOST_CARDS + 3)])
    assert page.count("<article") == MOST_CARDS
    assert "3 more problems" in page
