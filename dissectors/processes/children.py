"""Child processes: start them, exchange messages over pipes, and end them.

Messages are length-prefixed; those from a child also carry data, which a forked child puts into
shared memory.
"""

from __future__ import annotations

import fcntl
import gc
import os
import select
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from mmap import mmap
from pathlib import Path
from struct import Struct
from typing import IO, Any, Final, NamedTuple

UNIT: Final = 16 * 1024
"""bytes of the smallest block"""
UNITS: Final = 512
"""8 MiB in total; only used pages take memory"""
NO_PLACE: Final = -1
"""place of data that is not in shared memory"""


class SharedBlocks:
    """Blocks of bytes in memory shared between two processes; create before forking."""

    def __init__(self) -> None:
        """Raise OSError if no shared memory is available."""
        # The first UNITS bytes say which units are in use, one byte each.
        self._memory = mmap(-1, UNITS + UNITS * UNIT)
        self._view = memoryview(self._memory)

    def put(self, parts: Sequence[bytes | memoryview], size: int) -> int:
        """Write the parts of a block, `size` bytes in all; return its offset.

        Return NO_PLACE if there is no room. The lowest free offset is used: it is likely in the
        cache.
        """
        units = -(-size // UNIT)
        unit = self._memory.find(bytes(units), 0, UNITS)
        if unit < 0:
            return NO_PLACE
        # No lock: only the child claims units, and the parent frees them only after the message
        # about them arrived through the pipe.
        self._memory[unit : unit + units] = b"\1" * units
        begin = at = UNITS + unit * UNIT
        for part in parts:
            self._memory[at : at + len(part)] = part
            at += len(part)
        return begin

    def block(self, place: int, size: int) -> memoryview:
        """Return a view of a block, valid until `free`."""
        return self._view[place : place + size]

    def free(self, place: int, size: int) -> None:
        """Release a block."""
        unit, units = (place - UNITS) // UNIT, -(-size // UNIT)
        self._memory[unit : unit + units] = bytes(units)


PIPE_BYTES: Final = 1 << 20
"""requested pipe capacity, bytes: with less, processes block on each other"""
MOST_WAITING: Final = 8 * 1024 * 1024
"""bytes read ahead from one process so that it does not block; shared memory does not count"""
LEAST_SHARED: Final = 4096
"""smallest data size for which shared memory pays, bytes"""
_SIZE: Final = 8
"""bytes of the length prefix of a message"""
_HEAD: Final = Struct(">qqq")
"""header of a message from a child: message bytes, data bytes, offset of the data"""
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ChildSender:
    """Sends messages from a child to its parent."""

    def __init__(self, out: IO[bytes], blocks: SharedBlocks | None = None) -> None:
        self._out = out
        self._blocks = blocks

    def send(self, message: bytes, parts: Sequence[bytes | memoryview] = ()) -> None:
        """Send a message, with data given in parts."""
        size, place = sum(map(len, parts)), NO_PLACE
        if self._blocks is not None and size >= LEAST_SHARED:
            place = self._blocks.put(parts, size)
        self._out.write(_HEAD.pack(len(message), size, place))
        self._out.write(message)
        if place == NO_PLACE:
            self._out.writelines(parts)
        self._out.flush()


Entry = Callable[[IO[bytes], ChildSender], None]
"""main function of a child: reads messages from the first argument, sends by the second"""


class ChildEnded(ChildProcessError):
    """A child process ended before its work was done."""

    def __init__(self, status: int) -> None:
        """`status` is from `os.waitstatus_to_exitcode`: a negative value is a signal."""
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        super().__init__(f"a decoding process ended early, {how}")


class Child:
    """A child process with its input and output pipes."""

    def __init__(
        self,
        inward: int,
        outward: int,
        pid: int,
        spawned: subprocess.Popen[bytes] | None = None,
        blocks: SharedBlocks | None = None,
    ) -> None:
        """`inward` and `outward` are the parent's ends of the pipes.

        `spawned` is None for a forked process; `blocks` is its shared memory, if any.
        """
        self.blocks = blocks
        self.inward = inward
        self.outward = outward
        self.pid = pid
        self.spawned = spawned
        self._status: int | None = None

    def write(self, message: bytes) -> None:
        """Write a message; do nothing if the process has ended."""
        data = memoryview(len(message).to_bytes(_SIZE, "big") + message)
        try:
            while data:
                data = data[os.write(self.inward, data) :]
        except BrokenPipeError:
            return

    def kill(self) -> None:
        """Kill the process if it is still running."""
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """Close both pipes."""
        for number in (self.inward, self.outward):
            os.close(number)

    def wait(self) -> int:
        """Wait for the process to end and return its exit status."""
        if self._status is None:
            if self.spawned is not None:
                self._status = self.spawned.wait()
            else:
                self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


def start_children(count: int, entry: Entry) -> list[Child]:
    """Start `count` processes that run `entry`; raise OSError, and leave none, if one cannot."""
    started: list[Child] = []
    ends: list[int] = []
    try:
        for _ in range(count):
            to_child = os.pipe()
            ends = [*to_child]
            from_child = os.pipe()
            ends += from_child
            for number in (to_child[1], from_child[1]):
                _widen(number)
            # A fork is immediate. Beside another thread, which may hold a lock during the fork, a
            # new interpreter is started.
            if has_one_thread():
                started.append(_forked(to_child, from_child, entry, started))
            else:
                started.append(_spawned(to_child, from_child, entry))
            ends = []
            os.close(to_child[0])
            os.close(from_child[1])
    except OSError:
        for number in ends:
            os.close(number)
        for child in started:
            child.kill()
            child.close()
        raise
    return started


def has_one_thread() -> bool:
    """Return whether this process is single-threaded and may fork."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _forked(
    to_child: tuple[int, int], from_child: tuple[int, int], entry: Entry, others: Sequence[Child]
) -> Child:
    blocks: SharedBlocks | None = None
    with suppress(OSError):  # without shared memory, all data goes through the pipe
        blocks = SharedBlocks()
    # A signal between the fork and `_set_signals` would run the parent's handler in the child.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        pid = os.fork()
        if pid == 0:
            # A pipe ends when all copies of its write end are closed: a child that kept one would
            # keep itself, or another child, waiting after the parent has ended.
            ours = [to_child[1], from_child[0]]
            ours += [number for child in others for number in (child.inward, child.outward)]
            _be_child(to_child[0], from_child[1], ours, entry, blocks)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    return Child(to_child[1], from_child[0], pid, blocks=blocks)


def _be_child(
    inward: int, outward: int, ours: Sequence[int], entry: Entry, blocks: SharedBlocks | None
) -> None:
    """Run `entry` in a forked process and exit; does not return."""
    status = 1
    try:
        gc.freeze()  # a collection would write to the objects, and so copy the parent's pages
        for number in ours:
            os.close(number)
        _set_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        with open(inward, "rb") as source, open(outward, "wb") as out:
            entry(source, ChildSender(out, blocks))
        status = 0
    except BaseException as error:
        if os.environ.get("RMQTOOL_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)  # no exit handlers, and no second flush of the parent's buffers


def _set_signals() -> None:
    """Leave Ctrl-C to the parent, and end when the pipe breaks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def _spawned(to_child: tuple[int, int], from_child: tuple[int, int], entry: Entry) -> Child:
    process = start_module(
        entry.__module__,
        stdin=to_child[0],
        stdout=from_child[1],
        stderr=None if os.environ.get("RMQTOOL_DEBUG") else subprocess.DEVNULL,
    )
    return Child(to_child[1], from_child[0], process.pid, process)


def start_module(name: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start `python -m name arguments`; `options` are those of `Popen`."""
    root = str(Path(__file__).resolve().parents[2])
    # The child must run this code, also where it is not installed.
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        # -P: do not import modules from the working directory
        [sys.executable, "-P", "-m", name, *arguments],
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
        **options,
    )


def serve(entry: Entry) -> None:
    """Run `entry` in a spawned process, with messages on standard input."""
    _set_signals()
    entry(sys.stdin.buffer, ChildSender(sys.stdout.buffer))


def _widen(number: int) -> None:
    try:
        fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (AttributeError, OSError):  # another system, or no room: keep the default capacity
        return


def read_message(source: IO[bytes]) -> bytes | None:
    """Return the next message, or None at the end of the stream."""
    head = source.read(_SIZE)
    size = int.from_bytes(head, "big")
    data = source.read(size) if len(head) == _SIZE else b""
    return data if len(head) == _SIZE and len(data) == size else None


class ChildMessage(NamedTuple):
    """A message received from a child."""

    message: memoryview
    data: memoryview
    piped: int
    """bytes of message and data that came through the pipe"""
    free: Callable[[], None]
    """releases the memory of the data"""


class _Waiting:
    """Messages read ahead from one process."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.messages: deque[ChildMessage] = deque()
        self.bytes = 0
        """bytes of the messages read ahead"""
        self.is_ended = False
        self._parts: list[bytes] = []
        self._missing = _HEAD.size
        self._head: tuple[int, int, int] | None = None

    def read(self) -> None:
        """Read up to the end of a message, never beyond it, so that it needs no copy."""
        self._read_part()
        if self._head is not None and not self._parts and not self.is_ended:
            self._read_part()  # written together with its head: arrives at once

    def _read_part(self) -> None:
        data = os.read(self.child.outward, self._missing)
        self.is_ended = not data
        self._parts.append(data)
        self._missing -= len(data)
        if self._missing:
            return
        whole = b"".join(self._parts) if len(self._parts) > 1 else data
        self._parts.clear()
        if self._head is None:
            self._head = size, data_size, place = _HEAD.unpack(whole)
            self._missing = size + (data_size if place == NO_PLACE else 0)
        else:
            self._missing = _HEAD.size
            self.bytes += len(whole)
            self.messages.append(self._message(memoryview(whole), *self._head))
            self._head = None

    def _message(self, whole: memoryview, size: int, data_size: int, place: int) -> ChildMessage:
        """Return a message; `whole` has the message and any data outside shared memory."""
        blocks = self.child.blocks
        if blocks is None or place == NO_PLACE:
            return ChildMessage(whole[:size], whole[size:], len(whole), _nothing)
        data, free = blocks.block(place, data_size), partial(blocks.free, place, data_size)
        return ChildMessage(whole, data, len(whole), free)

    def take(self) -> ChildMessage:
        """Remove and return the first message."""
        message = self.messages.popleft()
        self.bytes -= message.piped
        return message


def _nothing() -> None:
    """Do nothing: there is no shared memory to release."""


class Inbox:
    """Receives the messages of several processes, in order per process; none blocks the others."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._waiting = list(map(_Waiting, children))

    def next_of(self, which: int) -> ChildMessage:
        """Return the next message of a process; raise ChildEnded if it has ended."""
        wanted = self._waiting[which]
        while not wanted.messages:
            if wanted.is_ended:
                raise ChildEnded(wanted.child.wait())
            self._read(wanted)
        return wanted.take()

    def _read(self, wanted: _Waiting) -> None:
        """Read all available input, and at least some from process `wanted`."""
        # All are read while one is waited for: a process with a full pipe would stand still.
        poll = select.poll()
        for waiting in self._waiting:
            is_full = waiting is not wanted and waiting.bytes >= MOST_WAITING
            if not waiting.is_ended and not is_full:
                poll.register(waiting.child.outward, select.POLLIN)
        ready = {number for number, _ in poll.poll()}
        for waiting in self._waiting:
            if waiting.child.outward in ready:
                waiting.read()
