"""Worker process of a run: reads all packets and decodes its share of the conversations.

It is forked, or started as `python -m dissectors.processes.worker`. All workers read the captures
in the same chunks and send one output per group of chunks, so that the groups can be merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING

import msgspec
from librt.strings import BytesWriter

from ..decode.command_order import NO_FLOOR, CommandStages
from ..decode.exchange import Exchange
from ..decode.exchange_forms import ExchangeLines, MessageCollector
from ..decode.pipeline import Carried, Decode, DecodeOptions
from ..decode.totals import RunTotals, totals_of
from ..findings import Finding
from ..rows.encoded import RowForm
from ..rows.message_record import MessageRecord
from ..rows.record import ExchangeRecord
from ..tcp.source import CaptureError, Source
from .children import ChildSender, read_message, serve
from .encoding import RowEncoder, exchange_encoder, filter_of, message_encoder
from .merging import LAST, places_at, runs_of, runs_of_counts
from .task import (
    COLUMN_GROUP,
    GROUP,
    ChunkOutput,
    MostHeld,
    RowKind,
    ShardOutput,
    ShardTask,
)

if TYPE_CHECKING:
    from ..message_rows.message_table import MessageTable


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
        form = task.request.form
        self._decode = decode
        self._out = out
        self._is_first = task.options.shard == 0
        self._is_begun = False
        self._is_encoded = form is not RowForm.records
        self._test = filter_of(task.request)
        self._most = COLUMN_GROUP if form is RowForm.arrow else GROUP
        self.rows = exchange_encoder(form)
        self._messages: RowEncoder | None = None
        if self._is_encoded and task.options.messages and task.request.kind is RowKind.exchanges:
            self._messages = message_encoder(form)
        self.output = ShardOutput()
        self.spent = 0
        """peak of the bytes spent on commands beyond what reading them earned"""

    def add(self, places: bytes, rows: list[ExchangeRecord]) -> None:
        """Add the rows of the next chunk with their places, and its other outputs."""
        seen, message_rows = len(rows), 0
        if self._test is not None:
            kept = [at for at, row in enumerate(rows) if self._test(row)]
            places, rows = places_at(places, kept), [rows[at] for at in kept]
        messages = _places_of(self._decode.take_messages(), rows)
        if not self._is_encoded:
            chunk = ChunkOutput(rows=rows, runs=runs_of(places, b""), messages=messages)
            self.end_chunk(seen, seen, 0, chunk)
            return
        if messages and self._messages is not None:
            exchanges = [at for at, of in messages for _ in of]
            message_rows = len(exchanges)
            self._messages.add(
                [row for _, of in messages for row in of], places_at(places, exchanges)
            )
        if rows:
            self.rows.add(rows, places)
        self.end_chunk(seen, len(rows), message_rows)

    def end_chunk(
        self, seen: int, chosen: int, message_rows: int = 0, chunk: ChunkOutput | None = None
    ) -> None:
        """Count the rows of a chunk, and add its other outputs, which are mostly empty."""
        output, decode = self.output, self._decode
        steps, conversations = decode.take_steps(), decode.take_conversations()
        if any(steps) or conversations or chunk is not None:
            chunk = chunk or ChunkOutput()
            chunk.number = len(output.chosen)
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
        output.seen += seen
        output.chosen.append(chosen)
        output.message_rows.append(message_rows)
        if len(output.chosen) >= self._most:
            self.send()

    def send(self, totals: RunTotals | None = None) -> None:
        """Send the collected output; at the end with the totals."""
        decode, output = self._decode, self.output
        output.bytes_read, output.packets = decode.bytes_read, decode.stats.packets
        data, output.row_runs = self.rows.take()
        output.row_bytes = sum(map(len, data))
        if self._messages is not None:
            more, output.message_runs = self._messages.take()
            data = [*data, *more]
        output.held = decode.take_most_held()  # the first process checks the sum of all
        if self.spent:
            output.held = output.held._replace(spent=self.spent)
        output.floor = decode.floor
        if totals is not None or (decode.stats.first_time and not self._is_begun):
            self._is_begun = True
            output.captures = decode.stats.captures
        output.totals = totals
        self._out.send(msgspec.msgpack.encode(output), data)
        self.output = ShardOutput()


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
            _add_messages(decode, group)
        elif task.request.kind is RowKind.commands:
            _add_commands(decode, group, task.request.body_limit)
        elif _is_plain(task):
            _add_lines(decode, group)
        else:
            for places, exchanges in decode.ordered():
                group.add(places, decode.rows_of(exchanges))
        group.send(totals_of(decode.stats))
    except CaptureError as error:
        problem = ShardOutput(problem=[error.path, error.reason, error.hint])
        out.send(msgspec.msgpack.encode(problem))


def _is_plain(task: ShardTask) -> bool:
    """Return whether the task is plain: all exchanges as JSON lines, nothing else."""
    request = task.request
    return request.form is RowForm.jsonl and not request.where.strip() and not task.options.messages


def _add_lines(decode: ShardDecode, group: _Group) -> None:
    """Encode exchanges from the bytes of their headers."""
    findings: list[Finding] = []
    lines = ExchangeLines(decode.sources, findings, with_ends=True)
    for places, exchanges in decode.ordered():
        data = lines.lines_of(exchanges)
        decode.add_findings(findings)
        findings.clear()
        group.rows.add_lines(runs_of(places, lines.take_ends()), data)
        group.end_chunk(len(exchanges), len(exchanges))


def _add_commands(decode: ShardDecode, group: _Group, limit: int) -> None:
    """Encode commands, with at most `limit` bytes of each body."""
    from .command_lines import CommandLines

    lines = CommandLines(decode.sources, limit)
    for commands in decode.commands():
        places, data, ends, size = lines.of(commands)
        group.rows.add_lines(runs_of(places, ends), data)
        group.output.given_bytes += size
        group.spent = lines.most_spent
        group.end_chunk(len(commands), len(commands))


def _add_messages(decode: ShardDecode, group: _Group) -> None:
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
        group.rows.add_lines(runs, lines.take())
        group.end_chunk(len(exchanges), count)


def _places_of(
    carried: Sequence[Carried], rows: Sequence[ExchangeRecord]
) -> list[tuple[int, list[MessageRecord]]]:
    """Return messages with the index of their exchange among the rows; drop those without a row."""
    # By identity, not equality: `carried` has the same objects, and equal rows may exist.
    places = {id(row): place for place, row in enumerate(rows)} if carried else {}
    return [
        (places[id(exchange)], messages) for exchange, messages in carried if id(exchange) in places
    ]


if __name__ == "__main__":
    serve(work)
