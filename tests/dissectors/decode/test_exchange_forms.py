"""Lines and columns of exchanges are those that their rows as objects give, to the byte."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import pyarrow
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict

from dissectors.decode.exchange_forms import columns_of, lines_of
from dissectors.decode.exchange_row import ExchangeWriter
from dissectors.decode.pipeline import Decode, DecodeOptions
from dissectors.rows.parquet import exchange_table
from dissectors.rows.record import COLUMNS, ExchangeRecord
from dissectors.rows.tables import jsonl_of
from tests.dissectors.rows.named_sink import NamedSink
from tests.pure import implementation
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command
from tests.traffic.scripts import disturbed, scripts, talks
from tests.traffic.talk import Talk

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
ALL = sorted(str(path) for path in SAMPLES.iterdir() if path.suffix in (".pcap", ".pcapng"))
SENT, PULLED, OTHER = 310, 11, 34
numbers = st.sampled_from(
    ["0", "7", "-1", "12345678", "123456789", "99999999999999", "9223372036854775807",
     "-9223372036854775808", "9223372036854775808", "007", "+5", "-0", "-", "", "x", "1_0", "٣"]
) | st.integers(-(1 << 64), 1 << 64).map(str)  # fmt: skip
texts = st.text(max_size=70) | st.sampled_from(["T", "%RETRY%G", "a" * 64, "a" * 65, ""])
properties = st.lists(
    st.tuples(st.sampled_from(["UNIQ_KEY", "KEYS", "TAGS", "WAIT"]), texts), max_size=4
).map(lambda pairs: "\x02".join(f"{name}\x01{value}" for name, value in pairs))


def both(paths: list[str], options: DecodeOptions | None = None) -> tuple[bytes, bytes]:
    """Return the lines of captures, and those of their rows."""
    run = Decode(paths, options)
    found = lines_of(run.sources, run.counted_exchanges(), run.add_findings)
    lines = b"".join(one.data for one in found)
    rows = [row for batch in Decode(paths, options).records() for row in batch]
    assert_columns(paths, options, rows)
    return lines, jsonl_of(rows)


def assert_columns(
    paths: list[str], options: DecodeOptions | None, rows: list[ExchangeRecord]
) -> None:
    """Compare the columns of captures with those of their rows."""
    run = Decode(paths, options)
    found = list(columns_of(run.sources, run.counted_exchanges(), run.add_findings))
    assert all(one.data.num_rows == sum(one.counts) for one in found)
    table = pyarrow.Table.from_batches([one.data for one in found]).combine_chunks()
    table.validate(full=True)
    expected = exchange_table().batch_of(rows)
    assert table.schema == expected.schema
    for name, column in zip(table.schema.names, table.columns, strict=True):
        assert column.combine_chunks().equals(expected[name]), name


def both_of(data: bytes) -> tuple[bytes, bytes]:
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(data)
        file.flush()
        return both([file.name])


def test_all_samples() -> None:
    different = []
    for path in ALL:
        lines, rows = both([path])
        if lines != rows:
            different.append(path)
    assert not different


def test_several_captures_in_one_run() -> None:
    lines, rows = both(ALL[:40])
    assert lines == rows


@given(st.data())
def test_any_traffic(data: st.DataObject) -> None:
    lines, rows = both_of(pcap_of(data.draw(disturbed(data.draw(talks(data.draw(scripts())))))))
    assert lines == rows


@given(
    st.sampled_from([SENT, PULLED, OTHER, 10, 320, 14, 105, 9999]),
    st.dictionaries(
        st.sampled_from(["a", "b", "n", "topic", "consumerGroup", "bname", "brokerName"]), texts
    ),
    st.dictionaries(st.sampled_from(["e", "f", "j", "queueId", "queueOffset", "offset"]), numbers),
    properties,
    st.dictionaries(st.sampled_from(["msgId", "suggestWhichBrokerId"]), texts),
    st.dictionaries(st.sampled_from(["queueId", "queueOffset", "minOffset", "offset"]), numbers),
    st.sampled_from([401, 0, 513, -1, 70000]),
    st.sampled_from(["JAVA", "GO", "", "X"]),
    st.sampled_from([0, 1_700_000_000_000_000_000, (1 << 32) * 10**9 - 10**8]),
    st.sampled_from([None, "", "FOUND", "a\n"]),
    st.booleans(),
)
@example(
    SENT,
    {"b": "T"},
    {"e": "123456789"},
    "",
    {"msgId": "x"},
    {"queueId": "3"},
    401,
    "GO",
    0,
    "",
    False,
)
def test_any_values(
    code: int,
    asked: dict[str, str],
    numbers_asked: dict[str, str],
    written: str,
    answered: dict[str, str],
    numbers_answered: dict[str, str],
    version: int,
    language: str,
    first: int,
    remark: str | None,
    binary: bool,
) -> None:
    ext = asked | numbers_asked | ({"i": written} if written else {})
    if binary:
        version, language = version & 0x7FFF, "CPP" if language == "GO" else "JAVA"
    request = Command(code, 7, ext=ext, version=version, language=language, binary=binary)
    talk = Talk(at=first).open()
    talk.say(0, request.frame)
    talk.say(1, request.answer(0, ext=answered | numbers_answered, remark=remark).frame)
    talk.say(0, replace(request, code=15, opaque=8, flag=2).frame)
    talk.say(0, Command(code, 9, ext=ext, binary=binary).frame)
    lines, rows = both_of(pcap_of(talk.segments))
    assert lines == rows


@pytest.mark.parametrize("name", ["capture \udcff.pcap", 'quo"te.pcap'])
def test_any_name_of_a_capture(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes((SAMPLES / "acl-5x.pcap").read_bytes())
    lines, rows = both([str(path)])
    assert lines == rows


@pytest.mark.skipif(implementation() == "compiled", reason="compiled: no sinks of others")
@pytest.mark.parametrize("name", ["admin-5x", "cut-short-5x", "grpc-consume-53", "acl-5x"])
def test_each_value_is_that_of_its_column(name: str) -> None:
    path = str(SAMPLES / f"{name}.pcap")
    run = Decode([path])
    sink = NamedSink(COLUMNS)
    writer = ExchangeWriter(sink, run.sources, [])
    for batch in run.counted_exchanges():
        for exchange in batch:
            writer.write(exchange)
    rows = [row for batch in Decode([path]).records() for row in batch]
    assert sink.rows == [asdict(row) for row in rows]
