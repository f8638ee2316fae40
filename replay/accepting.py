"""What our servers share: bound sockets, accepted connections, and how they are run.

Connections are accepted even when the process runs out of file descriptors. asyncio's own server
retries 1,024 times per loop turn in that case, and logs each failure.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Final, Protocol, TypeVar

from dissectors.open_files import require_files

_BACKLOG: Final = 1024
"""backlog of connections that are not accepted yet"""
_ACCEPTED_AT_ONCE: Final = 64
"""connections accepted per loop turn"""
_PAUSE_SECONDS: Final = 1.0
"""pause after a connection failed for lack of a file descriptor"""
_NOTIFY_SECONDS: Final = 60.0
"""minimum time between two such events"""
_FILES_KEPT: Final = 32
"""files reserved for other uses"""
_NO_FILE: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def allow_files() -> None:
    """Raise the limit of open files to the system's maximum."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an own address; OSError if that fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


class _Startable(Protocol):
    async def start(self) -> object: ...
    async def close(self) -> None: ...


_Server = TypeVar("_Server", bound=_Startable)


def run_server(
    server: _Server,
    started: Callable[[_Server], None],
    tick: Callable[[], None],
    stoppable: Callable[[Callable[[], None]], AbstractContextManager[None]],
    seconds: float | None,
) -> bool:
    """Run a server in this thread until `stoppable`'s argument is called or the time is up.

    `started` is called once it listens, `tick` every second. Return False if it was stopped before.
    """

    async def run() -> bool:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def stop() -> None:
            loop.call_soon_threadsafe(ended.set)

        with stoppable(stop):
            if not await _listens(server, ended):
                return False
            try:
                started(server)
                await _wait_for_end(ended, tick, seconds)
            finally:
                await server.close()
        return True

    require_files()
    return asyncio.run(run())


async def _listens(server: _Startable, ended: asyncio.Event) -> bool:
    """Start a server; return False if it was stopped before it listened."""
    starting = asyncio.ensure_future(server.start())
    ending = asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait((starting, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        ending.cancel()
        if not starting.done():
            starting.cancel()
    try:
        await starting
    except asyncio.CancelledError:
        return False
    return True


async def _wait_for_end(
    ended: asyncio.Event, tick: Callable[[], None], seconds: float | None
) -> None:
    """Call `tick` every second until `ended` is set or the time is up; None: no limit."""
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    while not ended.is_set() and (end is None or loop.time() < end):
        wait = 1.0 if end is None else min(1.0, max(0.0, end - loop.time()))
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), wait)
        tick()


class OpenFiles:
    """Counts the open files used by the connections of several ports."""

    def __init__(self, taken: Callable[[], int], each: int = 1) -> None:
        """`taken` returns the number of connections; `each` is the files per connection."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.limit = 1 << 30 if files == resource.RLIM_INFINITY else files
        """limit of open files"""
        self._taken = taken
        self._each = each
        self._notified_at: float | None = None

    def has_one(self, accepted: int) -> bool:
        """Return whether another connection fits; `accepted` are being accepted right now."""
        # a small limit must leave some for connections
        kept = min(_FILES_KEPT, self.limit // 4)
        return (self._taken() + accepted) * self._each < self.limit - kept

    def says_none(self, now: float) -> bool:
        """Return whether to report now that connections wait for files."""
        if self._notified_at is not None and now - self._notified_at < _NOTIFY_SECONDS:
            return False
        self._notified_at = now
        return True


class Acceptor:
    """Accepts the connections of one port; pauses when no file descriptor is left."""

    def __init__(
        self,
        bound: socket.socket,
        factory: Callable[[], asyncio.Protocol],
        files: OpenFiles,
        tell: Callable[[str], object],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`bound` is closed by `close`; `tell` is called when connections wait.

        `factory` makes the protocol of a connection, `tls` encrypts it.
        """
        self._socket = bound
        self._factory = factory
        self._files = files
        self._notify = tell
        self._tls = tls
        self._loop = asyncio.get_running_loop()
        self._pause: asyncio.TimerHandle | None = None
        self._accepted: set[asyncio.Task[object]] = set()
        bound.setblocking(False)
        self.accept()

    def close(self) -> None:
        """Stop listening."""
        self._stop()
        self._socket.close()

    def refuse(self) -> None:
        """Refuse connections, as a port without a listener does, and keep the port."""
        self._stop()
        family, address = self._socket.family, self._socket.getsockname()
        self._socket.close()
        # a new one: a socket that listens cannot stop that and keep its port
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(address)

    def accept(self) -> None:
        """Accept connections again, after `refuse`."""
        self._socket.listen(_BACKLOG)
        self._listen()

    async def settled(self) -> None:
        """Wait until accepted sockets are connections."""
        await asyncio.gather(*self._accepted, return_exceptions=True)

    def _stop(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._loop.remove_reader(self._socket)

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._socket, self._accept)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                if not self._files.has_one(len(self._accepted)):
                    # as if the system had none: both pause in the same way
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                accepted, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno in _NO_FILE:
                    self._wait(error)
                return
            accepted.setblocking(False)
            opening = self._loop.connect_accepted_socket(self._factory, accepted, ssl=self._tls)
            task: asyncio.Task[object] = self._loop.create_task(opening)
            self._accepted.add(task)
            task.add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[object]) -> None:
        self._accepted.discard(task)
        if not task.cancelled():
            task.exception()  # the client has already disconnected

    def _wait(self, error: OSError) -> None:
        self._loop.remove_reader(self._socket)
        self._pause = self._loop.call_later(_PAUSE_SECONDS, self._listen)
        if self._files.says_none(self._loop.time()):
            reason = f"{(error.strerror or str(error)).lower()} (ulimit -n {self._files.limit})"
            self._notify(f"{reason}: new connections wait")
