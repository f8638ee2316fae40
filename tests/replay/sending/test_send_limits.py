"""How many sends and bytes may be in flight, and what happens beyond."""

from __future__ import annotations

from dissectors.remoting.command import RemotingCommand
from replay.errors import TooManyRequestsError
from replay.message import AttemptOutcome, Message

from ..script import Bench, ScriptLink, mute
from .sends import ASYNC, every_broker, failure_of, message, result_of, send


def test_async_limit_is_waited_for_and_then_refused() -> None:
    bench = Bench(async_limit=2, send_timeout_ms=400)
    result_of(send(bench))
    every_broker(bench, mute)
    started = [
        bench.client.runner.start(bench.sender.send(message(), ASYNC, 1000)) for _ in range(2)
    ]
    waiting = bench.client.runner.start(bench.sender.send(message(), ASYNC, 400))
    bench.network.run(450)
    error = failure_of(waiting)
    assert isinstance(error.cause, TooManyRequestsError)
    assert [one.outcome for one in error.attempts] == [AttemptOutcome.BUSY]
    assert not any(one.done for one in started)
    later = bench.client.runner.start(bench.sender.send(message(), ASYNC, 3000))
    assert len(bench.addresses()) == 3
    bench.network.run(700)
    assert all(one.done for one in started)
    assert len(bench.addresses()) == 4, "a permit is handed on"
    later.cancel()
    assert bench.sender.attempts.permits[ASYNC].free == 2


def test_backpressure_lets_few_be_in_flight_and_loses_none() -> None:
    bench = Bench(backpressure=True, backpressure_num=10)

    def slow(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        assert bench.client.channels.in_flight <= 10
        link.answer(command, 0, {"msgId": "A", "queueId": "1", "queueOffset": "2"}, delay_ms=10)

    every_broker(bench, slow)
    started = [bench.client.runner.start(bench.sender.send(message(), ASYNC)) for _ in range(100)]
    bench.network.run(2000)
    assert all(one.error is None and one.done for one in started)


def test_backpressure_counts_bytes_too() -> None:
    bench = Bench(backpressure=True, backpressure_num=1000, backpressure_size=1024 * 1024)
    result_of(send(bench))
    every_broker(bench, mute)
    big = Message("T", bytes(400_000))
    for _ in range(5):
        bench.client.runner.start(bench.sender.send(big, ASYNC))
    bench.network.run(10)
    assert len(bench.addresses()) == 1 + 2
