"""Messages of a capture as files: one body per file, and an index.

Rules: file names are numbers, never text from the network; bodies are decompressed up to a limit.
The folder gets its name only when complete, and replaces only an earlier export, and only on
request (`owned_folder`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from dissectors.budget import Budget
from dissectors.decode.command_fields import command_fields
from dissectors.decode.command_row import body_of, kind_of, name_of, request_name_of
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.owned_folder import OwnedFolder
from dissectors.quantities import counted
from dissectors.remoting.headers import mask_secret
from dissectors.remoting.messages.message import StoredMessage
from dissectors.tcp.capture import capture_index, packet_number
from dissectors.times import text_of_time

from ..ui.figures import size
from ..ui.json_text import encoded_json
from ..ui.option_values import usage_error
from ..ui.output import naming
from .options import DecodeRequest
from .row_run import RowSource, compiled
from .sinks import Sink, with_cut

INDEX = "index.jsonl"
KIND = "export of messages"
MOST_MESSAGES = 100_000
"""default limit of exported messages"""
_PER_FOLDER = 1000
"""bodies in one folder: more are slow to list"""


class MessageSeen(NamedTuple):
    """An observed message."""

    seen: CommandSeen
    """command with the message"""
    place: int
    """index among the messages of the command"""
    message: StoredMessage


class IndexRow(msgspec.Struct):
    """A row of the index."""

    file: str
    bytes: int
    capture: str
    packet: int
    time: str
    conversation: int
    src: str
    dst: str
    command: str
    kind: str
    topic: str
    queue_id: int
    queue_offset: int
    unique_key: str | None
    keys: list[str]
    tags: str | None
    properties: dict[str, str]
    compression: str | None
    problem: str | None


def message_rows(request: DecodeRequest, decode: Decode) -> RowSource[MessageSeen]:
    """Return the messages of commands; filters test the commands."""
    if request.output == "-":
        raise usage_error("--messages", "writes files: name a folder with -o")
    test = compiled(request, lambda: command_fields(decode.sources))
    budget = Budget(request.max_output)

    def batches() -> Iterator[Sequence[MessageSeen]]:
        for batch in decode.commands():
            for seen in batch:
                if seen.pdu.body and (test is None or test(seen)):
                    budget.earn(seen.pdu.header_length + len(seen.pdu.body))
                    messages = body_of(seen, budget).messages
                    yield [MessageSeen(seen, at, message) for at, message in enumerate(messages)]
            yield []  # the end of a chunk: progress and findings are shown

    return RowSource(
        batches,
        None,
        lambda row: row.seen.pdu.ts,
        lambda: MessagesSink(request, decode.sources, budget),
        "messages",
    )


class MessagesSink(Sink[MessageSeen]):
    """Writes bodies to files in a folder."""

    def __init__(self, request: DecodeRequest, names: Sequence[str], budget: Budget) -> None:
        self._budget = budget
        self._folder = Path(request.output)
        with naming(request.output):
            self._owned = OwnedFolder(self._folder, KIND, request.force, names, private=True)
        self._names = names
        self._most = MOST_MESSAGES if request.limit is None else request.limit
        self._left_out = 0
        self._number = 0
        self._bytes = 0
        self._temporary = self._owned.path
        with naming(request.output):
            self._index: IO[bytes] = (self._temporary / INDEX).open("wb")

    def write(self, rows: Sequence[MessageSeen]) -> None:
        with naming(str(self._folder)):
            for row in rows:
                if self._number >= self._most:
                    self._left_out += 1
                else:
                    self._write(row)

    def _write(self, row: MessageSeen) -> None:
        self._number += 1
        folder = f"{(self._number - 1) // _PER_FOLDER:05d}"
        name = f"{folder}/{self._number:08d}.body"
        room = self._budget.room
        body = row.message.decompressed(budget=self._budget)
        data = body.data
        if (self._number - 1) % _PER_FOLDER == 0:
            (self._temporary / folder).mkdir()
        (self._temporary / name).write_bytes(data)
        self._bytes += len(data)
        problem = body.problem
        # As long as the rest of the budget: the run's limit cut it, not the limit of one body.
        if body.truncated and len(data) == room:
            pdu = row.seen.pdu
            self._budget.end(f"packet {packet_number(pdu.packet)}, offset {pdu.offset}")
            problem = "the limit for decompressed bodies was reached"
        if problem is None and body.truncated:
            problem = "the body exceeds the decompression limit"
        if problem is None and (row.message.missing or row.seen.pdu.missing):
            problem = "part of the message was not captured"
        index_row = index_row_of(row, name, len(data), problem, self._names)
        self._index.write(encoded_json(index_row) + b"\n")

    def finish(self, decode: Decode) -> str:  # noqa: ARG002
        with naming(str(self._folder)):
            self._index.close()
            self._owned.finish()
        text = f"{counted(self._number, 'message')} → {self._folder}/ ({size(self._bytes)})"
        if self._left_out:
            text += f"; {counted(self._left_out, 'message')} more; raise --limit"
        return with_cut(text, self._budget)

    def discard(self) -> None:
        with suppress(OSError):  # closing also fails after a failed write
            self._index.close()
        self._owned.discard()


def index_row_of(
    row: MessageSeen, file: str, length: int, problem: str | None, names: Sequence[str]
) -> IndexRow:
    """Return the row of the index for a message in `file`."""
    pdu, message = row.seen.pdu, row.message
    properties = {name: mask_secret(name, text) for name, text in message.properties.items()}
    return IndexRow(
        file=file,
        bytes=length,
        capture=names[capture_index(pdu.packet)],
        packet=packet_number(pdu.packet),
        time=text_of_time(pdu.ts),
        conversation=pdu.conversation,
        src=pdu.src,
        dst=pdu.dst,
        command=request_name_of(row.seen) or name_of(row.seen),
        kind=kind_of(pdu),
        topic=message.topic,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        unique_key=message.unique_key,
        keys=list(message.keys),
        tags=message.tags,
        properties=properties,
        compression=message.compression,
        problem=problem,
    )
