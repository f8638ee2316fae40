"""Processes of our own: started, written to and read from over pipes, and ended.

A process that has one thread is forked, which takes no time; one that has more is not, because
another thread may hold a lock at that moment: then Python is started anew. A message is bytes with
their length before them; one that a process sends also has data, which a forked one leaves in
shared memory. A process ends when its pipe is closed, so none outlives who started it.
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
from functools import partial
from pathlib import Path
from struct import Struct
from typing import IO, Final

from .shared_blocks import NO_PLACE, SharedBlocks

PIPE_BYTES: Final = 1 << 20
"""bytes that a pipe holds where the system allows it: with less, processes wait for each other"""
MOST_WAITING: Final = 8 * 1024 * 1024
"""bytes of one process that are read before they are wanted, so that it need not wait; those in
shared memory do not count"""
LEAST_SHARED: Final = 4096
"""bytes of data from which on shared memory pays"""
_SIZE: Final = 8
"""bytes of the length before a message"""
_HEAD: Final = Struct(">qqq")
"""before what a process sends: bytes of the message, bytes of its data, their place"""
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ChildSender:
    """What a process says to the one that started it."""

    def __init__(self, out: IO[bytes], blocks: SharedBlocks | None = None) -> None:
        self._out = out
        self._blocks = blocks

    def send(self, message: bytes, parts: Sequence[bytes | memoryview] = ()) -> None:
        """Send a message with data, which is given in parts."""
        size, place = sum(map(len, parts)), NO_PLACE
        if self._blocks is not None and size >= LEAST_SHARED:
            place = self._blocks.put(parts, size)
        self._out.write(_HEAD.pack(len(message), size, place))
        self._out.write(message)
        if place == NO_PLACE:
            self._out.writelines(parts)
        self._out.flush()


Entry = Callable[[IO[bytes], ChildSender], None]
"""what a process does: reads messages from the first, sends its own by the second"""


class ChildEnded(ChildProcessError):
    """A process ended before it had done its work."""

    def __init__(self, status: int) -> None:
        """`status` as `os.waitstatus_to_exitcode` gives it: less than 0 is a signal."""
        how = f"signal {-status}" if status < 0 else f"exit status {status}"
        super().__init__(f"a decoding process ended early, {how}")


class Child:
    """One process: where it is written to, where it is read from."""

    def __init__(
        self,
        inward: int,
        outward: int,
        pid: int,
        opened: object = None,
        blocks: SharedBlocks | None = None,
    ) -> None:
        """Keep `opened` until the process has ended; `blocks`: where its data may be."""
        self.blocks = blocks
        self.inward = inward
        self.outward = outward
        self._pid = pid
        self._opened = opened
        self._status: int | None = None

    def write(self, message: bytes) -> None:
        """Write a message; nothing where the process has ended."""
        data = memoryview(len(message).to_bytes(_SIZE, "big") + message)
        try:
            while data:
                data = data[os.write(self.inward, data) :]
        except BrokenPipeError:
            return

    def kill(self) -> None:
        """End the process, if it has not ended."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """Close both pipes."""
        for number in (self.inward, self.outward):
            os.close(number)

    def wait(self) -> int:
        """Wait for its end and return its status."""
        if self._status is None:
            if isinstance(self._opened, subprocess.Popen):
                self._status = self._opened.wait()
            else:
                self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status


def start_children(count: int, entry: Entry) -> list[Child]:
    """Start `count` processes that do what `entry` does."""
    started: list[Child] = []
    for _ in range(count):
        to_child, from_child = os.pipe(), os.pipe()
        for number in (to_child[1], from_child[1]):
            _widen(number)
        if _has_one_thread():
            started.append(_forked(to_child, from_child, entry, started))
        else:
            started.append(_spawned(to_child, from_child, entry))
    return started


def _has_one_thread() -> bool:
    """Return whether this process may be forked."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _forked(
    to_child: tuple[int, int], from_child: tuple[int, int], entry: Entry, others: Sequence[Child]
) -> Child:
    blocks = _blocks()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        pid = os.fork()
        if pid == 0:
            ours = [to_child[1], from_child[0]]
            ours += [number for one in others for number in (one.inward, one.outward)]
            _be_child(to_child[0], from_child[1], ours, entry, blocks)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    os.close(to_child[0])
    os.close(from_child[1])
    return Child(to_child[1], from_child[0], pid, blocks=blocks)


def _blocks() -> SharedBlocks | None:
    """Return memory to share; None: there is none, all goes through the pipe."""
    try:
        return SharedBlocks()
    except OSError:
        return None


def _be_child(
    inward: int, outward: int, ours: Sequence[int], entry: Entry, blocks: SharedBlocks | None
) -> None:
    """Do the work of a forked process and end it; does not return."""
    status = 1
    try:
        gc.freeze()  # what is there already is not looked at again
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
        os._exit(status)


def _set_signals() -> None:
    """Let who started us answer Ctrl-C, and end with the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)


def _spawned(to_child: tuple[int, int], from_child: tuple[int, int], entry: Entry) -> Child:
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        # -P: no module comes from the folder that somebody works in
        [sys.executable, "-P", "-m", entry.__module__],
        stdin=to_child[0],
        stdout=from_child[1],
        stderr=None if os.environ.get("RMQTOOL_DEBUG") else subprocess.DEVNULL,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path)),
    )
    os.close(to_child[0])
    os.close(from_child[1])
    return Child(to_child[1], from_child[0], process.pid, process)


def serve(entry: Entry) -> None:
    """Be a process that was started anew: the messages come on standard input."""
    _set_signals()
    entry(sys.stdin.buffer, ChildSender(sys.stdout.buffer))


def _widen(number: int) -> None:
    try:
        fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (AttributeError, OSError):  # another system, or no room: it holds less
        return


def read_message(source: IO[bytes]) -> bytes | None:
    """Return the next message; None: there is none, nobody writes any more."""
    head = source.read(_SIZE)
    size = int.from_bytes(head, "big")
    data = source.read(size) if len(head) == _SIZE else b""
    return data if len(head) == _SIZE and len(data) == size else None


class ChildMessage:
    """What a process sent."""

    def __init__(
        self, message: memoryview, data: memoryview, piped: int, free: Callable[[], None]
    ) -> None:
        """`free` gives back the memory of `data`."""
        self.message = message
        self.data = data
        self.piped = piped
        """bytes of both that came through the pipe"""
        self._free = free

    def free(self) -> None:
        """Let the memory of the data be used again."""
        self._free()


class _Waiting:
    """What was read of one process and is not wanted yet."""

    def __init__(self, number: int, blocks: SharedBlocks | None) -> None:
        """Read from the pipe with this number, to which the process writes."""
        self.messages: deque[ChildMessage] = deque()
        self.bytes = 0
        """of them"""
        self.is_ended = False
        self._number = number
        self._blocks = blocks
        self._parts: list[bytes] = []
        self._missing = _HEAD.size
        self._head: tuple[int, int, int] | None = None

    def read(self) -> None:
        """Read on, not beyond the message: it is then as it was read, without a copy."""
        self._read_part()
        if self._head is not None and not self._parts and not self.is_ended:
            self._read_part()  # it is written with its head, so it is there, or comes at once

    def _read_part(self) -> None:
        data = os.read(self._number, self._missing)
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
        """Return a message; `whole`: it, and the data that are in no shared memory."""
        blocks = self._blocks
        if blocks is None or place == NO_PLACE:
            data, free = whole[size:], _nothing
        else:
            data, free = blocks.block(place, data_size), partial(blocks.free, place, data_size)
        return ChildMessage(whole[:size], data, len(whole), free)

    def take(self) -> ChildMessage:
        """Return the first message."""
        one = self.messages.popleft()
        self.bytes -= one.piped
        return one


def _nothing() -> None:
    """Give nothing back."""


class Inbox:
    """The messages of several processes, each in its order; none waits for the others."""

    def __init__(self, children: Sequence[Child]) -> None:
        self._children = children
        self._waiting = [_Waiting(child.outward, child.blocks) for child in children]

    def next_of(self, which: int) -> ChildMessage:
        """Return the next message of a process; raise ChildEnded where it has ended instead."""
        waiting = self._waiting[which]
        while not waiting.messages:
            if waiting.is_ended:
                raise ChildEnded(self._children[which].wait())
            self._read(which)
        return waiting.take()

    def _read(self, wanted: int) -> None:
        """Read what there is, at least something of the process that is waited for."""
        poll = select.poll()
        for place, waiting in enumerate(self._waiting):
            is_full = place != wanted and waiting.bytes >= MOST_WAITING
            if not waiting.is_ended and not is_full:
                poll.register(self._children[place].outward, select.POLLIN)
        ready = {number for number, _ in poll.poll()}
        for child, waiting in zip(self._children, self._waiting, strict=True):
            if child.outward in ready:
                waiting.read()
