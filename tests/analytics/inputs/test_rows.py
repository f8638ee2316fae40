"""Rows read back without Spark: as they were written, also by older releases; damage is said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.inputs.inputs import Input, InputError, InputKind, inputs_of
from analytics.inputs.rows import (
    BATCH,
    connections_in,
    conversation_rows,
    exchange_rows,
    exchanges_in,
    finding_rows,
    message_rows,
)
from analytics.inputs.source import read_here
from dissectors.decode.decoded_log import FINDING_COLUMNS
from dissectors.findings import FindingKind
from dissectors.rows.conversation_record import CONVERSATION_COLUMNS, ConversationRecord
from dissectors.rows.record import COLUMNS, ExchangeRecord
from tests.analytics.diagnosis.made_rows import SAMPLES, connection, exchange, sample
from tests.rmqtool.command import rmqtool

NAMES = ("fault-kill-5x.pcap", "push-orderly-4x.pcap", "admin-5x.pcap", "one-direction-5x.pcap")


def all_of(batches: Iterable[list[Any]]) -> list[Any]:
    return [row for batch in batches for row in batch]


def file(path: Path) -> Input:
    return Input(path.name, InputKind.log, (str(path),), (str(path),), (str(path),))


def place(row: Any) -> tuple[object, ...]:
    return Path(row.capture).name, row.conversation, repr(row)


def rounded(rows: Iterable[Any]) -> list[Any]:
    """Rows as logs have them: times in whole microseconds, the capture by its name."""
    for row in rows:
        row.capture = Path(row.capture).name
        for name in ("request_time", "response_time", "start_time", "end_time"):
            value = getattr(row, name, None)
            if value is not None:
                setattr(row, name, value // 1000 * 1000)
    return sorted(rows, key=place)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_decoded_logs_give_back_what_was_decoded(tmp_path: Path, form: str) -> None:
    captures = [SAMPLES / name for name in NAMES]
    done = rmqtool("decode", "pcap", *captures, "-T", form, "-o", f"{tmp_path / 'log'}/", "-q")
    assert done.status == 0, done.err
    (log,) = inputs_of([str(tmp_path / "log")])
    several = rmqtool("decode", "pcap", *captures, "-T", "jsonl", "-q").out.splitlines()
    exchanges, connections = all_of(exchange_rows(log)), all_of(conversation_rows(log))
    assert len(exchanges) == len(several) == sum(len(sample(name).exchanges) for name in NAMES)
    for row in (*exchanges, *connections):  # they are numbered on from one capture to the next
        row.conversation = 0
    expected_exchanges, expected_connections = [], []
    for name in NAMES:
        rows = copied(sample(name).exchanges), copied(sample(name).connections)
        expected_exchanges += rows[0]
        expected_connections += rows[1]
    assert rounded(exchanges) == rounded(expected_exchanges)
    assert rounded(connections) == rounded(expected_connections)
    findings = all_of(finding_rows(log))
    assert {one.kind for one in findings} == {
        one.kind for name in NAMES for one in sample(name).findings
    }


def copied(rows: Iterable[Any]) -> list[Any]:
    found = []
    for row in rows:
        values = {name: getattr(row, name) for name in row.__struct_fields__}
        found.append(type(row)(**{**values, "conversation": 0}))
    return found


# -- other releases, other types -------------------------------------------------------------------


Reader = Callable[[Input], Iterator[list[Any]]]


@pytest.fixture(params=["parquet", "jsonl"])
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[dict[str, Any]], Input]:
    """Writes one row with those columns."""

    def write(row: dict[str, Any]) -> Input:
        path = tmp_path / f"rows.{request.param}"
        if request.param == "parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), path)
        else:
            path.write_text(json.dumps(row) + "\n")
        return file(path)

    return write


def test_columns_that_an_older_log_does_not_have_are_absent(
    written: Callable[[dict[str, Any]], Input],
) -> None:
    given = written({"request_code": 310, "opaque": 7, "newer_column": "x", "capture": ""})
    ((row,),) = exchange_rows(given)
    assert isinstance(row, ExchangeRecord)
    assert (row.request_code, row.opaque, row.capture, row.findings) == (310, 7, "", [])
    assert (row.facts, row.brokers, row.latency_us, row.request_time) == ([], [], None, None)
    ((connected,),) = conversation_rows(given)
    assert isinstance(connected, ConversationRecord)
    assert (connected.server_address, connected.commands, connected.facts) == ("", 0, [])
    assert all_of(finding_rows(given)) == []


def test_values_of_another_type_are_absent(written: Callable[[dict[str, Any]], Input]) -> None:
    given = written(
        {
            "request_code": "310",
            "topic": 7,
            "facts": "client=x",
            "opaque": 1.5,
            "request_time": 2.5,
            "conversation": True,
            "status": ["answered"],
            "brokers": [1, 2],
        }
    )
    ((row,),) = exchange_rows(given)
    assert (row.request_code, row.topic, row.facts, row.opaque) == (None, None, [], 0)
    assert (row.request_time, row.conversation, row.status, row.brokers) == (None, 0, "", [])


def test_findings_by_their_kind(written: Callable[[dict[str, Any]], Input]) -> None:
    for kind, found in (
        ("GAP", [FindingKind.GAP]),
        ("UNHEARD_OF", []),
        (["GAP"], []),
        (7, []),
    ):
        given = written({"kind": kind, "detail": "d"})
        assert [one.kind for one in all_of(finding_rows(given))] == found


def test_numbers_that_no_column_holds_are_absent(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"opaque": 99999999999999999999999, "latency_us": -9223372036854775809}\n')
    ((row,),) = exchange_rows(file(path))
    assert (row.opaque, row.latency_us) == (0, None)


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2026-11-20T10:00:00.123456Z", 1_795_168_800_123_456_000),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_of_json_lines(tmp_path: Path, text: str, ns: int | None) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"request_time": text}) + "\n")
    ((row,),) = exchange_rows(file(path))
    assert row.request_time == ns


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Shanghai"])
def test_times_of_parquet(tmp_path: Path, unit: str, zone: str | None) -> None:
    path = tmp_path / "rows.parquet"
    ns = 1_795_168_800_123_456_789
    times = pyarrow.array([ns // 10 ** {"s": 9, "ms": 6, "us": 3, "ns": 0}[unit]])
    table = pyarrow.table({"request_time": times.cast(pyarrow.timestamp(unit, zone))})
    pyarrow.parquet.write_table(table, path)
    ((row,),) = exchange_rows(file(path))
    digits = {"s": 9, "ms": 6}.get(unit, 3)
    assert row.request_time == ns // 10**digits * 10**digits


def test_times_beyond_64_bits_of_ns_are_absent_in_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    far = [253_402_300_799_999_999, -62_135_596_800_000_000, 1_795_168_800_000_000]
    times = pyarrow.array(far, pyarrow.timestamp("us", "UTC"))
    pyarrow.parquet.write_table(pyarrow.table({"request_time": times}), path)
    rows = all_of(exchange_rows(file(path)))
    assert [row.request_time for row in rows] == [None, None, 1_795_168_800_000_000_000]


@pytest.mark.parametrize(
    "table",
    [
        pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, names=["topic", "topic"]),
        pyarrow.table({"latency_us": pyarrow.array([1 << 62], pyarrow.duration("s"))}),
    ],
    ids=["a column twice", "a duration beyond all types"],
)
def test_unusual_parquet_is_read_or_refused(tmp_path: Path, table: pyarrow.Table) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(table, path)
    with suppress(InputError):
        assert len(all_of(exchange_rows(file(path)))) == 1


def test_a_parquet_file_with_another_name_is_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    pyarrow.parquet.write_table(pyarrow.table({"opaque": [1, 2]}), path)
    assert [row.opaque for row in all_of(exchange_rows(file(path)))] == [1, 2]


def test_batches_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"opaque": 1}\n\n' * (BATCH + 1))
    assert [len(batch) for batch in exchange_rows(file(path))] == [BATCH, 1]


# -- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reader", [exchange_rows, conversation_rows, finding_rows])
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cut.jsonl", b'{"opaque": 1}\n{"opaq', "line 2 is not a JSON object"),
        ("list.jsonl", b"[1]\n", "line 1 is not a JSON object"),
        ("text.jsonl", b"hello\n", "line 1 is not a JSON object"),
        ("nested.jsonl", b'{"a":' * 100_000 + b"\n", "line 1 is not a JSON object"),
        ("empty.parquet", b"", "empty.parquet cannot be read"),
        ("text.parquet", b"hello", "text.parquet cannot be read"),
        ("cut.parquet", b"PAR1" + bytes(100), "cut.parquet cannot be read"),
    ],
)
def test_damaged_files_are_named(
    tmp_path: Path, reader: Reader, name: str, content: bytes, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        all_of(reader(file(path)))
    assert name in str(caught.value)


def test_a_parquet_file_that_is_damaged_anywhere_is_named_or_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = [{"opaque": number, "topic": f"T{number}", "facts": ["a=b"]} for number in range(50)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    whole = path.read_bytes()
    for at in range(4, len(whole), 41):
        path.write_bytes(whole[:at] + bytes((whole[at] ^ 0xFF,)) + whole[at + 1 :])
        with suppress(InputError):
            assert len(all_of(exchange_rows(file(path)))) <= 50


finite = st.floats(allow_nan=False, allow_infinity=False)
letters = st.text(st.characters(codec="utf-8"), max_size=5)
leaves = st.none() | st.booleans() | st.integers() | finite | letters
values = leaves | st.lists(leaves, max_size=3) | st.dictionaries(letters, leaves)
NAMES_OF_COLUMNS = sorted(
    {column.name for column in (*COLUMNS, *CONVERSATION_COLUMNS, *FINDING_COLUMNS)}
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.sampled_from(NAMES_OF_COLUMNS), values), max_size=4))
def test_any_json_rows(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(all_of(exchange_rows(file(path)))) == len(rows)
    assert len(all_of(conversation_rows(file(path)))) == len(rows)
    all_of(finding_rows(file(path)))


def test_batches_of_arrow() -> None:
    rows = [exchange(0, 310, 2, remark="busy", facts=["a=b"]), exchange(1, 11, None)]
    values = [{name: getattr(row, name) for name in row.__struct_fields__} for row in rows]
    times = {"request_time", "response_time", "start_time", "end_time"}

    def batch(columns: Any, values: list[dict[str, Any]]) -> pyarrow.RecordBatch:
        types = {"string": pyarrow.string(), "int": pyarrow.int64()}
        types |= {"list": pyarrow.list_(pyarrow.string())}
        types |= {"time": pyarrow.timestamp("us", "UTC")}
        schema = pyarrow.schema([(one.name, types[one.type]) for one in columns])
        made = [
            {k: v // 1000 if k in times and v is not None else v for k, v in one.items()}
            for one in values
        ]
        return pyarrow.RecordBatch.from_pylist(made, schema=schema)

    assert exchanges_in(batch(COLUMNS, values)) == rows
    connected = connection(3, 5, facts=["idle_ms=7"])
    fields = {name: getattr(connected, name) for name in connected.__struct_fields__}
    assert connections_in(batch(CONVERSATION_COLUMNS, [fields])) == [connected]


# -- names of before schema 2 ----------------------------------------------------------------------

OLD: dict[str, dict[str, str]] = {
    "exchanges": {
        "client_address": "requester",
        "server_address": "responder",
        "findings": "expert",
    },
    "conversations": {"client_address": "client", "server_address": "server"},
    "messages": {"server_address": "broker_address"},
}
"""table → its renamed columns with their old names"""


def with_old_names(log: Path, form: str) -> Path:
    """Turn a decoded log into what schema 1 wrote."""
    for path in log.rglob(f"*.{form}"):
        names = OLD.get(path.parent.name if path.name.startswith("part") else path.stem, {})
        if form == "jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            old = [{names.get(key, key): value for key, value in row.items()} for row in rows]
            path.write_text("".join(json.dumps(row) + "\n" for row in old))
        else:
            table = pyarrow.parquet.read_table(path, partitioning=None)
            table = table.rename_columns([names.get(key, key) for key in table.schema.names])
            table = table.replace_schema_metadata({"rmqtool.schema_version": "1"})
            pyarrow.parquet.write_table(table, path)
    (log / f"findings.{form}").rename(log / f"expert.{form}")
    manifest = json.loads((log / "manifest.json").read_text())
    manifest |= {"schema_version": 1, "expert": manifest.pop("findings")}
    (log / "manifest.json").write_text(json.dumps(manifest))
    return log


@pytest.fixture(params=["parquet", "jsonl"])
def two_logs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """Give a decoded log, and the same as schema 1 wrote it."""
    capture = SAMPLES / "fault-kill-5x.pcap"
    for name in ("new", "old"):
        done = rmqtool(
            "decode", "pcap", capture, "-T", request.param, "-o", f"{tmp_path / name}/", "-q"
        )
        assert done.status == 0, done.err
    return tmp_path / "new", with_old_names(tmp_path / "old", request.param)


def test_a_log_of_schema_1_has_the_same_rows(two_logs: tuple[Path, Path]) -> None:
    (new,), (old,) = (inputs_of([str(log)]) for log in two_logs)
    for read in (exchange_rows, conversation_rows, message_rows, finding_rows):
        rows = all_of(read(old))
        assert rows == all_of(read(new))
        assert rows
    assert old.manifest is not None
    assert new.manifest is not None
    assert old.manifest.findings == new.manifest.findings != {}


@pytest.mark.parametrize("small", [True, False])
def test_the_local_engine_reads_the_same_of_schema_1(
    two_logs: tuple[Path, Path], small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.inputs.local_reader.is_small", lambda _: small)
    found = []
    for log in two_logs:
        given = read_here(inputs_of([str(log)]), messages=True).given
        tables = [given.exchanges, given.conversations, given.messages, given.findings]
        rows = [given.kept.engine.rows(one).to_pylist() for one in tables if one is not None]
        found.append([[{**row, "source": ""} for row in table] for table in rows])
    assert found[0] == found[1]
    assert all(row["client_address"] for row in found[1][0])


def test_filters_and_columns_accept_the_old_names() -> None:
    capture = SAMPLES / "fault-kill-5x.pcap"
    what = ["decode", "pcap", capture, "-T", "csv", "-Y", "responder ~ 10911", "-c", "5"]
    by_old = rmqtool(*what, "--columns", "requester,expert", "--sort", "time", "-q").out
    what[what.index("responder ~ 10911")] = "server_address ~ 10911"
    by_new = rmqtool(*what, "--columns", "client_address,findings", "--sort", "time", "-q").out
    assert by_old.splitlines()[0] == "requester,expert"
    assert by_old.splitlines()[1:] == by_new.splitlines()[1:] != []
