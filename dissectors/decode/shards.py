"""Decoding on several cores: every process reads all packets and decodes its share of the
conversations.

The processes go through the captures in the same chunks, and each sends one message a chunk, so
their results are put together chunk by chunk, in the order one process would have given them.
`python -m dissectors.decode.shards` is such a process; it is started by `SharedDecode`, gets its
task as JSON on standard input and writes messages to standard output.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import IO

import msgspec

from ..expert import ExpertInfo, ExpertKind
from ..rows.conversation_record import ConversationRecord
from ..rows.message_record import MessageRecord
from ..rows.record import ExchangeRecord
from ..tcp.source import STDIN, CaptureError, Source
from .pipeline import Carried, Decode, DecodeOptions
from .totals import CaptureStats, RunTotals, set_sums, totals_of

MAX_JOBS = 64
"""processes at most: each reads all packets, so more of them gain nothing"""

ShardRow = tuple[int, int, ExchangeRecord]
ShardFinding = tuple[str, str, int, int, int, int]


class ShardTask(msgspec.Struct):
    """What one process has to do."""

    sources: list[str]
    shard: int
    shards: int
    decode_as: list[int]
    since: int | None
    until: int | None
    conversations: bool = False
    messages: bool = False
    body_limit: int = 0
    tls_keylog: str = ""


class ShardTotals(msgspec.Struct):
    """What one process found in all."""

    captures: list[CaptureStats]
    found: RunTotals


class ShardOutput(msgspec.Struct):
    """What one chunk gave, or the end (`totals`), or why it ended early (`problem`)."""

    rows: list[ShardRow] = []
    findings: list[ShardFinding] = []
    conversations: list[ConversationRecord] = []
    messages: list[tuple[int, list[MessageRecord]]] = []
    """place in `rows` of an exchange, and its messages"""
    bytes_read: int = 0
    begun: list[CaptureStats] = []
    """once the time of the first packet is known, the captures by then"""
    totals: ShardTotals | None = None
    problem: list[str] | None = None
    """path, reason and hint of a `CaptureError`"""


class SharedDecode(Decode):
    """A run of which the rows are decoded by several processes; all else is as in `Decode`."""

    def __init__(self, sources: Sequence[str], options: DecodeOptions, jobs: int) -> None:
        super().__init__(sources, options)
        self.jobs = min(jobs, MAX_JOBS)
        self._ended: list[ConversationRecord] = []

    def records(self) -> Iterator[list[ExchangeRecord]]:
        """Exchanges as rows, in the order of one process."""
        processes = [_start(self, shard) for shard in range(self.jobs)]
        try:
            while True:
                messages = [_receive(process) for process in processes]
                for message in messages:
                    if message.problem is not None:
                        _raise(message.problem)
                self._note(messages)
                if messages[0].totals is not None:
                    return
                rows = merge(*(message.rows for message in messages), key=itemgetter(0, 1))
                batch = [row[2] for row in rows]
                self._carried += _carried_in(messages, batch)
                yield batch
        finally:
            for process in processes:
                _end(process)

    def take_conversations(self) -> list[ConversationRecord]:
        """As in one process."""
        taken, self._ended = self._ended, []
        return taken

    def _note(self, messages: Sequence[ShardOutput]) -> None:
        """Take over what the processes have told beside the rows."""
        self.read_before = messages[0].bytes_read
        if messages[0].begun:
            self.stats.captures = messages[0].begun
        self.add_experts([expert_of(one) for message in messages for one in message.findings])
        ended = [row for message in messages for row in message.conversations]
        self._ended += sorted(ended, key=attrgetter("conversation"))
        totals = [message.totals for message in messages if message.totals is not None]
        if not totals:
            return
        self.stats.captures = totals[0].captures
        set_sums(self.stats, [one.found for one in totals])


def _carried_in(outputs: Sequence[ShardOutput], batch: Sequence[ExchangeRecord]) -> list[Carried]:
    """Return the messages of all processes, in the order of their exchanges in `batch`."""
    of_row = {
        id(output.rows[place][2]): rows for output in outputs for place, rows in output.messages
    }
    return [Carried(row, of_row[id(row)]) for row in batch if id(row) in of_row]


def decode_of(
    sources: Sequence[str | Source], options: DecodeOptions | None = None, jobs: int = 1
) -> Decode:
    """Return a run by as many processes as asked for; one where the captures can be read
    only once.
    """
    options = options or DecodeOptions()
    files = [one for one in sources if isinstance(one, str) and one != STDIN]
    if jobs > 1 and not options.follow and len(files) == len(sources):
        return SharedDecode(files, options, jobs)
    return Decode(sources, options)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _start(decode: SharedDecode, shard: int) -> subprocess.Popen[bytes]:
    options = decode.options
    task = ShardTask(
        decode.sources,
        shard,
        decode.jobs,
        sorted(options.decode_as),
        options.since,
        options.until,
        options.conversations,
        options.messages,
        options.body_limit,
        options.tls_keylog,
    )
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path))
    process = subprocess.Popen(
        # -P: no module comes from the folder that somebody works in
        [sys.executable, "-P", "-m", "dissectors.decode.shards"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("RMQTOOL_DEBUG") else subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(task))
    process.stdin.close()
    return process


_message_decoder = msgspec.msgpack.Decoder(ShardOutput)


def _receive(process: subprocess.Popen[bytes]) -> ShardOutput:
    assert process.stdout is not None
    head = process.stdout.read(4)
    size = int.from_bytes(head, "big")
    data = process.stdout.read(size) if len(head) == 4 else b""
    if len(head) < 4 or len(data) < size:
        status = process.wait()
        raise RuntimeError(f"a decoding process ended early, exit status {status}")
    return _message_decoder.decode(data)


def _raise(problem: list[str]) -> None:
    path, reason, hint = problem
    raise CaptureError(path, reason, 0, hint)


def expert_of(finding: ShardFinding) -> ExpertInfo:
    """Return a finding as it was sent, as a value again."""
    name, detail, ts, packet, conversation, offset = finding
    return ExpertInfo(ExpertKind[name], detail, ts, packet, conversation, offset)


def run(task: ShardTask, out: IO[bytes]) -> None:
    """Decode one shard and write its messages."""
    options = DecodeOptions(
        decode_as=frozenset(task.decode_as),
        since=task.since,
        until=task.until,
        shard=task.shard,
        shards=task.shards,
        conversations=task.conversations,
        messages=task.messages,
        body_limit=task.body_limit,
        tls_keylog=task.tls_keylog,
    )
    decode = Decode(task.sources, options)
    is_begun = False
    try:
        for rows in decode.ordered_records():
            begun = decode.stats.captures if not is_begun and decode.stats.first_time else []
            is_begun = is_begun or bool(begun)
            findings = [
                (info.kind.name, *info[1:])
                for info in decode.take_experts()
                if task.shard == 0 or info.conversation >= 0
            ]
            ended = decode.take_conversations()
            messages = _places_of(decode.take_messages(), rows)
            _send(out, ShardOutput(rows, findings, ended, messages, decode.bytes_read, begun))
    except CaptureError as error:
        _send(out, ShardOutput(problem=[error.path, error.reason, error.hint]))
        return
    totals = ShardTotals(decode.stats.captures, totals_of(decode.stats))
    _send(out, ShardOutput(bytes_read=decode.bytes_read, totals=totals))


def _places_of(
    carried: Sequence[Carried], rows: Sequence[ShardRow]
) -> list[tuple[int, list[MessageRecord]]]:
    """Return messages with the place of their exchange among the rows; others are left out."""
    places = {id(row[2]): place for place, row in enumerate(rows)} if carried else {}
    return [
        (places[id(exchange)], messages) for exchange, messages in carried if id(exchange) in places
    ]


def _send(out: IO[bytes], message: ShardOutput) -> None:
    data = msgspec.msgpack.encode(message)
    out.write(len(data).to_bytes(4, "big"))
    out.write(data)
    out.flush()


def main() -> None:
    """Entry of a decoding process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is answered by the one that started us
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=ShardTask)
    run(task, sys.stdout.buffer)


if __name__ == "__main__":
    main()
