"""Name lookups in daemon threads, outside the loop.

The number of concurrent lookups is limited: a route can contain thousands of names.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Final

from .problems import is_ip_address

MOST_AT_ONCE: Final = 64
"""maximum running lookups of one process"""

Found = list[tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]]
"""results of the system's resolver"""

_running = threading.BoundedSemaphore(MOST_AT_ONCE)


async def addresses_of(host: str, port: int) -> Found:
    """Resolve a host to socket addresses; OSError if that fails.

    A cancelled caller leaves the thread, which ends when the resolver returns.
    """
    if is_ip_address(host):
        return _look_up(host, port)
    # waiting here would stop the loop
    if not _running.acquire(blocking=False):
        raise OSError(f"{MOST_AT_ONCE} names are being looked up already")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Found] = loop.create_future()
    try:
        # A lookup cannot be cancelled. The loop's executor would delay the program's exit until the
        # last one ends, and queue lookups behind each other.
        threading.Thread(
            target=_run, args=(loop, future, host, port), name="names", daemon=True
        ).start()
    except RuntimeError:  # the system cannot start another thread
        _running.release()
        raise OSError("no thread to look up a name") from None
    return await future


def _run(
    loop: asyncio.AbstractEventLoop, future: asyncio.Future[Found], host: str, port: int
) -> None:
    addresses: Found = []
    problem: OSError | None = None
    try:
        addresses = _look_up(host, port)
    except (OSError, UnicodeError) as error:
        problem = error if isinstance(error, OSError) else OSError("that is not a valid name")
    finally:
        _running.release()
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(_settle, future, addresses, problem)


def _settle(future: asyncio.Future[Found], addresses: Found, problem: OSError | None) -> None:
    if future.done():
        return  # given up
    if problem is not None:
        future.set_exception(problem)
    else:
        future.set_result(addresses)


def _look_up(host: str, port: int) -> Found:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)  # type: ignore[return-value]
