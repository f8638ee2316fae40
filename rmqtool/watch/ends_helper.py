"""A helper process that keeps the privilege to inspect other processes.

Rules: it is forked before the capture starts and before privileges are dropped; it has only the two
capabilities that /proc requires, sees no packets, and only looks up the processes of addresses. It
ends with its parent process.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from dissectors.foreign import Unreadable, json_of
from dissectors.live.privileges import keep_only

from .local_ends import LocalEnd, LocalEnds

# Both are needed to list /proc/PID/fd of other users: the first because of the mode of the folder,
# the second because the kernel asks who may trace the process.
CAP_DAC_READ_SEARCH: Final = 2
CAP_SYS_PTRACE: Final = 19
PATIENCE: Final = 3.0
"""timeout of a response in seconds"""
LONGEST: Final = 1 << 20
"""most bytes of a request or a response"""
_QUESTION: Final = msgspec.json.Decoder(list[tuple[str, str]])
_RESPONSE: Final = msgspec.json.Decoder(list[LocalEnd])


class EndsHelper:
    """Client of the helper process; without its response, looks up what is visible here."""

    def __init__(self) -> None:
        """Fork the helper process; this process must have one thread only."""
        to_child, from_child = os.pipe(), os.pipe()
        self._inside = LocalEnds()
        self._pid = os.fork()
        if self._pid == 0:
            _serve(to_child, from_child)
        os.close(to_child[0])
        os.close(from_child[1])
        self._ask, self._responses = to_child[1], from_child[0]

    def of(self, ends: Sequence[tuple[str, str]]) -> list[LocalEnd]:
        """Return the local ends of connections, given as client and server."""
        if not ends:
            return []
        if self._ask >= 0:
            try:
                os.write(self._ask, msgspec.json.encode(ends) + b"\n")
                return json_of(_RESPONSE, _line(self._responses, time.monotonic() + PATIENCE))
            except (OSError, Unreadable):
                self.close()
        return self._inside.of(ends)

    def close(self) -> None:
        """End the process."""
        if self._ask >= 0:
            os.close(self._ask)
            os.close(self._responses)
            self._ask = self._responses = -1
            with suppress(OSError):
                os.waitpid(self._pid, 0)


def _line(number: int, until: float) -> bytes:
    """Return the next line of a pipe; raise TimeoutError at `until`."""
    data = b""
    while not data.endswith(b"\n") and len(data) < LONGEST:
        ready, _, _ = select.select([number], [], [], max(until - time.monotonic(), 0))
        if not ready:
            raise TimeoutError
        more = os.read(number, 65536)
        if not more:
            raise BrokenPipeError
        data += more
    return data


def _serve(to_child: tuple[int, int], from_child: tuple[int, int]) -> None:
    """Run the helper process; does not return."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # it ends with the pipe
        os.close(to_child[1])  # otherwise its pipe never ends
        os.close(from_child[0])
        # Who reads the output of the parent would also wait for the end of this process.
        devnull = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(devnull, standard)
        keep_only((CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE))
        ends = LocalEnds()
        with os.fdopen(to_child[0], "rb") as questions:
            while line := questions.readline(LONGEST):
                asked = json_of(_QUESTION, line)
                os.write(from_child[1], msgspec.json.encode(ends.of(asked)) + b"\n")
        status = 0
    except BaseException as error:  # no code of the parent may run here
        if os.environ.get("RMQTOOL_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
    finally:
        os._exit(status)
