"""Decode a broker store: message rows, findings, totals.

A record is a row `on_disk`. A record that ends a half message also gives a row `committed` or
`rolled_back` of that message. Group offsets follow at the end, as `acknowledged` rows that cover
everything before an offset; they have no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..budget import Budget
from ..decode.pipeline import Decode, DecodeOptions
from ..decode.totals import COMMIT_LOG, CaptureStats
from ..findings import Finding, FindingKind
from ..message_rows.message_writer import FactsReader
from ..message_rows.seen_exchange import Facts, time_of_ms
from ..remoting.messages.batch import unwrap_inner_batch
from ..remoting.messages.message import StoredMessage
from ..rows.message_record import (
    ACKNOWLEDGED,
    BEFORE,
    COMMITTED,
    ON_DISK,
    ROLLED_BACK,
    MessageRecord,
)
from ..tcp.capture import CAPTURE_SHIFT
from .commit_log import LogEntry
from .half_messages import StoredHalfEnd
from .store_folder import StoreFolder

_BATCH: Final = 1024
"""rows per batch"""


class StoreDecode(Decode):
    """One run over a store, read by `message_rows`."""

    def __init__(self, store: StoreFolder, options: DecodeOptions) -> None:
        super().__init__(store.files, options)
        self.store = store
        self._facts = FactsReader(None)
        self._budget = Budget()

    def message_rows(self) -> Iterator[list[MessageRecord]]:
        """Yield a row for each message in the log, in order; findings are collected."""
        files = self.store.files
        rows: list[MessageRecord] = []
        stats: CaptureStats | None = None
        broker = ""
        for record in self.store.records():
            while len(self.stats.captures) <= record.file:  # also files without any record
                self.read_before += stats.bytes if stats is not None else 0
                stats = CaptureStats(files[len(self.stats.captures)], COMMIT_LOG)
                self.stats.captures.append(stats)
            assert stats is not None
            stats.bytes = record.entry.offset
            if record.entry.problem is not None:
                self._note(record.file, record.entry)
            message = record.entry.message
            if message is not None:
                if stats.first_ts is None:  # the day of times of day
                    stats.first_ts = time_of_ms(message.store_timestamp)
                broker = message.store_host
                rows += self._rows_of(files[record.file], message)
                # Place 0 is the record itself.
                for place, end in enumerate(record.ends, 1):
                    rows += self._end_of(files[record.file], end, place)
            if len(rows) >= _BATCH:
                yield rows
                rows = []
        for path in files[len(self.stats.captures) :]:
            self.stats.captures.append(CaptureStats(path, COMMIT_LOG))
        self.read_before = self.bytes_total or 0
        yield rows
        yield from self._offset_rows(broker)

    def _rows_of(self, path: str, record: StoredMessage) -> Iterator[MessageRecord]:
        remark = self.store.remark_of(record)
        self._budget.earn(len(record.body))
        for place, message in enumerate(unwrap_inner_batch(record, budget=self._budget)):
            facts = self._facts.facts_of(message, self.options.body_limit, self._budget)
            yield _row(path, ON_DISK, message, facts, facts.store_time, place, remark)

    def _end_of(self, path: str, end: StoredHalfEnd, place: int) -> Iterator[MessageRecord]:
        if end.outcome not in (COMMITTED, ROLLED_BACK):
            return
        time = time_of_ms(end.record.store_timestamp)
        facts = self._facts.facts_of(end.half, 0, self._budget)
        yield _row(path, end.outcome, end.half, facts, time, place, None)

    def _offset_rows(self, broker: str) -> Iterator[list[MessageRecord]]:
        """Yield a row for each queue of each group: everything before its offset is consumed."""
        path = self.store.files[0]
        offsets = self.store.offsets
        for start in range(0, len(offsets), _BATCH):
            yield [
                _row(
                    path,
                    ACKNOWLEDGED,
                    None,
                    Facts(
                        topic=offset.topic,
                        queue_id=offset.queue_id,
                        queue_offset=offset.offset,
                        covers=BEFORE,
                        consumer_group=offset.group,
                    ),
                    None,
                    0,
                    None,
                    broker,
                )
                for offset in offsets[start : start + _BATCH]
            ]

    def _note(self, file: int, entry: LogEntry) -> None:
        detail = f"offset {entry.offset}: {entry.problem}"
        place = file << CAPTURE_SHIFT
        self.add_findings([Finding(FindingKind.BAD_MESSAGE, detail, 0, place, -1, entry.offset)])


def _row(
    path: str,
    event: str,
    message: StoredMessage | None,
    facts: Facts,
    time: int | None,
    place: int,
    remark: str | None,
    broker: str = "",
) -> MessageRecord:
    """Return a row with empty packet columns."""
    return MessageRecord(
        capture=path,
        conversation=-1,
        packet=None,
        time=time,
        request_packet=None,
        place=place,
        event=event,
        request_name=None,
        response_code=None,
        response_name=None,
        remark=remark,
        latency_us=None,
        end=None,
        client_address="" if message is None else message.born_host,
        client_id=None,
        server_address=broker if message is None else message.store_host,
        broker_name=None,
        **facts._asdict(),
    )
