"""Several processes give what one gives: rows, findings and figures, in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Carried, DecodeOptions, DecodeStats
from dissectors.decode.shards import SharedDecode, decode_of
from dissectors.decode.stages import ExchangeStages
from dissectors.expert import ExpertInfo
from dissectors.remoting.framing.frame_decoder import KEEP_MESSAGES
from dissectors.rows.conversation_record import ConversationRecord
from dissectors.rows.record import ExchangeRecord
from dissectors.tcp.formats import reader_of
from dissectors.tcp.source import CaptureError

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
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
    messages: list[Carried]
    stats: DecodeStats
    bytes_read: int


def run(jobs: int) -> Run:
    decode = decode_of(CAPTURES, DecodeOptions(conversations=True, messages=True), jobs)
    whole = Run([], [], [], [], decode.stats, 0)
    for batch in decode.records():
        whole.records += batch
        whole.findings += decode.take_experts()
        whole.conversations += decode.take_conversations()
        whole.messages += decode.take_messages()
    whole.findings += decode.take_experts()
    whole.conversations += decode.take_conversations()
    whole.bytes_read = decode.bytes_read
    return whole


@pytest.mark.parametrize("jobs", [2, 3])
def test_the_same_as_one_process(jobs: int) -> None:
    alone = run(1)
    assert len(alone.records) > 100
    assert alone.findings
    assert len(alone.messages) > 20
    assert len(alone.conversations) > 20
    assert run(jobs) == alone


def test_what_is_no_capture_is_said(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no capture at all, but some lines of text\n")
    with pytest.raises(CaptureError, match="not a pcap"):
        list(decode_of([str(text)], jobs=2).records())


def test_standard_input_is_read_by_one_process() -> None:
    assert not isinstance(decode_of(["-"], jobs=2), SharedDecode)


def test_places_that_nobody_asks_for_are_not_kept() -> None:
    """A task of Spark decodes a shard as plain records: what it holds must not grow with them."""
    data = Path(CAPTURES[0]).read_bytes()
    reader = reader_of(0, data[:24])
    assert reader is not None
    stages = ExchangeStages(frozenset(), KEEP_MESSAGES, 0, 2)
    found = 0
    for at in range(24, len(data), 4096):
        stages.receive(reader.receive(data[at : at + 4096]))
        found += len(stages.exchanges)
        assert len(stages.order) == len(stages.exchanges)
        stages.take_exchanges()
        assert stages.order == []
    assert found > 10


def test_no_module_comes_from_the_folder_that_somebody_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    records = [one for batch in decode_of([CAPTURES[0]], jobs=2).records() for one in batch]
    assert records == [one for batch in decode_of([CAPTURES[0]]).records() for one in batch]
    assert not (tmp_path / "ran").exists()
