"""Captures on Spark's shuffle give what one task gives, and are read once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.analytics.pcaps import rotated
from tests.traffic.captures import Interface as Link
from tests.traffic.captures import PcapngWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = Path(__file__).resolve().parents[3] / "samples"


def _in_three_files(folder: Path) -> list[Path]:
    return rotated(SAMPLES / "fault-kill-5x.pcap", folder, 3)


def _with_late_secrets(folder: Path) -> list[Path]:
    """Return a capture whose secrets come behind a packet: nobody knew that there are some."""
    first = PcapngWriter()
    first.interface(Link())
    first.enhanced(1, bytes(60))
    path = folder / "late.pcapng"
    path.write_bytes(first.bytes() + (SAMPLES / "grpc-tls-keys-5x.pcapng").read_bytes())
    return [path]


@pytest.mark.parametrize(
    ("captures", "range_bytes"), [(_in_three_files, 60_000), (_with_late_secrets, 20_000)]
)
def test_the_same_rows_and_every_byte_once(
    captures: Callable[[Path], list[Path]], range_bytes: int, spark: SparkSession, tmp_path: Path
) -> None:
    from analytics.inputs.capture_frame import one_task_rows, table_in
    from analytics.inputs.row_batches import ALL, FINDINGS, TABLES
    from analytics.inputs.shuffle import ShuffleTask, reads_of, shuffled_rows

    files = [str(path) for path in captures(tmp_path)]
    task = ShuffleTask(tuple(files), "input", messages=True, range_bytes=range_bytes)
    assert task.shares > 1
    rows = shuffled_rows(spark, task)
    alone = one_task_rows(spark, task, ALL).persist()
    for table in TABLES[:-1]:
        found, expected = table_in(rows, table), table_in(alone, table)
        assert found.dtypes == expected.dtypes
        rows_found = sorted(map(str, found.toArrow().to_pylist()))
        assert rows_found == sorted(map(str, expected.toArrow().to_pylist()))
        assert rows_found or table == FINDINGS
    read = reads_of(rows)
    assert [one.capture for one in read] == list(range(len(files)))
    assert [one.bytes for one in read] == [Path(file).stat().st_size for file in files]
    rows.unpersist()
    alone.unpersist()
