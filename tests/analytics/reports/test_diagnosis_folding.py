"""Exchanges on their way to the tasks that fold them: once a key, and in bounded pieces."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

from collections import Counter
from itertools import chain

import msgspec

from analytics.consuming.known import Known
from analytics.diagnosis.engine import Engine
from analytics.diagnosis.registry import rules
from analytics.reports import diagnosis_folding
from analytics.reports.diagnosis_folding import FOLDING
from dissectors.rows.record import ExchangeRecord
from tests.analytics.diagnosis.made_rows import sample

SAMPLES = ("busy-send-queue-5x.pcap", "offset-moved-4x.pcap", "grpc-throttled-5x.pcap")


def _found(rows: list[ExchangeRecord], size: int) -> Counter[tuple[str, str, int]]:
    """Return what rules make of rows that come in batches of a size."""
    known = Known()
    known.add_exchanges(rows)
    batches = (rows[begin : begin + size] for begin in range(0, len(rows), size))
    items = chain.from_iterable(FOLDING.exchanges(batch, known) for batch in batches)
    problems = FOLDING.fold(sorted(items), known).problems
    return Counter((one.rule, one.title, one.count) for one in problems)


@pytest.mark.parametrize("name", SAMPLES)
def test_blocks_have_all_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules find in blocks what they find in rows, however rows are cut."""
    rows = list(sample(name).exchanges)
    of_messages = {rule.id for rule in rules() if rule.messages is not None}
    engine = Engine([rule for rule in rules() if rule.id not in of_messages])
    engine.add_exchanges(rows)
    expected = {(one.rule, one.title, one.count) for one in engine.diagnosis().problems}
    assert expected
    for size, bound in ((len(rows), 1 << 16), (7, 1 << 16), (len(rows), 100)):
        monkeypatch.setattr(diagnosis_folding, "_BLOCK_BYTES", bound)
        found = {one for one in _found(rows, size) if one[0] not in of_messages}
        assert found == expected


def test_identical_rows_all_count() -> None:
    rows = [row for row in sample(SAMPLES[1]).exchanges if row.response_name == "PULL_OFFSET_MOVED"]
    ((rule, _, count),) = _found(rows[:1] * 3, 3)
    assert (rule, count) == ("offset-moved", 3)


def test_blocks_are_bounded() -> None:
    """A batch of a worker has ten thousand of them."""
    (row, *_) = sample(SAMPLES[0]).exchanges
    rows = [
        msgspec.structs.replace(row, opaque=number, remark=str(number) * 1000)
        for number in range(1000)
    ]
    items = list(FOLDING.exchanges(rows, Known()))
    assert max(len(item.text) for item in items) <= 1 << 16
    most = Counter(item.key for item in items)
    assert len(items) < len(rows) < 1000 * len(most) + 1
    assert min(most.values()) >= 1000 // 128
