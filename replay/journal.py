"""The journal of a replay: a folder that says what was sent, how it came out, and what is left.

Files, each of JSON lines but the first: ``run.json`` (sources and options), ``steps.jsonl`` (a row
``begin`` before each send and a row ``outcome`` after it), ``attempts.jsonl`` (every attempt as an
exchange record, for `rmqtool report`), ``skipped.jsonl`` (sends that were not replayed, and why).

Rules: a ``begin`` is written to the system before the message can leave, so whatever kills the
process, the journal names every message that may have left without a known outcome. A last line
that was cut is dropped. `Sync` says when the system is told to write to the disk, which matters
only where the machine itself goes down.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from dissectors.record import ExchangeRecord
from dissectors.tables import encodable_value, jsonl_of

RUN: Final = "run.json"
STEPS: Final = "steps.jsonl"
ATTEMPTS: Final = "attempts.jsonl"
SKIPPED: Final = "skipped.jsonl"
FORMAT: Final = "rmqtool-replay-journal"
_ENCODER: Final = msgspec.json.Encoder()
_READ: Final = 1 << 20


class JournalError(Exception):
    """A folder cannot be a journal or is not one; the text says why and what to do."""


class Sync(StrEnum):
    """When rows are forced to the disk."""

    never = "never"
    second = "second"
    always = "always"


class Result(StrEnum):
    """What became of a step."""

    stored = "stored"
    sent = "sent"
    failed = "failed"
    unknown = "unknown"


class Source(msgspec.Struct):
    """A file that was replayed."""

    name: str
    """as the user named it"""
    bytes: int
    """its size when the run began"""
    digest: str
    """of its first MiB"""


class Run(msgspec.Struct, kw_only=True):
    """What a run is; the content of ``run.json``."""

    format: str = FORMAT
    """always `rmqtool-replay-journal`"""
    version: int = 1
    """version of the rows"""
    run: str
    """name of the run, the value of the property that marks its messages"""
    created: str
    """when it began"""
    rmqtool: str
    """version of rmqtool"""
    sources: list[Source]
    """what is replayed"""
    options: dict[str, object]
    """options that the plan depends on, as on the command line"""
    target: str
    """where it was sent"""


class Begin(msgspec.Struct, tag_field="kind", tag="begin", gc=False):
    """A step is about to be sent."""

    step: int
    """its number in the plan"""
    unique_keys: list[str]
    """UNIQ_KEY of its messages, as they are sent"""
    again: bool = False
    """whether it was begun before without a known outcome: from here on it may be twice"""


class Outcome(msgspec.Struct, tag_field="kind", tag="outcome", gc=False, kw_only=True):
    """What became of a step, beside what the capture says."""

    step: int
    """its number in the plan"""
    capture: str
    """where it was captured"""
    packet: int
    """packet of the request there"""
    conversation: int
    """TCP connection there"""
    time: int
    """when it was captured, ns since the epoch"""
    topic: str
    """topic that it was sent to"""
    unique_keys: list[str]
    """UNIQ_KEY of its messages, as they were sent"""
    captured_key: str | None
    """UNIQ_KEY in the capture, of the first message"""
    messages: int
    """how many messages the step has"""
    mode: str
    """sync, async or oneway"""
    result: Result
    """stored; sent (oneway); failed (a broker or the client refused it); unknown (no answer)"""
    status: str | None = None
    """SendStatus where it is stored"""
    code: int | None = None
    """response code of the last attempt"""
    reason: str | None = None
    """remark or error where it is not stored"""
    broker: str | None = None
    """broker of the last attempt"""
    address: str | None = None
    """its address"""
    queue_id: int | None = None
    """queue of the last attempt"""
    queue_offset: int | None = None
    """offset in it"""
    latency_us: int | None = None
    """of the last attempt, µs"""
    late_us: int = 0
    """how long after it was due it was sent, µs"""
    attempts: int = 1
    """attempts of this run"""
    maybe_twice: bool = False
    """whether an earlier attempt may have been stored too"""
    state: str | None = None
    """outcome of the transaction"""
    captured_result: Result = Result.unknown
    """what became of it in the capture"""
    captured_code: int | None = None
    """response code there, of the last attempt"""
    captured_latency_us: int | None = None
    """latency there"""
    captured_attempts: int = 1
    """attempts there"""
    captured_broker: str = ""
    """broker there, by name or address"""
    differences: list[str] = []
    """what came out otherwise: result, code, queue, attempts"""


class SkippedRow(msgspec.Struct, tag_field="kind", tag="skipped", gc=False):
    """A captured send that was not replayed."""

    capture: str
    packet: int
    why: str
    """name of the reason"""
    detail: str
    topic: str
    unique_key: str | None


class JournalWriter:
    """Writes rows; those of a call of `flush` are with the system when it returns."""

    def __init__(self, folder: Path, sync: Sync = Sync.second) -> None:
        """Opens the files of a journal that `create_journal` made, to add rows to them."""
        self.folder = folder
        """where it is"""
        self._sync = sync
        self._files = {name: _open(folder / name) for name in (STEPS, ATTEMPTS, SKIPPED)}
        self._waiting: dict[str, list[bytes]] = {name: [] for name in self._files}
        self._records: list[ExchangeRecord] = []
        self._synced = 0.0

    def write(self, row: Begin | Outcome) -> None:
        """A row of a step; it is written with the next `flush`."""
        self._waiting[STEPS].append(_line_of(row))

    def write_skipped(self, row: SkippedRow) -> None:
        """A row of what is not replayed."""
        self._waiting[SKIPPED].append(_line_of(row))

    def write_attempt(self, record: ExchangeRecord) -> None:
        """An attempt as the row of a decoded log."""
        self._records.append(record)

    def flush(self, now: float = 0.0) -> None:
        """Gives all rows to the system; `now` in seconds says when they were last on the disk."""
        if self._records:
            self._waiting[ATTEMPTS].append(jsonl_of(self._records))
            self._records = []
        for name, lines in self._waiting.items():
            if lines:
                _write_all(self._files[name], b"".join(lines))
                lines.clear()
        due = self._sync is Sync.second and now - self._synced >= 1.0
        if due or self._sync is Sync.always:
            self._synced = now
            os.fsync(self._files[STEPS])

    def close(self) -> None:
        """Writes what waits, to the disk too, and closes the files."""
        self.flush()
        for number in self._files.values():
            if self._sync is not Sync.never:
                os.fsync(number)
            os.close(number)
        self._files = {}


def create_journal(folder: Path, run: Run) -> None:
    """Makes the folder and its ``run.json``; JournalError where there is something already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            hint = "--resume goes on with a journal; else name another folder"
            raise JournalError(f"{folder} is not empty; {hint}")
        text = msgspec.json.format(_ENCODER.encode(run), indent=1) + b"\n"
        temporary = folder / f".{RUN}"
        temporary.write_bytes(text)
        temporary.replace(folder / RUN)
    except (FileExistsError, NotADirectoryError):
        raise JournalError(f"{folder} is a file, a journal is a folder") from None


def read_run(folder: Path) -> Run:
    """What a journal says of its run; JournalError where it is none."""
    try:
        run = msgspec.json.decode((folder / RUN).read_bytes(), type=Run)
    except FileNotFoundError:
        raise JournalError(f"{folder} is no journal: there is no {RUN} in it") from None
    except msgspec.DecodeError as error:
        raise JournalError(f"{folder / RUN}: {error}") from None
    if run.format != FORMAT or run.version != 1:
        raise JournalError(f"{folder} was written by another version of rmqtool")
    return run


def read_steps(folder: Path) -> Iterator[Begin | Outcome]:
    """The rows of the steps, in the order written; a last line that was cut is left out."""
    decoder = msgspec.json.Decoder(Begin | Outcome)
    for number, line in enumerate(_lines_of(folder / STEPS), 1):
        try:
            yield decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise JournalError(f"{folder / STEPS}, line {number}: {error}") from None


def read_skipped(folder: Path) -> Iterator[SkippedRow]:
    """The sends that were not replayed."""
    decoder = msgspec.json.Decoder(SkippedRow)
    for line in _lines_of(folder / SKIPPED):
        yield decoder.decode(line)


def _lines_of(path: Path) -> Iterator[bytes]:
    """The whole lines of a file."""
    rest = b""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return
    with file:
        while chunk := file.read(_READ):
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            yield from lines


def _open(path: Path) -> int:
    """Opens a file to add lines; a last line without its end is cut off."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    size = os.fstat(number).st_size
    at = size
    while at > 0:
        start = max(0, at - _READ)
        found = os.pread(number, at - start, start).rfind(b"\n")
        if found >= 0:
            at = start + found + 1
            break
        at = start
    if at != size:
        os.ftruncate(number, at)
    return number


def _write_all(number: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]


def _line_of(row: Begin | Outcome | SkippedRow) -> bytes:
    try:
        return _ENCODER.encode(row) + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair: a JSON header can bring one
        return _ENCODER.encode(encodable_value(msgspec.to_builtins(row))) + b"\n"


class Progressed:
    """Which steps of a journal are done, and which may have left without a known outcome."""

    def __init__(self) -> None:
        self.open: dict[int, list[str]] = {}
        """begun without an outcome: step → UNIQ_KEYs; sent again, they may be twice"""
        self.failed: dict[int, bool] = {}
        """not stored: step → whether it may be stored all the same; these are sent again"""
        self._low = 0
        self._above: set[int] = set()

    def receive(self, rows: Iterable[Begin | Outcome]) -> Iterator[Outcome]:
        """Reads rows; the outcomes of steps that are done come out, for the comparison."""
        for row in rows:
            step = row.step
            if isinstance(row, Begin):
                self.open[step] = row.unique_keys
                continue
            self.open.pop(step, None)
            if row.result in (Result.failed, Result.unknown):
                self.failed[step] = row.result is Result.unknown or row.maybe_twice
                self._note_ended(step)
                continue
            self.failed.pop(step, None)
            self._note_ended(step)
            yield row

    def is_done(self, step: int) -> bool:
        """Whether a step needs nothing more."""
        ended = step < self._low or step in self._above
        return ended and step not in self.failed and step not in self.open

    @property
    def done(self) -> int:
        """How many steps need nothing more."""
        return self._low + len(self._above) - len(self.failed)

    def _note_ended(self, step: int) -> None:
        if step < self._low:
            return
        self._above.add(step)
        while self._low in self._above:
            self._above.remove(self._low)
            self._low += 1


def sources_of(names: Sequence[str]) -> list[Source]:
    """The files of a run, so that a later one can see that they are the same."""
    import hashlib

    sources = []
    for name in names:
        if name == "-":
            sources.append(Source("-", 0, ""))
            continue
        with Path(name).open("rb") as file:
            digest = hashlib.blake2b(file.read(_READ), digest_size=16).hexdigest()
        sources.append(Source(name, os.stat(name).st_size, digest))
    return sources
