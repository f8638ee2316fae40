"""Both drivers of the producer, behind one call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from replay import AsyncProducer, Message, Producer, ProducerConfig, SendMode
from replay.errors import ClientError
from replay.message import SendResult

from ..responder import Responder

SYNC, ASYNC, ONEWAY = SendMode.SYNC, SendMode.ASYNC, SendMode.ONEWAY
SLACK_MS = 800
"""less than a second try would take"""
Outcome = SendResult | Exception
Driver = Callable[[ProducerConfig, list[SendMode]], list[Outcome]]


def message() -> Message:
    return Message("T", b"body")


def blocking(config: ProducerConfig, modes: list[SendMode]) -> list[Outcome]:
    """Send a message a mode, one after the other; what came of each."""
    found: list[Outcome] = []
    with Producer(config) as producer:
        for mode in modes:
            try:
                found.append(producer.send(message(), mode=mode))
            except ClientError as error:
                found.append(error)
    return found


def asynchronous(config: ProducerConfig, modes: list[SendMode]) -> list[Outcome]:
    """The same on a loop."""

    async def run() -> list[Outcome]:
        found: list[Outcome] = []
        async with AsyncProducer(config) as producer:
            for mode in modes:
                try:
                    found.append(await producer.send(message(), mode=mode))
                except ClientError as error:
                    found.append(error)
        return found

    return asyncio.run(run())


every_driver = pytest.mark.parametrize("driver", [blocking, asynchronous])


def config_of(responder: Responder, **settings: object) -> ProducerConfig:
    values: dict[str, object] = {"group": "g", "namesrv": responder.address, **settings}
    return ProducerConfig(**values)  # type: ignore[arg-type]
