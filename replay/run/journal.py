"""The journal of a replay: a folder with what was sent, the outcomes, and what is left.

Files (JSON lines, except the first): ``run.json`` (sources and options), ``steps.jsonl`` (a row
``begin`` before each send and a row ``outcome`` after it), ``attempts.jsonl`` (every attempt as an
exchange record, for `rmqtool report`), ``skipped.jsonl`` (sends that were not replayed, and why).

A ``begin`` is written before the message can leave, so the journal of a killed process has every
message that may have left without a known outcome. A truncated last line is dropped.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from dissectors.foreign import Unreadable, json_of
from dissectors.rows.bounded_lines import BoundedLines, LineTooLong
from dissectors.rows.record import ExchangeRecord
from dissectors.rows.tables import encodable_value, jsonl_of
from dissectors.temporary import PRIVATE, create_new, forget, remove, temporary_beside

from ..captured.inputs import is_read_once
from .journal_rows import (
    ATTEMPTS,
    FORMAT,
    RUN,
    SKIPPED,
    STEPS,
    Begin,
    JournalError,
    JournalRefused,
    OutcomeEntry,
    Result,
    Run,
    SkippedRow,
    SourceEntry,
    Sync,
)

_Row = TypeVar("_Row")
_ENCODER: Final = msgspec.json.Encoder()
_READ: Final = 1 << 20
_RESERVE: Final = ".reserve"
"""file that keeps space for outcomes, while the journal is open"""
_OUTCOME_BYTES: Final = 2048
"""bytes that a row with an outcome and its attempt need, with ids and remarks of usual length"""
_MAX_RESERVED: Final = 8192
"""sends that space is kept for, at most"""
_MAX_RUN: Final = 16 << 20
"""bytes of a ``run.json``: a thousand captures need some hundred KiB"""


class JournalWriter:
    """Writes rows; `flush` returns after they are written to the file.

    A failed write leaves complete lines: partial data is truncated. Space is reserved for the
    outcomes of the sends in flight.
    """

    def __init__(
        self,
        folder: Path,
        sync: Sync = Sync.second,
        in_flight: int = 0,
        shared: bool = False,
    ) -> None:
        """Open the files of a journal that `create_journal` made, to append rows.

        Space for the outcomes of `in_flight` sends is reserved. `shared`: other processes write to
        the same journal; each writes complete rows under a lock. Raises JournalError if there is no
        space, or if a file is not the journal's own.
        """
        self.folder = folder
        self.begun = 0
        """rows `begin` that were written by this run"""
        self.ended = 0
        """rows `outcome` that were written by this run"""
        self._sync = sync
        self._shared = shared
        self._files = {name: _open(folder / name, shared) for name in (ATTEMPTS, SKIPPED, STEPS)}
        self._waiting: dict[str, list[bytes]] = {name: [] for name in self._files}
        self._begins: list[int] = []
        self._records: list[ExchangeRecord] = []
        self._synced = 0.0
        self._reserved = bool(in_flight)
        self._reserve(min(in_flight, _MAX_RESERVED) * _OUTCOME_BYTES)

    def write(self, row: Begin | OutcomeEntry) -> None:
        """Buffer the row of a step for the next `flush`."""
        lines = self._waiting[STEPS]
        if isinstance(row, Begin):
            self._begins.append(len(lines))
        lines.append(_line_of(row))

    def write_skipped(self, row: SkippedRow) -> None:
        """Buffer a row of a skipped send."""
        self._waiting[SKIPPED].append(_line_of(row))

    def write_attempt(self, record: ExchangeRecord) -> None:
        """Buffer an attempt as a row of a decoded log."""
        self._records.append(record)

    def flush(self, now: float = 0.0) -> None:
        """Write all rows to the files; `now` in seconds decides whether to sync them.

        Raises JournalError if a write fails. Rows `begin` are then dropped, and their steps must
        not be sent. All others are kept for the next call.
        """
        if self._records:
            self._waiting[ATTEMPTS].append(jsonl_of(self._records))
            self._records = []
        try:
            for name in (ATTEMPTS, SKIPPED, STEPS):  # steps last: a begin is written, or not sent
                self._write_waiting(name)
        except JournalError:
            self._release()
            for place in reversed(self._begins):  # from the end, so that the places stay right
                del self._waiting[STEPS][place]
            self._begins.clear()
            # into the space just released; outcomes first, because a resume needs them
            for name in (STEPS, ATTEMPTS, SKIPPED):
                with suppress(JournalError):
                    self._write_waiting(name)
            raise
        due = self._sync is Sync.second and now - self._synced >= 1.0
        if due or self._sync is Sync.always:
            self._synced = now
            with _write_errors(self.folder / STEPS):
                os.fsync(self._files[STEPS])

    def _write_waiting(self, name: str) -> None:
        lines = self._waiting[name]
        if not lines:
            return
        self._write(name, b"".join(lines))
        if name == STEPS:
            self.begun += len(self._begins)
            self.ended += len(lines) - len(self._begins)
            self._begins.clear()
        lines.clear()

    def _reserve(self, size: int) -> None:
        if size:
            path = self.folder / _RESERVE
            with _write_errors(path):
                number = _open_own(path, os.O_RDWR | os.O_CREAT)
                try:
                    os.posix_fallocate(number, 0, size)  # unlike truncate, it takes the space
                except OSError:
                    self._release()
                    raise
                finally:
                    os.close(number)

    def _release(self) -> None:
        """Release the reserved space."""
        with suppress(OSError):
            (self.folder / _RESERVE).unlink(missing_ok=True)

    def _write(self, name: str, data: bytes) -> None:
        """Append complete lines to a file, all or none."""
        number = self._files[name]
        with _write_errors(self.folder / name), _locked(number, self._shared):
            size = os.fstat(number).st_size
            try:
                _write_all(number, data)
            except OSError:
                with suppress(OSError):
                    # a partial line would join the next one, and both be unreadable
                    os.ftruncate(number, size)
                raise

    def close(self) -> None:
        """Write and sync buffered rows, and close the files; JournalError as `flush`."""
        files, problem = self._files, None
        try:
            self.flush()
        except JournalError as error:
            problem = error
        self._files = {}
        if self._reserved:
            self._release()
        for name, number in files.items():
            try:
                if self._sync is not Sync.never and problem is None:
                    with _write_errors(self.folder / name):
                        os.fsync(number)
            except JournalError as error:
                problem = error
            finally:
                os.close(number)
        if problem is not None:
            raise problem


def create_journal(folder: Path, run: Run) -> None:
    """Create the folder and its ``run.json``; JournalError if that fails."""
    try:
        text = msgspec.json.format(_ENCODER.encode(run), indent=1) + b"\n"
    except UnicodeEncodeError:
        raise JournalRefused("the name of an input is not UTF-8; rename it") from None
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        if any(folder.iterdir()):
            hint = f"use --resume {folder} if it is a journal, or name another folder"
            raise JournalRefused(f"{folder} is not empty; {hint}")
        with _write_errors(folder / RUN):
            temporary = temporary_beside(folder / RUN)
            try:
                with create_new(temporary, PRIVATE) as file:
                    file.write(text)
                temporary.replace(folder / RUN)
                forget(temporary)
            except OSError:
                with suppress(OSError):
                    remove(temporary)
                raise
    except (FileExistsError, NotADirectoryError):
        raise JournalRefused(f"{folder} is a file, a journal is a folder") from None


@contextmanager
def locked_journal(folder: Path) -> Iterator[None]:
    """Keep other runs out of a journal, which would send its steps twice; JournalError if one has
    it.

    Forked processes share the lock.
    """
    with (folder / RUN).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JournalError(f"{folder} is in use by a run that has not ended") from None
        except OSError:  # a file system without locks
            pass
        yield


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    """Convert an OSError of a write to a JournalError that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise JournalError(f"the journal {path} cannot be written: {reason}") from None


def read_run(folder: Path) -> Run:
    """Return the run of a journal; JournalError if the folder is not a journal."""
    path = folder / RUN
    if not path.is_file():
        raise JournalError(f"{folder} is not a journal: there is no {RUN} in it")
    try:
        with path.open("rb") as file:
            run = json_of(msgspec.json.Decoder(Run), file.read(_MAX_RUN))
    except Unreadable as error:
        raise JournalError(f"{path}: {error}") from None
    if run.format != FORMAT or run.version != 1:
        raise JournalError(f"{folder} was written by another version of rmqtool")
    return run


def read_steps(folder: Path, begin: int = 0) -> Iterator[Begin | OutcomeEntry]:
    """Yield the rows of the steps in written order, without a truncated last line.

    `begin`: byte offset of the first row.
    """
    return _rows_of(folder / STEPS, msgspec.json.Decoder(Begin | OutcomeEntry), begin)


def read_skipped(folder: Path) -> Iterator[SkippedRow]:
    """Yield the sends that were not replayed."""
    return _rows_of(folder / SKIPPED, msgspec.json.Decoder(SkippedRow))


def count_skipped(folder: Path) -> int:
    """Return the number of sends that were not replayed."""
    return sum(1 for _ in _lines_of(folder / SKIPPED, 0))


def _rows_of(path: Path, decoder: msgspec.json.Decoder[_Row], begin: int = 0) -> Iterator[_Row]:
    """Decode the lines of a file; JournalError names an invalid line."""
    for number, line in enumerate(_lines_of(path, begin), 1):
        try:
            yield json_of(decoder, line)
        except Unreadable as error:
            raise JournalError(f"{path}, line {number}: {error}") from None


def _lines_of(path: Path, begin: int) -> Iterator[bytes]:
    """Yield the complete lines of a file."""
    lines = BoundedLines()
    try:
        number = _open_own(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    with os.fdopen(number, "rb", buffering=0) as file:
        file.seek(begin)
        while chunk := file.read(_READ):
            try:
                yield from lines.receive(chunk)
            except LineTooLong as problem:
                raise JournalError(f"{path}: {problem}") from None


def _open_own(path: Path, flags: int) -> int:
    """Open a regular file without other links; JournalError for anything else."""
    try:
        # A journal may be untrusted: a link in it could make us change another file. Without
        # O_NONBLOCK, a pipe of that name would wait for its other end
        number = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise JournalError(f"{path} is not a file of its own") from None
        raise
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(number)
        raise JournalError(f"{path} is not a file of its own")
    return number


def _open(path: Path, shared: bool) -> int:
    """Open a file for appending; truncate an incomplete last line."""
    number = _open_own(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    with _locked(number, shared):
        size = os.fstat(number).st_size
        at = size
        # backwards: the last complete line is near the end of a file that may be large
        while at > 0:
            start = max(0, at - _READ)
            line_end = os.pread(number, at - start, start).rfind(b"\n")
            if line_end >= 0:
                at = start + line_end + 1
                break
            at = start
        if at != size:
            os.ftruncate(number, at)
    return number


@contextmanager
def _locked(number: int, shared: bool) -> Iterator[None]:
    """Lock a shared file against other processes."""
    if not shared:
        yield
        return
    fcntl.flock(number, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(number, fcntl.LOCK_UN)


def _write_all(number: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(number, view) :]


def _line_of(row: Begin | OutcomeEntry | SkippedRow) -> bytes:
    try:
        return _ENCODER.encode(row) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which a JSON header can contain
        return _ENCODER.encode(encodable_value(msgspec.to_builtins(row))) + b"\n"


class Progressed:
    """The steps of a journal that are done, and those that may have left without a known
    outcome.
    """

    def __init__(self) -> None:
        self.open: dict[int, list[str]] = {}
        """begun without an outcome: step → UNIQ_KEYs; sent again, they may be twice"""
        self.failed: dict[int, bool] = {}
        """not stored: step → whether it may be stored anyway; these are sent again"""
        self.skipped = 0
        """rows of skipped sends that the journal has; a resumed plan begins with the same ones"""
        self._low = 0
        self._above: set[int] = set()

    def receive(self, rows: Iterable[Begin | OutcomeEntry]) -> Iterator[OutcomeEntry]:
        """Read rows; yield the outcomes of completed steps, for the comparison."""
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
        """Return whether a step is complete."""
        ended = step < self._low or step in self._above
        return ended and step not in self.failed and step not in self.open

    @property
    def done(self) -> int:
        """Number of completed steps."""
        return self._low + len(self._above) - len(self.failed)

    def _note_ended(self, step: int) -> None:
        if step < self._low:
            return
        self._above.add(step)
        # memory depends on the gaps between ended steps, not on their number
        while self._low in self._above:
            self._above.remove(self._low)
            self._low += 1


def sources_of(names: Sequence[str]) -> list[SourceEntry]:
    """Return the source files of a run, so a resume can check that they are unchanged."""
    sources = []
    for name in names:
        if is_read_once(name):
            sources.append(SourceEntry(name, 0, ""))
            continue
        with Path(name).open("rb") as file:
            digest = hashlib.blake2b(file.read(_READ), digest_size=16).hexdigest()
        sources.append(SourceEntry(name, os.stat(name).st_size, digest))
    return sources
