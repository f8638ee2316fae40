"""Ask the user for consent before the first byte goes to an unapproved broker of a route.

Rules: consent is asked before a send begins, so waiting for the user does not count against its
timeout. There is one question at a time, for all new hosts; a refused host is not asked for again.
A changed route is checked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import TextIO

from .async_producer import AsyncProducer
from .errors import ClientError
from .safety import Guard, TargetRefused

Ask = Callable[[Sequence[str], str], Awaitable[bool]]
"""(addresses, topic) -> whether the user agrees; raises TargetRefused where nobody can be asked"""


class Consent:
    """Asks for consent before a topic's brokers are contacted."""

    def __init__(self, guard: Guard, ask: Ask) -> None:
        self._guard = guard
        self._ask = ask
        self._lock = asyncio.Lock()
        self._refusal: TargetRefused | None = None

    async def __call__(self, producer: AsyncProducer, topic: str) -> None:
        """Raise TargetRefused if a broker of the topic's route may not be used."""
        if self._guard.agreement.everything:
            return
        if producer.brokers_of(topic) is None:
            with suppress(ClientError):  # the send reports it, with its attempts
                await producer.queues_of(topic)
        await self.agree(producer.brokers_of(topic) or (), topic)

    async def agree(self, named: Iterable[str], topic: str = "") -> None:
        """Raise TargetRefused if one of the `host:port` in a route may not be used."""
        named = tuple(named)
        if not self._new(named):
            return
        async with self._lock:
            if self._refusal is not None:
                raise self._refusal
            # again: the question before may have been about the same hosts
            new = self._new(named)
            try:
                if new and not await self._ask(new, topic):
                    raise TargetRefused("not confirmed: nothing was sent to these brokers")
            except TargetRefused as refusal:
                self._refusal = refusal
                raise
            self._guard.agreement.add(new)

    def _new(self, named: Iterable[str]) -> list[str]:
        covers = self._guard.agreement.covers
        return sorted(
            {address for address in named if not covers(address) and _may_be_host(address)}
        )


def _may_be_host(address: str) -> bool:
    """Return whether consent makes sense: an invalid host is refused when used."""
    return address.isprintable() and " " not in address


class TypedLine:
    """A typed line, read without blocking the loop."""

    def __init__(self) -> None:
        self._line: asyncio.Future[str] | None = None
        self._ended = False

    async def read(self, stream: TextIO) -> str:
        """Return the next line of a terminal, or an empty text after `end`."""
        loop = asyncio.get_running_loop()
        line: asyncio.Future[str] = loop.create_future()
        self._line = line
        if self._ended:
            return ""
        loop.add_reader(stream.fileno(), lambda: self._settle(stream.readline()))
        try:
            return await line
        finally:
            loop.remove_reader(stream.fileno())

    def end(self) -> None:
        """Stop waiting for a line; may be called by a signal handler."""
        self._ended = True
        if self._line is not None:
            self._line.get_loop().call_soon_threadsafe(self._settle, "")

    def _settle(self, text: str) -> None:
        if self._line is not None and not self._line.done():
            self._line.set_result(text)
