"""JSON of reports, which is written in pieces."""

from __future__ import annotations

import json
import tracemalloc

import msgspec

from analytics.report import TableColumn
from analytics.result import ReportResult
from rmqtool.report.output import About, json_of
from tests.analytics.fakes import result, table_of

ABOUT = About(["a.pcap"], [], {}, ["a remark"])
COLUMNS = (TableColumn("number", "int", "", "which"), TableColumn("text", "string", "", "what"))


def _numbers(count: int) -> ReportResult:
    rows: list[dict[str, object]] = [{"number": at, "text": f"row {at}"} for at in range(count)]
    found = result()
    found.tables["numbers"] = table_of("numbers", COLUMNS, rows)
    found.tables["none"] = table_of("none", COLUMNS, [])
    return found


def test_pieces_are_the_json_of_the_whole() -> None:
    for count in (0, 1, 1024, 5000):
        data = b"".join(json_of([_numbers(count), result()], ABOUT))
        assert data == msgspec.json.format(data, indent=1) + b"\n"
        first, second = json.loads(data)["reports"]
        numbers = [row["number"] for row in first["tables"].pop("numbers")["rows"]]
        assert numbers == list(range(count))
        assert first["tables"].pop("none")["rows"] == []
        assert first == second


def test_memory_does_not_grow_with_the_rows() -> None:
    def peak(count: int) -> int:
        found = _numbers(count)
        tracemalloc.start()
        written = sum(map(len, json_of([found], ABOUT)))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert written > 30 * count
        return most

    assert peak(20_000) < 1.5 * peak(5_000)
