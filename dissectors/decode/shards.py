"""Decoding on several cores: every process reads all packets and decodes its share of the
conversations.

The processes go through the captures in the same chunks, and each sends one message a chunk, so
their results are put together chunk by chunk, in the order one process would have given them.
`python -m dissectors.shards` is such a process; it is started by `SharedDecode`, gets its task
as JSON on standard input and writes messages to standard output.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge
from operator import attrgetter, itemgetter
from typing import IO

import msgspec
from msgspec.structs import asdict

from .conversation_record import ConversationRecord
from .expert import ExpertInfo, ExpertKind
from .pipeline import CaptureStats, Decode, DecodeOptions
from .record import ExchangeRecord
from .replication import Replication, first_of
from .tcp.source import CaptureError

MAX_JOBS = 64
"""processes at most: each reads all packets, so more of them gain nothing"""

Row = tuple[int, int, ExchangeRecord]
Finding = tuple[str, str, int, int, int, int]


class Task(msgspec.Struct):
    """What one process has to do."""

    sources: list[str]
    shard: int
    shards: int
    decode_as: list[int]
    since: int | None
    until: int | None
    conversations: bool = False


class Capture(msgspec.Struct):
    """`CaptureStats`, as it is sent."""

    name: str
    format: str
    compression: str | None
    packets: int
    bytes: int
    first_ts: int | None
    last_ts: int | None
    skipped: dict[str, int]


class Totals(msgspec.Struct):
    """`DecodeStats` of one process, as it is sent."""

    captures: list[Capture]
    conversations: int
    rocketmq_conversations: int
    not_decoded: dict[str, int]
    replication_conversations: int
    replications: list[Replication]
    frames: int
    commands: int
    gaps: int
    gap_bytes: int


class Message(msgspec.Struct):
    """What one chunk gave, or the end (`totals`), or why it ended early (`problem`)."""

    rows: list[Row] = []
    findings: list[Finding] = []
    conversations: list[ConversationRecord] = []
    bytes_read: int = 0
    totals: Totals | None = None
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
                yield [row[2] for row in rows]
        finally:
            for process in processes:
                _end(process)

    def take_conversations(self) -> list[ConversationRecord]:
        """As in one process."""
        taken, self._ended = self._ended, []
        return taken

    def _note(self, messages: Sequence[Message]) -> None:
        """Takes over what the processes have told beside the rows."""
        self.read_before = messages[0].bytes_read
        self.add_experts([expert_of(one) for message in messages for one in message.findings])
        ended = [row for message in messages for row in message.conversations]
        self._ended += sorted(ended, key=attrgetter("conversation"))
        totals = [message.totals for message in messages if message.totals is not None]
        if not totals:
            return
        stats = self.stats
        stats.captures = [CaptureStats(**asdict(one)) for one in totals[0].captures]
        stats.conversations = totals[0].conversations
        not_decoded: Counter[str] = Counter()
        for one in totals:
            stats.rocketmq_conversations += one.rocketmq_conversations
            stats.replication_conversations += one.replication_conversations
            stats.frames += one.frames
            stats.commands += one.commands
            stats.gaps += one.gaps
            stats.gap_bytes += one.gap_bytes
            not_decoded.update(one.not_decoded)
        stats.not_decoded = dict(sorted(not_decoded.items()))
        stats.replications = first_of([found for one in totals for found in one.replications])


def decode_of(
    sources: Sequence[str], options: DecodeOptions | None = None, jobs: int = 1
) -> Decode:
    """A run by as many processes as asked for; one where the captures can be read only once."""
    options = options or DecodeOptions()
    if jobs > 1 and not options.follow and "-" not in sources:
        return SharedDecode(sources, options, jobs)
    return Decode(sources, options)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def _start(decode: SharedDecode, shard: int) -> subprocess.Popen[bytes]:
    options = decode.options
    task = Task(
        decode.sources,
        shard,
        decode.jobs,
        sorted(options.decode_as),
        options.since,
        options.until,
        options.conversations,
    )
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path))
    process = subprocess.Popen(
        [sys.executable, "-m", "dissectors.shards"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if os.environ.get("RMQTOOL_DEBUG") else subprocess.DEVNULL,
        env=environment,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(task))
    process.stdin.close()
    return process


_message_decoder = msgspec.msgpack.Decoder(Message)


def _receive(process: subprocess.Popen[bytes]) -> Message:
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


def expert_of(finding: Finding) -> ExpertInfo:
    """A finding as it was sent, as a value again."""
    name, detail, ts, packet, conversation, offset = finding
    return ExpertInfo(ExpertKind[name], detail, ts, packet, conversation, offset)


def run(task: Task, out: IO[bytes]) -> None:
    """Decodes one shard and writes its messages."""
    options = DecodeOptions(
        decode_as=frozenset(task.decode_as),
        since=task.since,
        until=task.until,
        shard=task.shard,
        shards=task.shards,
        conversations=task.conversations,
    )
    decode = Decode(task.sources, options)
    try:
        for rows in decode.ordered_records():
            findings = [
                (info.kind.name, *info[1:])
                for info in decode.take_experts()
                if task.shard == 0 or info.conversation >= 0
            ]
            ended = decode.take_conversations()
            _send(out, Message(rows, findings, ended, decode.bytes_read))
    except CaptureError as error:
        _send(out, Message(problem=[error.path, error.reason, error.hint]))
        return
    _send(out, Message(bytes_read=decode.bytes_read, totals=_totals_of(decode)))


def _send(out: IO[bytes], message: Message) -> None:
    data = msgspec.msgpack.encode(message)
    out.write(len(data).to_bytes(4, "big"))
    out.write(data)
    out.flush()


def _totals_of(decode: Decode) -> Totals:
    stats = decode.stats
    captures = [
        Capture(
            one.name,
            one.format,
            one.compression,
            one.packets,
            one.bytes,
            one.first_ts,
            one.last_ts,
            one.skipped,
        )
        for one in stats.captures
    ]
    return Totals(
        captures,
        stats.conversations,
        stats.rocketmq_conversations,
        stats.not_decoded,
        stats.replication_conversations,
        stats.replications,
        stats.frames,
        stats.commands,
        stats.gaps,
        stats.gap_bytes,
    )


def main() -> None:
    """Entry of a decoding process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is answered by the one that started us
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=Task)
    run(task, sys.stdout.buffer)


if __name__ == "__main__":
    main()
