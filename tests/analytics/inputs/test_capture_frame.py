"""Captures that several tasks of Spark decode give what one task gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dissectors.decode.pipeline import Decode, DecodeOptions
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


@pytest.mark.parametrize("captures", [_in_three_files, _with_late_secrets])
def test_several_tasks_give_the_same_rows(
    captures: Callable[[Path], list[Path]], spark: SparkSession, tmp_path: Path
) -> None:
    from analytics.inputs.capture_frame import CaptureRows, table_in
    from analytics.inputs.row_batches import ALL, FINDINGS, TABLES

    files = tuple(str(path) for path in captures(tmp_path))
    request = CaptureRows(files, "input", DecodeOptions(messages=True))
    rows = request.by_tasks(spark, ALL, 3).persist()
    alone = request.by_tasks(spark, ALL, 1).persist()
    for table in TABLES[:-1]:
        found, expected = table_in(rows, table), table_in(alone, table)
        assert found.dtypes == expected.dtypes
        rows_found = sorted(map(str, found.toArrow().to_pylist()))
        assert rows_found == sorted(map(str, expected.toArrow().to_pylist()))
        assert rows_found or table == FINDINGS
    rows.unpersist()
    alone.unpersist()


def test_large_captures_are_decoded_by_tasks_that_run_at_the_same_time(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    import analytics.inputs.capture_frame as frame

    request = frame.CaptureRows((str(SAMPLES / "send-sync-5x.pcap"),), "input")
    assert not request.is_large
    monkeypatch.setattr(frame, "LARGE_BYTES", 1)
    monkeypatch.setattr(frame, "TASK_BYTES", 1)
    rows = request.decoded(spark, frame.EXCHANGES)
    tasks = rows.groupBy(frame.F.spark_partition_id()).count().collect()
    assert len(tasks) == 2
    decoded = Decode([str(SAMPLES / "send-sync-5x.pcap")])
    assert sum(count for _, count in tasks) == sum(map(len, decoded.records()))
