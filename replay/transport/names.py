"""Names looked up beside a loop, by threads that nobody waits for.

Rules: a look-up cannot be given up, and takes as long as the system's resolver likes; the loop's
own threads would hold the end of the program until the last of them is back, and make each look-up
wait for those before it. So many run at once and no more: a route can name thousands.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Final

from .problems import is_ip_address

MOST_AT_ONCE: Final = 64
"""look-ups of one process that have not come back"""

Found = list[tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int]]]
"""what the system's resolver gives"""

_running = threading.BoundedSemaphore(MOST_AT_ONCE)


async def addresses_of(host: str, port: int) -> Found:
    """Return where a host can be connected to; OSError where that is not known.

    Who no longer waits gives it up; the thread ends when the resolver has answered.
    """
    if is_ip_address(host):
        return _look_up(host, port)
    if not _running.acquire(blocking=False):
        raise OSError(f"{MOST_AT_ONCE} names are being looked up already")
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Found] = loop.create_future()
    try:
        threading.Thread(
            target=_run, args=(loop, answer, host, port), name="names", daemon=True
        ).start()
    except RuntimeError:  # the system gives no further thread
        _running.release()
        raise OSError("no thread to look up a name") from None
    return await answer


def _run(
    loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Found], host: str, port: int
) -> None:
    found: Found = []
    problem: OSError | None = None
    try:
        found = _look_up(host, port)
    except (OSError, UnicodeError) as error:
        problem = error if isinstance(error, OSError) else OSError("that is not a valid name")
    finally:
        _running.release()
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(_settle, answer, found, problem)


def _settle(answer: asyncio.Future[Found], found: Found, problem: OSError | None) -> None:
    if answer.done():
        return  # given up
    if problem is not None:
        answer.set_exception(problem)
    else:
        answer.set_result(found)


def _look_up(host: str, port: int) -> Found:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)  # type: ignore[return-value]
