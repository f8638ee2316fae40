"""The latest packets in files: a ring of pcapng files with a bound, oldest removed first.

Rules: files have whole blocks, so they are readable whenever the process ends. After a write error
the ring removes its oldest file and counts lost packets. Only one watch uses a folder at a time. It
counts and removes only files with its own names.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dissectors.foreign import natural_of
from dissectors.live.packet_ring import RingPacket
from dissectors.owned_folder import lock_in
from dissectors.tcp.pcapng_writer import PcapngWriter
from dissectors.temporary import PRIVATE

from ..ui.errors import reason_of
from ..ui.status import CommandError

PARTS: Final = 32
"""files of a ring"""
LEAST_FILE: Final = 128 * 1024
CALM: Final = 60.0
"""seconds without a failure after which recovery is reported"""
FOLDER_MODE: Final = 0o700
_NAME: Final = re.compile(r"ring-(\d{10})\.pcapng")


@dataclass(slots=True)
class RingFile:
    """One file of the ring."""

    path: Path
    number: int
    size: int
    first: int = 0
    """time of the earliest packet in ns; 0: unknown, the file is from a previous run"""
    last: int = 0


class PacketFiles:
    """The ring."""

    def __init__(
        self,
        folder: Path,
        limit: int,
        interface: str,
        filter_text: str,
        said: Callable[[str], None],
    ) -> None:
        """Continue the ring in a folder, which is created if missing.

        `limit` in bytes. `said` is called with the reason if packets cannot be kept, and with an
        empty text on recovery. Raise CommandError if the folder cannot be used.
        """
        self.folder = folder
        self.lost = 0
        """packets that could not be kept"""
        self.linktype = 1
        """LINKTYPE_ number of the packets that come"""
        self._limit = limit
        self._part = max(limit // PARTS, LEAST_FILE)
        self._interface, self._filter = interface, filter_text
        self._report = said
        self._problem = ""
        self._failed = 0.0
        self._buffer = io.BytesIO()
        self._writer: PcapngWriter | None = None
        self._number = -1
        try:
            folder.mkdir(FOLDER_MODE, parents=True, exist_ok=True)
            self._lock = lock_in(folder)
            self.files = _files_in(folder)
        except OSError as error:
            raise CommandError(f"--ring-dir: {folder}: {reason_of(error)}") from error
        if self._lock is None:
            raise CommandError(
                f"--ring-dir: {folder} is used by another watch", "name another folder"
            )

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def write(self, packets: Sequence[RingPacket]) -> None:
        """Keep packets."""
        try:
            self._write(packets)
        except OSError as error:
            self._fail(reason_of(error), len(packets))
            return
        if self._problem and time.monotonic() - self._failed > CALM:
            self._problem = ""
            self._report("")

    def between(self, begin: int, end: int) -> list[Path]:
        """Return the files that may have packets from `begin` to `end` (ns), in order."""
        return [
            file.path
            for file in self.files
            # Files of a previous run, whose times are unknown, have no packets of this watch.
            if file.first and file.first <= end and file.last >= begin
        ]

    def close(self) -> None:
        """Close the ring; keep its files."""
        self._end_file()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _write(self, packets: Sequence[RingPacket]) -> None:
        if self._writer is None or self.files[-1].size >= self._part:
            self._begin_file()
        writer, file = self._writer, self.files[-1]
        assert writer is not None
        self.lost += writer.write_all(packets)
        times = [packet.ts for packet in packets]
        if times:
            file.first = min(file.first or times[0], *times)
            file.last = max(file.last, *times)
        self._flush(file)

    def _flush(self, file: RingFile) -> None:
        data = self._buffer.getvalue()
        self._buffer.seek(0)
        self._buffer.truncate()
        written = 0
        try:
            while written < len(data):
                written += os.write(self._number, data[written:] if written else data)
        except OSError:  # such as a full disk: leave no part of a block
            os.ftruncate(self._number, file.size)
            os.lseek(self._number, file.size, os.SEEK_SET)
            raise
        file.size += written

    def _begin_file(self) -> None:
        self._end_file()
        while self.files and self.size + self._part > self._limit:
            self._remove_oldest()
        number = self.files[-1].number + 1 if self.files else 0
        path = self.folder / f"ring-{number:010d}.pcapng"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._number = os.open(path, flags, PRIVATE)
        self.files.append(RingFile(path, number, 0))
        self._writer = PcapngWriter(
            self._buffer, self.linktype, interface=self._interface, filter_text=self._filter
        )
        self._flush(self.files[-1])

    def _end_file(self) -> None:
        self._writer = None
        self._buffer.seek(0)
        self._buffer.truncate()
        if self._number >= 0:
            os.close(self._number)
            self._number = -1

    def _remove_oldest(self) -> None:
        self.files.pop(0).path.unlink(missing_ok=True)

    def _fail(self, reason: str, packets: int) -> None:
        """Report once why packets cannot be kept, and make room for later ones."""
        self.lost += packets
        self._failed = time.monotonic()
        self._end_file()
        if self.files and not self.files[-1].size:  # not even its header could be written
            self.files.pop().path.unlink(missing_ok=True)
        if len(self.files) > 1:
            self._remove_oldest()
        if not self._problem:
            self._problem = reason
            self._report(reason)


def _files_in(folder: Path) -> list[RingFile]:
    """Return the files of a previous run."""
    files = []
    for entry in os.scandir(folder):
        match = _NAME.fullmatch(entry.name)
        if match is not None and entry.is_file(follow_symlinks=False):
            size = entry.stat(follow_symlinks=False).st_size
            files.append(RingFile(Path(entry.path), natural_of(match[1]) or 0, size))
    return sorted(files, key=lambda one: one.number)
