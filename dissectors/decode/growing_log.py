"""A decoded log by days or hours that runs append to atomically.

Rules: the manifest defines the contents of the log. An interrupted run leaves the log unchanged,
and the next run removes its leftovers. One run writes at a time. Connection numbers continue from
run to run. A capture is added only once. Folders of old days may be deleted.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from ..foreign import integer_of
from ..owned_folder import LOCK, lock_in
from ..temporary import PRIVATE, forget, mode_of, remove, temporary_in
from .decoded_log import (
    MANIFEST,
    CaptureEntry,
    DecodedLogError,
    LogRefused,
    Manifest,
    parts_there,
    read_manifest,
    write_manifest,
)
from .log_parts import CONVERSATIONS, EXCHANGES, FINDINGS, MESSAGES, PartEntry
from .partition import Partition
from .totals import set_sums

_TEMPORARY: Final = ".rmqtool-"
_PRIVATE_FOLDER: Final = 0o700
_MOST_CONVERSATIONS: Final = 1 << 62
_PART: Final = re.compile(r"part-(\d{5,})\.(?:parquet|jsonl)")
PARTS: Final = {
    EXCHANGES: "parts",
    MESSAGES: "message_parts",
    CONVERSATIONS: "conversation_parts",
    FINDINGS: "finding_parts",
}
"""table -> manifest member with its parts"""


class GrowingLog:
    """A log that a run appends to; locked until `finish` or `discard`."""

    def __init__(
        self, folder: Path, partition: Partition, form: str, messages: bool, inputs: Sequence[str]
    ) -> None:
        """`form` is the file format; `inputs` are the names of the input files.

        Raise DecodedLogError if the run must not append to `folder`, OSError if it cannot.
        """
        self._folder = folder
        self._partition = partition
        self._is_new = _is_to_be_made(folder)
        if self._is_new:
            folder.mkdir(_PRIVATE_FOLDER, exist_ok=True)
        lock = lock_in(folder)
        if lock is None:
            raise DecodedLogError(f"another run is adding to {folder}; wait until it ends")
        self._lock = lock
        try:
            # Only under the lock: another run may have replaced the manifest just before.
            self._former = self._taken_over(form, messages, inputs)
            for path in _left_behind(folder, self._former):
                remove(path)
            self.path = temporary_in(folder, _TEMPORARY)
            """temporary folder for new files"""
            self.path.mkdir(_PRIVATE_FOLDER)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def conversations(self) -> int:
        """Number of the first connection of the run."""
        return self._former.conversations if self._former is not None else 0

    def number(self, table: str) -> int:
        """Return the number of the run's first part of a table."""
        parts = getattr(self._former, PARTS[table]) if self._former is not None else ()
        # Not the number of parts: folders of old days may be gone.
        return max((_number_of(part) for part in parts), default=-1) + 1

    def finish(self, run: Manifest) -> None:
        """Append the written files, described by `run`; raise DecodedLogError if called twice."""
        run.partition = str(self._partition)
        if self._former is not None:
            # Only now are the times known that show a renamed or extended capture.
            for capture in run.captures:
                if capture.packets and (twice := _same_in(self._former, capture)) is not None:
                    raise DecodedLogError(_already_there(capture.name, twice.name, self._folder))
        manifest = run if self._former is None else merged(self._former, run)
        mode = mode_of(self._folder / MANIFEST)
        folder_mode = mode_of(self._folder)
        for name in PARTS:
            for path in sorted((self.path / name).rglob("*")):
                if path.is_dir():
                    continue
                path.chmod(PRIVATE if mode is None else mode)
                target = self._folder / path.relative_to(self.path)
                # Folders of days and hours get the mode of the log, outermost first.
                for parent in reversed(target.relative_to(self._folder).parents[:-1]):
                    made = self._folder / parent
                    if not made.is_dir():
                        made.mkdir(_PRIVATE_FOLDER)
                        made.chmod(_PRIVATE_FOLDER if folder_mode is None else folder_mode)
                path.rename(target)
        # The manifest comes last: until then, no reader knows of the new files.
        written = self.path / MANIFEST
        write_manifest(written, manifest)
        written.chmod(PRIVATE if mode is None else mode)
        written.replace(self._folder / MANIFEST)
        self._end()

    def discard(self) -> None:
        """Remove the written files; the log is unchanged."""
        self._end()

    def _end(self) -> None:
        try:
            remove(self.path)
            forget(self.path)
            if self._is_new and not (self._folder / MANIFEST).exists():
                for path in _left_behind(self._folder, None):
                    remove(path)
                (self._folder / LOCK).unlink(missing_ok=True)
                for place, _, _ in os.walk(self._folder, topdown=False):
                    with suppress(OSError):  # other people's files stay
                        os.rmdir(place)
        finally:
            # The lock is released last: the next run removes temporary folders as leftovers.
            os.close(self._lock)

    def _taken_over(self, form: str, messages: bool, inputs: Sequence[str]) -> Manifest | None:
        """Return the manifest of the log, or None if it is new; raise DecodedLogError on a
        mismatch.
        """
        folder = self._folder
        if not os.path.lexists(folder / MANIFEST):
            return None
        former = read_manifest(folder)
        if not 0 <= former.conversations < _MOST_CONVERSATIONS:
            raise DecodedLogError(f"{folder}/{MANIFEST} is damaged: conversations")
        if former.partition != self._partition:
            if former.partition is None:
                reason = "without partitions; give another name"
            else:
                reason = f"by {former.partition}; use --partition {former.partition}"
            raise LogRefused(f"{folder} is a decoded log {reason}")
        if former.parts and not former.parts[0].file.endswith(f".{form}"):
            had = former.parts[0].file.rpartition(".")[2]
            raise LogRefused(f"{folder} has {had} files; use -T {had}")
        if messages != (former.messages is not None):
            has, then = ("no", "use") if messages else ("a", "omit")
            raise LogRefused(f"{folder} has {has} table of messages; {then} --no-message-rows")
        for name in inputs:
            # A cheap check that refuses most repeated files before they are decoded.
            if (twice := _same_file_in(former, name)) is not None:
                raise DecodedLogError(_already_there(name, twice.name, folder))
        for member in PARTS.values():
            setattr(former, member, parts_there(folder, getattr(former, member)))
        return former


def merged(former: Manifest, run: Manifest) -> Manifest:
    """Return the manifest of a log with a run appended."""
    first = former.conversations
    added = [
        replace(replication, conversation=replication.conversation + first)
        for replication in run.replications
    ]
    manifest = msgspec.structs.replace(run, replications=added)
    set_sums(manifest, [former, manifest])  # type: ignore[arg-type, list-item]
    manifest.conversations = first + run.conversations
    manifest.captures = [*former.captures, *run.captures]
    manifest.options = _joined_options(former.options, run.options)
    for member in PARTS.values():
        setattr(manifest, member, [*getattr(former, member), *getattr(run, member)])
    manifest.exchanges = sum(part.rows for part in manifest.parts)
    if manifest.messages is not None:
        manifest.messages = sum(part.rows for part in manifest.message_parts)
    kinds = dict.fromkeys((*former.findings, *run.findings), 0)
    manifest.findings = {
        kind: former.findings.get(kind, 0) + run.findings.get(kind, 0) for kind in kinds
    }
    return manifest


def _joined_options(former: Mapping[str, object], run: Mapping[str, object]) -> dict[str, object]:
    """Return the options that restrict the rows; where runs differ, all their values."""
    joined: dict[str, object] = {}
    for name in dict.fromkeys((*former, *run)):
        before, now = (str(options.get(name, "none")) for options in (former, run))
        known = before.split("; ")
        joined[name] = former.get(name) if now in known and name in former else f"{before}; {now}"
    return joined


def _is_to_be_made(folder: Path) -> bool:
    """Return whether there is no log yet; raise DecodedLogError if there is something else."""
    if not folder.parent.is_dir():
        raise LogRefused(f"{folder.parent} is not a folder, so {folder} cannot be written in it")
    if not os.path.lexists(folder):
        return True
    if folder.is_symlink() or not folder.is_dir():
        raise LogRefused(f"{folder} exists and is not a folder; give another name")
    if os.path.lexists(folder / MANIFEST):
        return False
    if any(not name.startswith(_TEMPORARY) and name not in PARTS for name in os.listdir(folder)):
        raise LogRefused(f"{folder} exists and is not a decoded log; give another name")
    return True


def _left_behind(folder: Path, former: Manifest | None) -> Iterator[Path]:
    """Yield the leftovers of an interrupted run: files not in the manifest."""
    known = {
        part.file
        for member in PARTS.values()
        for part in (getattr(former, member) if former is not None else ())
    }
    for name in os.listdir(folder):
        if name.startswith(_TEMPORARY) and name.endswith(".tmp"):
            yield folder / name
    for name in PARTS:
        for place, _, files in os.walk(folder / name):
            within = Path(place).relative_to(folder).as_posix()
            for file in files:
                # Other people's files in these folders stay.
                if _PART.fullmatch(file) and f"{within}/{file}" not in known:
                    yield Path(place) / file


def _number_of(part: PartEntry) -> int:
    match = _PART.fullmatch(part.file.rpartition("/")[2])
    number = integer_of(match[1]) if match is not None else None
    return -1 if number is None else number


def _same_file_in(former: Manifest, name: str) -> CaptureEntry | None:
    """Return the capture of a log with the name and size of a file."""
    try:
        size = os.path.getsize(name)
    except OSError:
        return None
    base = os.path.basename(name)
    return next(
        (
            capture
            for capture in former.captures
            if os.path.basename(capture.name) == base and capture.bytes == size and capture.packets
        ),
        None,
    )


def _same_in(former: Manifest, capture: CaptureEntry) -> CaptureEntry | None:
    """Return the capture of a log that a new one repeats or extends."""
    for known in former.captures:
        # A capture that has grown keeps its name and first packet; a copy keeps all but the name.
        same_name = os.path.basename(known.name) == os.path.basename(capture.name)
        same_size = (known.packets, known.last_time) == (
            capture.packets,
            capture.last_time,
        )
        if known.packets and known.first_time == capture.first_time and (same_name or same_size):
            return known
    return None


def _already_there(name: str, known: str, folder: Path) -> str:
    known_as = "" if known == name else f" as {known}"
    return f"{name} is in {folder} already{known_as}; leave it out"
