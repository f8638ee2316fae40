"""Sends of a producer whose network is a script."""

from __future__ import annotations

from replay.errors import SendFailed
from replay.message import Message, SendMode, SendResult
from replay.wire.operation import RunningOperation

from ..script import Bench

SYNC, ASYNC, ONEWAY = SendMode.SYNC, SendMode.ASYNC, SendMode.ONEWAY


def message() -> Message:
    return Message("T", b"body")


def result_of(operation: RunningOperation[object]) -> SendResult:
    assert isinstance(operation.result, SendResult)
    return operation.result


def failure_of(operation: RunningOperation[object]) -> SendFailed:
    assert isinstance(operation.error, SendFailed)
    return operation.error


def send(bench: Bench, mode: SendMode = SYNC, **options: object) -> RunningOperation[object]:
    return bench.run(bench.sender.send(message(), mode, **options))  # type: ignore[arg-type]


def every_broker(bench: Bench, behaviour: object) -> None:
    for address in bench.brokers.values():
        bench.network.peers[address] = behaviour  # type: ignore[assignment]
