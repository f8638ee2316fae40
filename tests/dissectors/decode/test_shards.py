"""Several processes give what one gives: rows, findings and figures, in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dissectors.conversation_record import ConversationRecord
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


@dataclass
class Run:
    """All that a run gives."""

    records: list[ExchangeRecord]
    findings: list[ExpertInfo]
    conversations: list[ConversationRecord]
    stats: DecodeStats
    bytes_read: int


def run(jobs: int) -> Run:
    decode = decode_of(CAPTURES, DecodeOptions(conversations=True), jobs)
    whole = Run([], [], [], decode.stats, 0)
    for batch in decode.records():
        whole.records += batch
        whole.findings += decode.take_experts()
        whole.conversations += decode.take_conversations()
    whole.findings += decode.take_experts()
    whole.conversations += decode.take_conversations()
    whole.bytes_read = decode.bytes_read
    return whole


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_same_as_one_process(jobs: int) -> None:
    alone = run(1)
    assert len(alone.records) > 100
    assert alone.findings
    assert len(alone.conversations) > 20
    assert run(jobs) == alone


def test_what_is_no_capture_is_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, but some lines of text\n")
    with pytest.raises(CaptureError, match="not a pcap"):
        list(decode_of([str(text)], jobs=2).records())


def test_standard_input_is_read_by_one_process() -> None:
    assert not isinstance(decode_of(["-"], jobs=2), SharedDecode)
