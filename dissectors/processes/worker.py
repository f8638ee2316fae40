"""Worker process of a run: reads all packets and decodes its share of the conversations.

It is forked, or started as `python -m dissectors.processes.worker`. All workers read the captures
in the same chunks and send one output per group of chunks, so that the groups can be merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

import msgspec
from librt.strings import BytesWriter

from ..decode.command_order import NO_FLOOR, CommandSeen, CommandStages
from ..decode.exchange import Exchange
from ..decode.exchange_forms import ExchangeColumns, ExchangeLines, MessageCollector
from ..decode.pipeline import Carried, Decode, DecodeOptions
from ..decode.totals import totals_of
from ..findings import Finding
from ..rows.encoded import RowForm
from ..rows.message_record import MessageRecord
from ..rows.record import ExchangeRecord
from ..tcp.source import CaptureError, Source
from .children import ChildSender, read_message, serve
from .encoding import PendingRows
from .merging import LAST, places_at, runs_of, runs_of_counts
from .task import (
    COLUMN_GROUP,
    GROUP,
    ChunkOutput,
    MostHeld,
    RowKind,
    ShardOutput,
    ShardTask,
    ShardTotals,
)

if TYPE_CHECKING:
    from ..message_rows.message_table import MessageTable
    from .command_lines import CommandLines


class ShardDecode(Decode):
    """The run of one worker process.

    Findings are added in steps, in order within each step. All processes make the same steps, also
    without findings, so that those of a step can be merged before sorting.
    """

    def __init__(self, sources: Sequence[str | Source], options: DecodeOptions) -> None:
        super().__init__(sources, options)
        self._steps: list[list[Finding]] = []

    def add_findings(self, findings: list[Finding]) -> None:
        """Add the findings of one step."""
        super().add_findings(findings)
        self._steps.append(findings[:])  # a copy: the caller may clear its list

    def take_steps(self) -> list[list[Finding]]:
        """Return the findings of each step since the last call."""
        self.take_findings()
        steps, self._steps = self._steps, []
        return steps

    def ordered(self) -> Iterator[tuple[bytes, list[Exchange]]]:
        """Yield the exchanges within the requested time, with their places for the merge.

        Findings about their rows form one step: add them before the next batch.
        """
        stages = self._exchange_stages(self._keep())
        limited = self._is_limited()
        for _ in self._drive(stages):
            exchanges, places = stages.take_ordered()
            if limited:
                chosen = [
                    at
                    for at, exchange in enumerate(exchanges)
                    if self._in_time(exchange.request or exchange.response)
                ]
                places, exchanges = places_at(places, chosen), [exchanges[at] for at in chosen]
            yield places, exchanges

    def message_table(self) -> MessageTable:
        """Return the table of messages, which the options must request."""
        assert self._table is not None
        return self._table

    @property
    def floor(self) -> int:
        """Return the packet before which no more commands come."""
        stages = self._stages
        floor = stages.floor() if isinstance(stages, CommandStages) else NO_FLOOR
        return LAST if floor == NO_FLOOR else floor

    def take_most_held(self) -> MostHeld:
        """Return the peaks since the last call."""
        spent = remembered = 0
        if self._table is not None:
            spent, remembered = self._table.take_most_spent(), self._table.remembered
        stages = self._stages
        if stages is None:
            return MostHeld(0, 0, 0, spent, remembered)
        table = stages.table
        held, table.most_held = table.most_held, 0
        of_commands = stages.take_most_held() if isinstance(stages, CommandStages) else (0, 0)
        waiting = stages.matcher.take_most_waiting()
        return MostHeld(held, *waiting, spent, remembered, *of_commands)


class _Group:
    """Output of a group of chunks, until it is sent."""

    def __init__(self, task: ShardTask, decode: ShardDecode, out: ChildSender) -> None:
        self._is_first = task.options.shard == 0
        self._decode = decode
        self._out = out
        self._output = ShardOutput()
        self._is_begun = False
        self._spent = 0
        """peak of the bytes spent on commands beyond what reading them earned"""
        self._most = COLUMN_GROUP if task.request.form is RowForm.arrow else GROUP
        self._encoded: PendingRows | None = None
        if task.request.form is not RowForm.records:
            self._encoded = PendingRows(task.request, task.options.messages)

    def add(self, places: bytes, rows: list[ExchangeRecord]) -> None:
        """Add the rows of the next chunk with their places, and its other outputs."""
        messages = _places_of(self._decode.take_messages(), rows)
        if self._encoded is None:
            output = ChunkOutput(rows=rows, runs=runs_of(places, b""), messages=messages)
            self._add(len(rows), len(rows), 0, output)
        else:
            chosen, message_rows = self._encoded.add(places, rows, messages)
            self._add(len(rows), chosen, message_rows)

    def add_lines(self, count: int, places: bytes, lines: bytes, ends: bytes) -> None:
        """Add `count` encoded rows of the next chunk, and its other outputs."""
        assert self._encoded is not None
        self._encoded.exchanges.add_lines(runs_of(places, ends), lines)
        self._add(count, count, 0)

    def add_columns(self, count: int, places: bytes, columns: ExchangeColumns) -> None:
        """Add `count` rows of the next chunk, buffered in `columns`, and its other outputs."""
        assert self._encoded is not None
        self._encoded.exchanges.add_columns(places, columns)
        self._add(count, count, 0)

    def add_messages(self, seen: int, count: int, lines: bytes, runs: bytes) -> None:
        """Add the encoded messages of the next chunk, and its other outputs.

        `count` messages are from `seen` exchanges.
        """
        assert self._encoded is not None
        assert self._encoded.messages is not None
        self._encoded.messages.add_lines(runs, lines)
        self._add(seen, 0, count)

    def add_commands(self, commands: list[CommandSeen], lines: CommandLines) -> None:
        """Add the commands of the next chunk as lines, and its other outputs."""
        places, data, ends = lines.of(commands)
        self._output.given_bytes += lines.take_bytes()
        self._output.floor = self._decode.floor
        self._spent = lines.most_spent
        self.add_lines(len(commands), places, data, ends)

    def _add(
        self, seen: int, chosen: int, message_rows: int, chunk: ChunkOutput | None = None
    ) -> None:
        """Count the rows of a chunk, and add its other outputs, which are mostly empty."""
        output, decode = self._output, self._decode
        steps, conversations = decode.take_steps(), decode.take_conversations()
        if any(steps) or conversations or chunk is not None:
            chunk = chunk or ChunkOutput()
            chunk.number = len(output.seen)
            chunk.conversations = conversations
            # All processes read all packets, so each has the findings without a conversation.
            chunk.findings = [
                [
                    (info.kind.name, *info[1:])
                    for info in step
                    if self._is_first or info.conversation >= 0
                ]
                for step in steps
            ]
            output.chunks.append(chunk)
        output.seen.append(seen)
        output.chosen.append(chosen)
        output.message_rows.append(message_rows)
        if len(output.seen) >= self._most:
            self.send()

    def send(self) -> None:
        """Send the collected output."""
        decode, output = self._decode, self._output
        output.bytes_read, output.packets = decode.bytes_read, decode.stats.packets
        data: Sequence[bytes | memoryview] = ()
        if self._encoded is not None:
            data, output.exchanges, output.messages = self._encoded.take()
        output.held = decode.take_most_held()  # the first process checks the sum of all
        if self._spent:
            output.held = output.held._replace(spent=self._spent)
        if not self._is_begun and decode.stats.first_time:
            self._is_begun = True
            output.begun = decode.stats.captures
        _send(self._out, output, data)
        self._output = ShardOutput()

    def finish(self) -> None:
        """Send the rest, and the totals."""
        self.send()
        decode = self._decode
        totals = ShardTotals(decode.stats.captures, totals_of(decode.stats))
        _send(self._out, ShardOutput(bytes_read=decode.bytes_read, totals=totals))


def work(source: IO[bytes], out: ChildSender) -> None:
    """Decode the share of one process and send the results."""
    message = read_message(source)
    if message is None:
        return
    task = msgspec.msgpack.decode(message, type=ShardTask)
    try:
        sources: list[str | Source] = list(task.sources)
        if task.is_fed:
            from .feeding import FedSource

            # The chunks of all captures follow the task in the same pipe.
            sources = [FedSource(name, source) for name in task.sources]
        decode = ShardDecode(sources, task.options)
        group = _Group(task, decode, out)
        if task.request.kind is RowKind.messages:
            _send_messages(decode, group)
        elif task.request.kind is RowKind.commands:
            from .command_lines import CommandLines

            lines = CommandLines(decode.sources, task.request.body_limit)
            for commands in decode.commands():
                group.add_commands(commands, lines)
        elif _is_plain(task):
            _encode_plain(task, decode, group)
        else:
            for places, exchanges in decode.ordered():
                group.add(places, decode.rows_of(exchanges))
        group.finish()
    except CaptureError as error:
        _send(out, ShardOutput(problem=[error.path, error.reason, error.hint]))


def _is_plain(task: ShardTask) -> bool:
    """Return whether the task is plain: all exchanges as lines or columns, nothing else."""
    request = task.request
    written = request.form in (RowForm.jsonl, RowForm.arrow)
    return written and not request.where.strip() and not task.options.messages


def _encode_plain(task: ShardTask, decode: ShardDecode, group: _Group) -> None:
    """Encode exchanges from the bytes of their headers."""
    findings: list[Finding] = []
    if task.request.form is RowForm.jsonl:
        lines = ExchangeLines(decode.sources, findings, with_ends=True)
        for places, exchanges in decode.ordered():
            data = lines.lines_of(exchanges)
            decode.add_findings(findings)
            findings.clear()
            group.add_lines(len(exchanges), places, data, lines.take_ends())
        return
    columns = ExchangeColumns(decode.sources, findings)
    for places, exchanges in decode.ordered():
        columns.add(exchanges)
        decode.add_findings(findings)
        findings.clear()
        group.add_columns(len(exchanges), places, columns)


def _send_messages(decode: ShardDecode, group: _Group) -> None:
    """Encode messages from the bytes of their bodies."""
    findings: list[Finding] = []
    counts = BytesWriter()
    table = decode.message_table()
    lines = table.as_lines()
    collector = MessageCollector(decode.sources, findings)
    for places, exchanges in decode.ordered():
        collector.give_counted(exchanges, table, lines, counts)
        decode.add_findings(findings)
        findings.clear()
        runs = runs_of_counts(places, counts.getvalue())
        counts.truncate(0)
        count = lines.waiting
        group.add_messages(len(exchanges), count, lines.take(), runs)


def _places_of(
    carried: Sequence[Carried], rows: Sequence[ExchangeRecord]
) -> list[tuple[int, list[MessageRecord]]]:
    """Return messages with the index of their exchange among the rows; drop those without a row."""
    # By identity, not equality: `carried` has the same objects, and equal rows may exist.
    places = {id(row): place for place, row in enumerate(rows)} if carried else {}
    return [
        (places[id(exchange)], messages) for exchange, messages in carried if id(exchange) in places
    ]


def _send(out: ChildSender, output: ShardOutput, data: Sequence[bytes | memoryview] = ()) -> None:
    out.send(msgspec.msgpack.encode(output), data)


if __name__ == "__main__":
    serve(work)
