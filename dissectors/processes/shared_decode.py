"""A run on several processes, with the same rows, findings, and totals as a single process.

Every process reads all packets, which is cheap, and decodes its share of the conversations.
Compressed captures are decompressed once for all. Limits of the whole run (bytes held, requests
waiting) are monitored: if the processes together might have reached one, a single process restarts
from the beginning, so that the limit has the same effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

import msgspec

from ..budget import FREE_BYTES, MAX_REMEMBERED, Budget
from ..conversations.conversation_table import MAX_HELD
from ..decode.command_order import MOST_BYTES, MOST_HELD
from ..decode.exchange import MAX_WAITING, MAX_WAITING_BYTES
from ..decode.pipeline import Carried, Decode, DecodeOptions
from ..decode.totals import TOTALS, set_sums
from ..findings import Finding, FindingKind
from ..rows.conversation_record import ConversationRecord
from ..rows.encoded import EncodedBatch, Lines, RowForm
from ..rows.record import ExchangeRecord
from ..tcp.source import CaptureError, is_compressed
from .children import Child, ChildMessage, Inbox, start_children
from .encoding import RowEncoder, exchange_encoder, filter_of, message_encoder
from .merging import merged_places
from .task import ChunkOutput, Encoded, MostHeld, RowKind, RowRequest, ShardOutput, ShardTask
from .worker import work

if TYPE_CHECKING:
    from .feeding import Feeder

Given = TypeVar("Given")
LIMITS: Final = MostHeld(
    MAX_HELD,
    MAX_WAITING,
    MAX_WAITING_BYTES,
    FREE_BYTES // 2,
    MAX_REMEMBERED - 1,
    MOST_HELD,
    MOST_BYTES,
)
"""limits for all processes together; half of the budget, since one message may take much"""

MOST_FINDINGS: Final = 1000
"""findings of one group of chunks that may wait to be taken"""


class _LimitNear(Exception):
    """The processes together might have reached a limit of the run."""


class SharedDecode(Decode):
    """A run whose rows are decoded by several processes; otherwise the same as `Decode`."""

    def __init__(self, sources: Sequence[str], options: DecodeOptions, jobs: int) -> None:
        """Start the processes, which is fast while this process is single-threaded."""
        self.children: list[Child] = []
        """the running processes"""
        self._feeder: Feeder | None = None
        super().__init__(sources, options)
        self.jobs = jobs
        self._ended: list[ConversationRecord] = []
        self._chunks_given = 0
        self.children = start_children(self.jobs, work)

    def __del__(self) -> None:
        self._end()  # also without an iteration, which otherwise ends them

    def records(self) -> Iterator[list[ExchangeRecord]]:
        """Yield exchanges as rows, in single-process order."""
        try:
            for received in self._outputs(RowRequest(RowForm.records)):
                for chunks in zip(*(item.output.chunks for item in received), strict=True):
                    self._note_chunk(chunks)
                    rows = [row for chunk in chunks for row in chunk.rows]
                    batch = [rows[at] for at in merged_places([chunk.runs for chunk in chunks])]
                    self._carried += _carried_in(chunks, batch)
                    yield batch
        except _LimitNear:
            yield from self._others(Decode.records)

    def encoded_rows(self, request: RowRequest) -> Iterator[EncodedBatch]:
        """Yield encoded rows chunk by chunk.

        Raise MissingLibraryError if Arrow columns are requested without pyarrow.
        """
        encoder = exchange_encoder(request.form)
        of_messages = message_encoder(request.form) if self.options.messages else None
        try:
            yield from self._merged(request, encoder, of_messages)
        except _LimitNear:
            test = filter_of(request)
            for seen in self._others(Decode.records):
                rows = [row for row in seen if test is None or test(row)]
                kept = set(map(id, rows))
                carried = [item for item in self.take_messages() if id(item.exchange) in kept]
                messages = [row for item in carried for row in item.messages]
                yield EncodedBatch(
                    len(seen),
                    encoder.whole(rows) if rows else None,
                    of_messages.whole(messages) if of_messages and messages else None,
                )

    def message_lines(self) -> Iterator[Lines]:
        """Yield message rows as JSON lines, several chunks at once."""
        request = RowRequest(RowForm.jsonl, kind=RowKind.messages)
        try:
            for batch in self._merged(request, exchange_encoder(request.form), None):
                yield batch.rows if isinstance(batch.rows, Lines) else Lines([], [])
        except _LimitNear:
            yield from self._others(Decode.message_lines)

    def command_lines(self, limit: int, budget: Budget) -> Iterator[Lines]:
        """Yield all commands as JSON lines, several chunks at once.

        At most `limit` bytes of a body are written. `budget` is used if a single process has to
        take over.
        """
        from .command_lines import CommandLines, CommandMerge, batched

        merge = CommandMerge(self.jobs)
        try:
            request = RowRequest(RowForm.jsonl, kind=RowKind.commands, body_limit=limit)
            for received in self._outputs(request):
                outputs = [item.output for item in received]
                rows = sum(item.seen for item in outputs)
                size = sum(item.given_bytes for item in outputs)
                held = sum(item.held.commands for item in outputs)
                held_bytes = sum(item.held.command_bytes for item in outputs)
                if merge.is_near(rows, size, (held, held_bytes)):
                    raise _LimitNear
                for chunks in _with_more(received):
                    self._note_chunk(chunks)
                parts = [item.rows for item in received]
                yield merge.merged(parts, rows, size, min(item.floor for item in outputs))
        except _LimitNear:
            alone = Decode(self.sources, self.options)
            writer, to_skip = CommandLines(self.sources, limit, budget), merge.given
            for number, commands in enumerate(alone.commands()):
                self._take_over(alone, number)
                # Skipped lines are written too, so that they spend the same budget.
                yield from batched(islice(writer.each_of(commands), to_skip, None))
                to_skip = max(to_skip - len(commands), 0)

    def take_conversations(self) -> list[ConversationRecord]:
        """Return the rows of ended connections, as a single process does."""
        ended, self._ended = self._ended, []
        return ended

    def _merged(
        self, request: RowRequest, encoder: RowEncoder, of_messages: RowEncoder | None
    ) -> Iterator[EncodedBatch]:
        """Yield the encoded rows of all processes by group."""
        for received in self._outputs(request):
            for chunks in _with_more(received):
                self._note_chunk(chunks)
                if len(self._findings) >= MOST_FINDINGS:
                    yield EncodedBatch(0, None, None)  # findings are taken now
            rows = messages = None
            counts = _sums([item.output.chosen for item in received])
            if any(counts):
                rows = encoder.merged([item.rows for item in received], counts)
            counts = _sums([item.output.message_rows for item in received])
            if of_messages is not None and any(counts):
                messages = of_messages.merged([item.messages for item in received], counts)
            yield EncodedBatch(sum(item.output.seen for item in received), rows, messages)

    def _outputs(self, request: RowRequest) -> Iterator[list[_Received]]:
        """Yield the outputs of all processes by group; each is valid until the next one."""
        children = self.children
        is_fed = any(map(is_compressed, self.sources))
        try:
            for shard, child in enumerate(children):
                options = replace(self.options, shard=shard, shards=self.jobs)
                task = ShardTask(self.sources, options, request, is_fed)
                child.write(msgspec.msgpack.encode(task))
            if is_fed:
                from .feeding import Feeder

                self._feeder = Feeder(self._sources, children)
            inbox = Inbox(children)
            # Created here, since it takes milliseconds in which the processes already work.
            decoder = msgspec.msgpack.Decoder(ShardOutput)
            is_over = False
            while not is_over:
                messages = [inbox.next_of(item) for item in range(self.jobs)]
                outputs = [decoder.decode(message.message) for message in messages]
                is_over = self._note_group(outputs)
                yield list(map(_received, outputs, messages))
                self._chunks_given += len(outputs[0].chosen)
                for message in messages:
                    message.free()
        finally:
            self._end()

    def _end(self) -> None:
        # The feeder may be writing to a child, so it ends after them. Pipes are closed last: the
        # number of a closed one could be that of a new file, to which the feeder would write.
        children, self.children = self.children, []
        for child in children:
            child.kill()
        if self._feeder is not None:
            self._feeder.end()
            self._feeder = None
        for child in children:
            child.close()

    def _note_group(self, outputs: Sequence[ShardOutput]) -> bool:
        """Record the outputs of a group besides its chunks; return whether it was the last."""
        for output in outputs:
            if output.problem is not None:
                path, reason, hint = output.problem
                raise CaptureError(path, reason, 0, hint)
        # Peaks of different processes may be at different times: the sum is an upper bound.
        together = map(sum, zip(*(output.held for output in outputs), strict=True))
        if any(held > most for held, most in zip(together, LIMITS, strict=True)):
            raise _LimitNear
        self.read_before = outputs[0].bytes_read
        self.stats.packets_reported = outputs[0].packets
        if outputs[0].captures:
            self.stats.captures = outputs[0].captures
        totals = [output.totals for output in outputs if output.totals is not None]
        if totals:
            self.stats.packets_reported = 0
            set_sums(self.stats, totals)
        return bool(totals)

    def _note_chunk(self, chunks: Sequence[ChunkOutput]) -> None:
        """Record the outputs of a chunk besides its rows."""
        # One process sorts the findings of each step, so those of all are joined step by step.
        for step in zip_longest(*(chunk.findings for chunk in chunks), fillvalue=()):
            self.add_findings(
                [Finding(FindingKind[info[0]], *info[1:]) for found in step for info in found]
            )
        ended = [row for chunk in chunks for row in chunk.conversations]
        self._ended += sorted(ended, key=attrgetter("conversation"))

    def _others(self, chunks_of: Callable[[Decode], Iterator[Given]]) -> Iterator[Given]:
        """Decode everything in this process; yield the chunks that were not yet yielded."""
        alone = Decode(self.sources, self.options)
        for number, given in enumerate(chunks_of(alone)):
            if self._take_over(alone, number):
                yield given

    def _take_over(self, alone: Decode, number: int) -> bool:
        """Record the outputs of a chunk besides its rows; return whether it was not yet yielded."""
        findings, messages = alone.take_findings(), alone.take_messages()
        conversations = alone.take_conversations()
        if number < self._chunks_given:
            return False
        self.stats.captures, self.stats.packets_reported = alone.stats.captures, 0
        self.add_findings(findings)
        self._ended += conversations
        self._carried += messages
        self.read_before = alone.bytes_read
        for name in TOTALS:
            setattr(self.stats, name, getattr(alone.stats, name))
        return True


class _Received(NamedTuple):
    """Output of one process for a group of chunks, with views of its encoded rows."""

    output: ShardOutput
    rows: Encoded
    messages: Encoded


def _received(output: ShardOutput, message: ChildMessage) -> _Received:
    size, data = output.row_bytes, message.data
    return _Received(
        output,
        Encoded(data[:size], output.row_runs),
        Encoded(data[size:], output.message_runs),
    )


def _with_more(received: Sequence[_Received]) -> list[list[ChunkOutput]]:
    """Return the outputs of each chunk besides encoded rows, from the processes that have any."""
    by_number: dict[int, list[ChunkOutput]] = {}
    for item in received:
        for chunk in item.output.chunks:
            by_number.setdefault(chunk.number, []).append(chunk)
    return [by_number[number] for number in sorted(by_number)]


def _sums(counts: Sequence[list[int]]) -> list[int]:
    """Return the rows per chunk, summed over all processes."""
    return list(map(sum, zip(*counts, strict=True)))


def _carried_in(chunks: Sequence[ChunkOutput], batch: Sequence[ExchangeRecord]) -> list[Carried]:
    """Return the messages of all processes, in the order of their exchanges in `batch`."""
    of_row = {
        id(chunk.rows[place]): messages for chunk in chunks for place, messages in chunk.messages
    }
    return [Carried(row, of_row[id(row)]) for row in batch if id(row) in of_row]
