"""One of the processes of a run: goes through all packets, decodes its share of the conversations.

It is forked or started as `python -m dissectors.processes.worker`. All go through the captures in
the same chunks and send what each group of chunks gave, so that the groups can be put together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import IO

import msgspec

from ..decode.exchange import Exchange
from ..decode.exchange_columns import ExchangeColumns
from ..decode.exchange_lines import ExchangeLines
from ..decode.pipeline import Carried, Decode, DecodeOptions
from ..decode.stages import Stages
from ..decode.totals import totals_of
from ..expert import ExpertInfo
from ..rows.encoded import RowForm
from ..rows.message_record import MessageRecord
from ..rows.record import ExchangeRecord
from ..tcp.source import CaptureError, Source
from .children import ChildSender, read_message, serve
from .encoding import PendingRows
from .feeding import FedSource
from .merging import runs_of
from .task import (
    COLUMN_GROUP,
    GROUP,
    ChunkOutput,
    MostHeld,
    ShardOutput,
    ShardTask,
    ShardTotals,
)


class ShardDecode(Decode):
    """The run of one process.

    A run adds findings step by step, in the order of each step. The steps are counted, so that
    those of all processes can be put together before they are sorted.
    """

    def __init__(self, sources: Sequence[str | Source], options: DecodeOptions) -> None:
        super().__init__(sources, options)
        self._step = 0
        self._found: list[tuple[int, ExpertInfo]] = []

    def add_experts(self, found: list[ExpertInfo]) -> None:
        """Add the findings of one step."""
        super().add_experts(found)
        self._found += [(self._step, one) for one in found]

    def take_steps(self) -> list[tuple[int, ExpertInfo]]:
        """Return the findings since the last call, each behind the number of its step."""
        self.take_experts()
        taken, self._found, self._step = self._found, [], 0
        return taken

    def ordered_exchanges(self) -> Iterator[tuple[list[tuple[int, int]], list[Exchange]]]:
        """Yield the places of this process's exchanges among all, and the exchanges.

        What is found about their rows is one step: `add_found` before the next ones.
        """
        stages = self._exchange_stages(self._keep())
        limited = self._is_limited()
        for _ in self._drive(stages):
            exchanges, places = stages.take_ordered()
            if limited:
                chosen = [self._in_time(one.request or one.response) for one in exchanges]
                exchanges = list(compress(exchanges, chosen))
                places = list(compress(places, chosen))
            self._step += 1
            yield places, exchanges

    def add_found(self, found: list[ExpertInfo]) -> None:
        """Add what was found about rows, and forget it."""
        if found:
            self.add_experts(found)
            found.clear()

    def rows_of(self, batch: list[Exchange]) -> list[ExchangeRecord]:
        """Return the rows of exchanges; what is found in them is one step."""
        self._step += 1
        return super().rows_of(batch)

    def _collect_experts(self, stages: Stages, found: list[ExpertInfo]) -> None:
        self._step += 1
        super()._collect_experts(stages, found)

    def _refuse(self, source: Source, head: bytes) -> None:
        self._step += 1
        super()._refuse(source, head)

    def take_most_held(self) -> MostHeld:
        """Return what was held at a time, at the most since the last call."""
        spent = remembered = 0
        if self._table is not None:
            spent, remembered = self._table.take_most_spent(), self._table.remembered
        if self._stages is None:
            return MostHeld(0, 0, 0, spent, remembered)
        table = self._stages.table
        held, table.most_held = table.most_held, 0
        return MostHeld(held, *self._stages.matcher.take_most_waiting(), spent, remembered)


class _Group:
    """What some chunks gave, until it is sent."""

    def __init__(self, task: ShardTask, decode: ShardDecode, out: ChildSender) -> None:
        self._is_first = task.options.shard == 0
        self._decode = decode
        self._out = out
        self._chunks: list[ChunkOutput] = []
        self._is_begun = False
        self._most = COLUMN_GROUP if task.request.form is RowForm.arrow else GROUP
        self._encoded: PendingRows | None = None
        if task.request.form is not RowForm.records:
            self._encoded = PendingRows(task.request, task.options.messages)

    def add(self, places: list[tuple[int, int]], rows: list[ExchangeRecord]) -> None:
        """Take the rows of the next chunk, with their places, and what else it gave."""
        messages = _places_of(self._decode.take_messages(), rows)
        chunk = self._chunk(len(rows))
        if self._encoded is None:
            chunk.rows, chunk.messages = rows, messages
            chunk.runs = runs_of(places, b"")
        else:
            chunk.chosen, chunk.message_rows = self._encoded.add(places, rows, messages)
        self._add(chunk)

    def add_lines(self, places: list[tuple[int, int]], lines: bytes) -> None:
        """Take the rows of the next chunk as lines, and what else it gave."""
        assert self._encoded is not None
        self._encoded.add_lines(places, lines)
        self._add_chosen(len(places))

    def add_columns(self, places: list[tuple[int, int]], columns: ExchangeColumns) -> None:
        """Take the rows of the next chunk, which wait in `columns`, and what else it gave."""
        assert self._encoded is not None
        self._encoded.add_columns(places, columns)
        self._add_chosen(len(places))

    def _add_chosen(self, count: int) -> None:
        chunk = self._chunk(count)
        chunk.chosen = count
        self._add(chunk)

    def _chunk(self, seen: int) -> ChunkOutput:
        """Return what a chunk with so many exchanges gave besides rows."""
        decode = self._decode
        findings = [
            (step, info.kind.name, *info[1:])
            for step, info in decode.take_steps()
            if self._is_first or info.conversation >= 0
        ]
        return ChunkOutput(seen, 0, 0, findings, decode.take_conversations())

    def _add(self, chunk: ChunkOutput) -> None:
        self._chunks.append(chunk)
        if len(self._chunks) >= self._most:
            self.send()

    def send(self) -> None:
        """Send what there is."""
        decode = self._decode
        output = ShardOutput(self._chunks, bytes_read=decode.bytes_read)
        data: Sequence[bytes | memoryview] = ()
        if self._encoded is not None:
            data, output.exchanges, output.messages = self._encoded.take()
        output.held = decode.take_most_held()
        if not self._is_begun and decode.stats.first_time:
            self._is_begun = True
            output.begun = decode.stats.captures
        _send(self._out, output, data)
        self._chunks = []

    def finish(self) -> None:
        """Send the last of it, and what was found in all."""
        self.send()
        decode = self._decode
        totals = ShardTotals(decode.stats.captures, totals_of(decode.stats))
        _send(self._out, ShardOutput(bytes_read=decode.bytes_read, totals=totals))


def work(source: IO[bytes], out: ChildSender) -> None:
    """Decode the share of one process and send what it gives."""
    message = read_message(source)
    if message is None:
        return
    task = msgspec.msgpack.decode(message, type=ShardTask)
    try:
        sources: list[str | Source] = list(task.sources)
        if task.is_fed:
            sources = [FedSource(name, source) for name in task.sources]
        decode = ShardDecode(sources, task.options)
        group = _Group(task, decode, out)
        if _is_plain(task):
            _encode_plain(task, decode, group)
        else:
            for places, rows in decode.ordered_records():
                group.add(places, rows)
        group.finish()
    except CaptureError as error:
        _send(out, ShardOutput(problem=[error.path, error.reason, error.hint]))


def _is_plain(task: ShardTask) -> bool:
    """Return whether all exchanges are wanted as lines or columns, and nothing else of them."""
    request = task.request
    written = request.form in (RowForm.jsonl, RowForm.arrow)
    return written and not request.where.strip() and not task.options.messages


def _encode_plain(task: ShardTask, decode: ShardDecode, group: _Group) -> None:
    """Encode exchanges from the bytes of their headers."""
    found: list[ExpertInfo] = []
    if task.request.form is RowForm.jsonl:
        lines = ExchangeLines(decode.sources, found)
        for places, exchanges in decode.ordered_exchanges():
            data = lines.lines_of(exchanges)
            decode.add_found(found)
            group.add_lines(places, data)
        return
    columns = ExchangeColumns(decode.sources, found)
    for places, exchanges in decode.ordered_exchanges():
        columns.add(exchanges)
        decode.add_found(found)
        group.add_columns(places, columns)


def _places_of(
    carried: Sequence[Carried], rows: Sequence[ExchangeRecord]
) -> list[tuple[int, list[MessageRecord]]]:
    """Return messages with the place of their exchange among the rows; others are left out."""
    places = {id(row): place for place, row in enumerate(rows)} if carried else {}
    return [
        (places[id(exchange)], messages) for exchange, messages in carried if id(exchange) in places
    ]


def _send(out: ChildSender, output: ShardOutput, data: Sequence[bytes | memoryview] = ()) -> None:
    out.send(msgspec.msgpack.encode(output), data)


if __name__ == "__main__":
    serve(work)
