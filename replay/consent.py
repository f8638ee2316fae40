"""Brokers that a route names and nobody agreed to: the user is asked before the first byte.

Rules: a route is asked for before a send begins, so that waiting for an answer is not part of the
time of the send. One question is asked at a time, of all hosts that are new; what was refused is
not asked again. A route that changes is asked for anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TextIO

from .async_producer import AsyncProducer
from .errors import ClientError
from .safety import Guard, TargetRefused

Ask = Callable[[Sequence[str], str], Awaitable[bool]]
"""(addresses, topic) -> whether the user agrees; raises TargetRefused where nobody can be asked"""


class Consent:
    """What is asked before a topic's brokers are reached."""

    def __init__(self, guard: Guard, ask: Ask) -> None:
        self._guard = guard
        self._ask = ask
        self._lock = asyncio.Lock()
        self._refusal: TargetRefused | None = None

    async def __call__(self, producer: AsyncProducer, topic: str) -> None:
        """Raise TargetRefused where a broker of the topic's route may not be used."""
        if self._guard.agreement.everything:
            return
        if producer.brokers_of(topic) is None:
            with suppress(ClientError):  # the send says it, with its attempts
                await producer.queues_of(topic)
        if not self._new(producer, topic):
            return
        async with self._lock:
            if self._refusal is not None:
                raise self._refusal
            new = self._new(producer, topic)
            try:
                if new and not await self._ask(new, topic):
                    raise TargetRefused("nothing was sent to them: nobody agreed")
            except TargetRefused as refusal:
                self._refusal = refusal
                raise
            self._guard.agreement.add(new)

    def _new(self, producer: AsyncProducer, topic: str) -> list[str]:
        covers = self._guard.agreement.covers
        named = producer.brokers_of(topic) or ()
        return sorted({one for one in named if not covers(one) and _may_be_host(one)})


def _may_be_host(address: str) -> bool:
    """Return whether there is anything to agree to: what can be no host is refused when used."""
    return address.isprintable() and " " not in address


class TypedLine:
    """A line that somebody types, waited for by the loop: what is under way goes on meanwhile."""

    def __init__(self) -> None:
        self._line: asyncio.Future[str] | None = None
        self._ended = False

    async def read(self, stream: TextIO) -> str:
        """Return the next line of a terminal; empty where `end` comes first."""
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
        """Wait for no line any more; may be called by a signal handler."""
        self._ended = True
        if self._line is not None:
            self._line.get_loop().call_soon_threadsafe(self._settle, "")

    def _settle(self, text: str) -> None:
        if self._line is not None and not self._line.done():
            self._line.set_result(text)
