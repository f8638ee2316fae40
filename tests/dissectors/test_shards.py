"""Several processes give what one gives: rows, findings and figures, in the same order."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.expert import ExpertInfo
from dissectors.pipeline import DecodeOptions, DecodeStats
from dissectors.record import ExchangeRecord
from dissectors.shards import SharedDecode, decode_of
from dissectors.tcp.source import CaptureError

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
CAPTURES = [
    str(SAMPLES / f"{name}.pcap")
    for name in ("push-consumer-5x", "foreign-5x", "midstream-5x", "one-direction-5x", "removed-5x")
]


def run(jobs: int) -> tuple[list[ExchangeRecord], list[ExpertInfo], DecodeStats, int]:
    decode = decode_of(CAPTURES, DecodeOptions(), jobs)
    records: list[ExchangeRecord] = []
    findings: list[ExpertInfo] = []
    for batch in decode.records():
        records += batch
        findings += decode.take_experts()
    findings += decode.take_experts()
    return records, findings, decode.stats, decode.bytes_read


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_same_as_one_process(jobs: int) -> None:
    records, findings, stats, read = run(1)
    assert len(records) > 100
    assert findings
    assert run(jobs) == (records, findings, stats, read)


def test_what_is_no_capture_is_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, but some lines of text\n")
    with pytest.raises(CaptureError, match="not a pcap"):
        list(decode_of([str(text)], jobs=2).records())


def test_standard_input_is_read_by_one_process() -> None:
    assert not isinstance(decode_of(["-"], jobs=2), SharedDecode)
