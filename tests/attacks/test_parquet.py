"""A decoded log from somebody else: few bytes of Parquet that would become gigabytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from analytics.inputs.inputs import inputs_of
from analytics.inputs.rows import exchange_rows
from dissectors.rows.parquet import ROW_GROUP_ROWS, ParquetRows, exchange_table
from rmqtool import read
from tests.expected import SAMPLES
from tests.rmqtool.command import rmqtool

from .limited import MIB, limited

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 5000
TEXT = "T" * 100_000
MEMORY = 3000 * MIB
"""bytes of address space; Arrow asks for far more than it uses"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A decoded log of a sample."""
    folder = tmp_path / "log"
    done = rmqtool(
        "decode", "pcap", SAMPLES / "push-retry-dlq-5x.pcap", "-T", "parquet", "-o", folder
    )
    assert done.status == 0, done.err
    return folder


def changed(log: Path, column: str, values: object, *, dictionary: bool = True) -> None:
    """Write tables whose rows have something else in a column, and a manifest that says so."""
    for table in ("exchanges", "messages"):
        (path,) = (log / table).rglob("*.parquet")
        rows = pq.read_table(path).slice(0, 1)
        rows = pa.concat_tables([rows] * ROWS).combine_chunks()
        rows = rows.set_column(rows.column_names.index(column), column, values)
        pq.write_table(rows, path, compression="zstd", use_dictionary=dictionary)
        assert path.stat().st_size < MIB
    manifest = json.loads((log / "manifest.json").read_text())
    for counted, parts in (("exchanges", "parts"), ("messages", "message_parts")):
        manifest[counted] = ROWS
        manifest[parts][0]["rows"] = ROWS
    (log / "manifest.json").write_text(json.dumps(manifest))


COMMANDS = (("trace", "{}", "K0"), ("diagnose", "{}"))


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
def test_a_text_that_all_rows_share_is_in_memory_once(
    log: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    changed(log, "topic", pa.array([TEXT] * ROWS))
    ended = limited(tmp_path, MEMORY, *(one.format(log) for one in command))
    assert ended.status in (0, 1), ended.err
    assert "should not have happened" not in ended.err
    assert ended.peak < 350 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
def test_a_column_that_becomes_too_much_is_refused(
    log: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    changed(log, "topic", pa.array([TEXT] * ROWS), dictionary=False)
    ended = limited(tmp_path, MEMORY, *(one.format(log) for one in command))
    assert ended.status == 1
    assert "column topic expands to 5" in ended.err
    assert "the limit for a file of this size is" in ended.err
    assert ended.peak < 200 * MIB


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one[0])
@pytest.mark.parametrize("kind", ["list", "struct", "binary"])
def test_values_of_another_type_are_absent(
    log: Path, tmp_path: Path, command: tuple[str, ...], kind: str
) -> None:
    values = {
        "list": pa.array([[1]] * ROWS),
        "struct": pa.array([{"a": {"b": "c"}}] * ROWS),
        "binary": pa.array([b"\xff"] * ROWS),
    }[kind]
    changed(log, "topic", values)
    done = rmqtool(*(one.format(log) for one in command))
    assert done.status in (0, 1), done.err
    assert "should not have happened" not in done.err


@pytest.mark.parametrize("clusters", [1, 40_000], ids=["shared", "all different"])
def test_our_own_log_of_many_routes_is_read(tmp_path: Path, clusters: int) -> None:
    """Lists of texts that are dictionaries, in several row groups."""
    row = next(iter(read(SAMPLES / "push-retry-dlq-5x.pcap").exchanges()))
    path = tmp_path / "routes.parquet"
    writer = ParquetRows(str(path), exchange_table())
    count = ROW_GROUP_ROWS + 10_000
    for first in range(0, count, 1000):
        numbers = [number % clusters for number in range(first, first + 1000)]
        writer.write([replace(row, brokers=[f"b{n}=10.0.0.1:{n}"] * 3) for n in numbers])
    writer.finish()
    assert pq.read_metadata(path).num_row_groups > 1
    (log,) = inputs_of([str(path)])
    found = [one for batch in exchange_rows(log) for one in batch]
    assert [one.brokers[2] for one in found] == [
        f"b{n % clusters}=10.0.0.1:{n % clusters}" for n in range(writer.rows)
    ]
