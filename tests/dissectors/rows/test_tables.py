"""Exchanges as JSON lines and CSV: every value comes back, whatever the network sent."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.rows.record import COLUMNS, ExchangeRecord
from dissectors.rows.tables import csv_header, csv_of, jsonl_of, safe_cell
from dissectors.times import text_of_time

from ..made_rows import START, record, unanswered

NAMES = [column.name for column in COLUMNS]
TIMES = [column.name for column in COLUMNS if column.type == "time"]
EVIL = "\x1b[31m=1+1\n[bold]\u202e\x9b"


def csv_rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((csv_header() + data).decode(), newline="")))


def test_columns_are_the_fields_of_the_record() -> None:
    assert tuple(NAMES) == ExchangeRecord.__struct_fields__


def test_jsonl_has_the_columns_in_order_and_exact_values() -> None:
    rows = [record(topic=EVIL, findings=["GAP", "BAD_BODY"]), unanswered()]
    lines = jsonl_of(rows).decode().split("\n")
    assert lines.pop() == ""
    for line, row in zip(lines, rows, strict=True):
        decoded = json.loads(line)
        assert list(decoded) == NAMES
        for column in COLUMNS:
            value = getattr(row, column.name)
            if column.type == "time" and value is not None:
                value = text_of_time(value)
            assert decoded[column.name] == value
    assert json.loads(lines[0])["request_time"] == "2026-11-20T10:00:00.123456Z"


def test_jsonl_does_not_change_the_records() -> None:
    row = record()
    jsonl_of([row])
    assert row == record()


def test_jsonl_survives_half_a_surrogate_pair_and_huge_numbers() -> None:
    decoded = json.loads(jsonl_of([record(topic="a\ud800b", queue_id=2**80)]))
    assert decoded["topic"] == "a?b"
    assert decoded["queue_id"] == 2**80


def test_csv_is_one_line_a_record_and_safe_to_open() -> None:
    data = csv_of([record(topic=EVIL, keys='=cmd|"x"', remark="@a,b"), unanswered()])
    assert data.count(b"\n") == 2
    first, second = csv_rows(data)
    assert list(first) == NAMES
    assert first["topic"] == r"\x1b[31m=1+1\n[bold]\u202e\x9b"
    assert first["keys"] == '\'=cmd|"x"'
    assert first["remark"] == "'@a,b"
    assert first["request_time"] == "2026-11-20T10:00:00.123456Z"
    assert first["queue_id"] == "3"
    assert second["latency_us"] == ""
    assert second["status"] == "unanswered"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_is_never_a_formula(start: str) -> None:
    assert safe_cell(start + "1").startswith("'")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("a;=1+1", "a;'=1+1"),
        ('a; ";@b;-1', "a; \";'@b;'-1"),
        ("=1;=2", "'=1;'=2"),
        ("127.0.0.1:9876;127.0.0.1:9877", "127.0.0.1:9876;127.0.0.1:9877"),
        ("a; b = c", "a; b = c"),
    ],
)
def test_nor_is_a_part_of_it_where_cells_are_split_at_semicolons(text: str, cell: str) -> None:
    assert safe_cell(text) == cell


def test_the_name_of_a_broker_is_no_formula() -> None:
    (row,) = csv_rows(csv_of([record(brokers=["=cmd|x=10.0.0.1:10911"])]))
    assert row["brokers"] == "'=cmd|x=10.0.0.1:10911"


def test_csv_writes_negative_numbers_as_numbers() -> None:
    assert csv_rows(csv_of([record(response_code=-1006)]))[0]["response_code"] == "-1006"


def test_csv_lists_are_separated_by_blanks() -> None:
    assert csv_rows(csv_of([record(findings=["GAP", "BAD_BODY"])]))[0]["findings"] == "GAP BAD_BODY"


_TEXT = st.none() | st.text(max_size=20)
_INT = st.none() | st.integers(-(2**70), 2**70)
_RECORDS = st.builds(
    lambda **changes: record(**changes),
    topic=_TEXT,
    keys=_TEXT,
    remark=st.none() | st.text(st.characters(), max_size=20),
    queue_id=_INT,
    queue_offset=_INT,
    request_time=st.none() | st.integers(0, 2**66),
    response_time=st.none() | st.integers(START, START + 10**9),
    findings=st.lists(st.sampled_from(["GAP", "BAD_BODY"])),
)


@given(st.lists(_RECORDS, max_size=5))
def test_any_record_can_be_written_as_text(rows: list[ExchangeRecord]) -> None:
    lines = jsonl_of(rows).decode().split("\n")[:-1]
    assert [json.loads(line)["keys"] for line in lines] == [row.keys for row in rows]
    cells = csv_rows(csv_of(rows))
    assert len(cells) == len(rows)
    for row, cell in zip(rows, cells, strict=True):
        assert (row.queue_id is None) == (cell["queue_id"] == "")
        assert cell["topic"].isprintable()


def test_records_can_be_read_back_from_json_lines_but_for_the_times() -> None:
    line = jsonl_of([record()])
    timeless = msgspec.json.decode(line) | dict.fromkeys(TIMES)
    back = msgspec.convert(timeless, ExchangeRecord)
    assert back == record(**dict.fromkeys(TIMES))


def test_structs_are_encoded_as_by_their_columns() -> None:
    from dissectors.rows.message_record import MESSAGE_COLUMNS, MessageRecord
    from dissectors.rows.tables import row_encoder, struct_encoder

    columns = [(column.name, column.type) for column in MESSAGE_COLUMNS]
    values: dict[str, dict[str, object]] = {
        "plain": {"string": "x", "int": 7, "bool": True, "time": 1_795_168_800_123_456_789},
        "absent": dict.fromkeys(("string", "int", "bool", "time")),
        "odd": {"string": "half \ud800", "int": -1, "bool": False, "time": -1},
    }
    rows = [
        MessageRecord(**{name: of[kind] for name, kind in columns})  # type: ignore[arg-type]
        for of in values.values()
    ]
    encode, by_columns = struct_encoder(MessageRecord, columns), row_encoder(columns)
    for some in ([], rows[:2], rows):
        assert encode(some) == by_columns(some)
    assert rows[0].time == values["plain"]["time"]  # rows are not changed
    with pytest.raises(ValueError, match="not the fields"):
        struct_encoder(MessageRecord, columns[1:])
