"""Write the proxy's recording to a file, standard output, or other programs.

Rules: each reader has a thread and a bounded queue. A slow reader loses whole packets, which are
counted; traffic never waits. A closed reader or a full disk ends only its own output.
"""

from __future__ import annotations

import io
import os
import queue
import threading
from collections.abc import Sequence
from typing import Final

_AT_ONCE: Final = 256 * 1024
"""bytes after which packets are passed on without `flush`"""
_MOST_WAITING: Final = 64 * 1024 * 1024
"""bytes that wait for one reader"""
_END_SECONDS: Final = 10.0
"""time that a reader has to take what waits, at the end"""


class Tap:
    """One reader of a recording."""

    def __init__(self, name: str, descriptor: int) -> None:
        """Write to `descriptor` and close it at the end."""
        self.name = name
        """name in messages"""
        self.lost = 0
        """packets lost because it was too slow"""
        self.error: OSError | None = None
        """why it ended"""
        self.written = 0
        """bytes written"""
        self._descriptor = descriptor
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        # each counter has one writer, so no lock is needed
        self._queued = 0
        self._taken = 0
        # a daemon: a reader that takes nothing must not keep the process from ending
        self._thread = threading.Thread(target=self._write_all, name=name, daemon=True)
        self._thread.start()

    @property
    def unwritten(self) -> int:
        """Number of queued bytes that are not written yet; what is written is counted in pieces."""
        return self._queued - self._taken

    def put(self, data: bytes, packets: int) -> None:
        """Queue whole packets; drop them if the queue is full."""
        if self.error is not None:
            return
        if self.unwritten + len(data) > _MOST_WAITING:
            self.lost += packets
            return
        self._queued += len(data)
        self._queue.put(data)

    def finish(self) -> bool:
        """Write queued packets and close; return whether that succeeded in time."""
        self._queue.put(None)
        self._thread.join(_END_SECONDS)
        return not self._thread.is_alive()

    def _write_all(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                view = memoryview(data)
                while view and self.error is None:
                    view = view[os.write(self._descriptor, view) :]
                self._taken += len(data)
                self.written = self._taken
        except OSError as error:
            self.error = error
        finally:
            os.close(self._descriptor)


class Recording(io.BytesIO):
    """A file-like object: each write is one packet, passed to all readers."""

    def __init__(self, taps: Sequence[Tap]) -> None:
        super().__init__()
        self.taps = tuple(taps)
        """the readers"""
        self._pending: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Take one packet."""
        self._pending.append(data)
        self._size += len(data)
        if self._size >= _AT_ONCE:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Pass buffered packets to the readers."""
        if self._pending:
            data, packets = b"".join(self._pending), len(self._pending)
            self._pending.clear()
            self._size = 0
            for tap in self.taps:
                tap.put(data, packets)

    def finish(self) -> None:
        """Pass all packets on and close the readers."""
        self.flush()
        for tap in self.taps:
            tap.finish()
