"""Sends that wait in line: bursts, the limit, flushing, and the end of a producer."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from dissectors.endpoint import endpoint_of_socket
from dissectors.remoting.command import RemotingCommand
from replay import AsyncProducer, Message, ProducerConfig, SendMode, TransactionState
from replay.errors import (
    BrokerError,
    ClosedError,
    ConfigError,
    InvalidMessageError,
    NameServerError,
    SendFailed,
    TooManyRequestsError,
    UnsentError,
)
from replay.message import SendResult
from replay.sandbox import Sandbox, SandboxOptions, SandboxThread, sandbox_thread
from replay.send_queue import Flushed

from .responder import answer, responding, silence, store

TOPIC = "Orders"


def message() -> Message:
    return Message(TOPIC, b"x")


def config_of(box: Sandbox | SandboxThread, **settings: Any) -> ProducerConfig:
    return ProducerConfig(group="g", namesrv=box.namesrv, **settings)


def stored(box: SandboxThread) -> int:
    return box.call(lambda one: sum(len(broker.state.store) for broker in one.brokers.values()))


async def outcomes(sends: list[asyncio.Future[SendResult]]) -> list[Any]:
    return await asyncio.gather(*sends, return_exceptions=True)


# -- bursts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(SendMode))
def test_a_burst_in_one_turn_of_the_loop_loses_nothing(mode: SendMode) -> None:
    """The turn takes longer than a send may; no time of a send has begun."""
    with sandbox_thread() as box:

        async def run() -> list[Any]:
            # The sandbox runs in this process: a busy machine stops both for more than a second.
            async with AsyncProducer(config_of(box, send_timeout_ms=4000)) as producer:
                sends = [producer.send(message(), mode=mode) for _ in range(1500)]
                time.sleep(4.2)
                return await outcomes(sends)

        assert [one for one in asyncio.run(run()) if isinstance(one, Exception)] == []
        assert stored(box) == 1500


@pytest.mark.slow
def test_a_burst_of_100_000_before_the_first_route() -> None:
    with sandbox_thread(SandboxOptions(store_limit=1 << 30)) as box:

        async def run() -> list[Any]:
            # Garbage collection stops producer and sandbox for seconds on a busy machine.
            async with AsyncProducer(config_of(box, send_timeout_ms=10_000)) as producer:
                return await outcomes([producer.send(message()) for _ in range(100_000)])

        assert [one for one in asyncio.run(run()) if isinstance(one, Exception)] == []
        assert stored(box) == 100_000


@pytest.mark.slow
def test_a_burst_before_the_first_route_lets_thousands_run_at_once() -> None:
    with sandbox_thread(SandboxOptions(store_limit=1 << 30)) as box:
        # The sandbox runs in this process: garbage collection on a busy machine stops both for
        # seconds. No send may time out then, and no heartbeat that does may close the connection.
        config = config_of(box, send_timeout_ms=60_000, close_on_timeout=False)
        highest = 0

        async def run() -> list[Any]:
            nonlocal highest
            async with AsyncProducer(config) as producer:
                sends = [producer.send(message()) for _ in range(10_000)]
                while not sends[-1].done():
                    highest = max(highest, producer.in_flight)
                    await asyncio.sleep(0.01)
                return await outcomes(sends)

        assert [one for one in asyncio.run(run()) if isinstance(one, Exception)] == []
        assert stored(box) == 10_000
        assert highest > 1000


def test_a_burst_waits_for_a_slow_broker() -> None:
    """It takes twice as long as a send may."""
    with responding() as responder:
        config = ProducerConfig(group="g", namesrv=responder.address, send_timeout_ms=2000)
        highest = 0

        def serve(*arguments: Any) -> None:
            time.sleep(0.02)
            store(*arguments)

        async def run() -> list[Any]:
            nonlocal highest
            async with AsyncProducer(config) as producer:
                sends = [producer.send(Message("T", b"x")) for _ in range(200)]
                while not all(one.done() for one in sends):
                    highest = max(highest, producer.in_flight)
                    await asyncio.sleep(0.01)
                return await outcomes(sends)

        responder.serve = serve
        assert [one for one in asyncio.run(run()) if isinstance(one, Exception)] == []
        assert 32 <= highest < 100


def test_in_flight_least_runs_however_slow_the_responses() -> None:
    with responding() as responder:
        config = ProducerConfig(group="g", namesrv=responder.address, in_flight_least=300)

        async def run() -> None:
            async with AsyncProducer(config) as producer:
                await producer.send(Message("T", b"x"))
                responder.serve = silence
                sends = [producer.send(Message("T", b"x")) for _ in range(350)]
                await asyncio.sleep(0.3)
                assert producer.in_flight == 300
                assert (await producer.close(0)).unfinished == 350
                await outcomes(sends)

        asyncio.run(run())
    with pytest.raises(ConfigError, match="in_flight_least: must be positive, not 0"):
        ProducerConfig(group="g", in_flight_least=0)


def test_a_dead_broker_does_not_hold_up_the_others() -> None:
    with responding(brokers=2) as responder:
        config = ProducerConfig(group="g", namesrv=responder.address, send_timeout_ms=800)
        dead = responder.addresses[1]

        def serve(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
            if endpoint_of_socket(connection.getsockname()) != dead:
                store(connection, command, body)

        async def run() -> tuple[list[Any], float]:
            async with AsyncProducer(config) as producer:
                begin = time.monotonic()
                sends = [producer.send(Message("T", b"x")) for _ in range(2000)]
                healthy = 0
                while healthy < 1000 and time.monotonic() < begin + 20:
                    await asyncio.sleep(0.01)
                    healthy = sum(one.done() and one.exception() is None for one in sends)
                seconds = time.monotonic() - begin
                return await outcomes(sends), seconds

        responder.serve = serve
        results, seconds = asyncio.run(run())
        failed = [one for one in results if isinstance(one, Exception)]
        assert len(failed) == 1000
        assert all(isinstance(one, SendFailed) for one in failed)
        assert seconds < 5


def test_refusals_let_the_line_go_on() -> None:
    """A broker that refuses answers: nothing behind it in line is given up."""
    with responding() as responder:
        config = ProducerConfig(group="g", namesrv=responder.address, send_timeout_ms=1000)

        def serve(connection: socket.socket, command: RemotingCommand, body: bytes) -> None:
            time.sleep(0.002)
            if body == b"good":
                store(connection, command, body)
            else:
                answer(connection, command, 13)

        async def run() -> list[Any]:
            async with AsyncProducer(config) as producer:
                bodies = [b"bad"] * 700 + [b"good"] * 5
                return await outcomes([producer.send(Message("T", body)) for body in bodies])

        responder.serve = serve
        results = asyncio.run(run())
        assert all(isinstance(one.cause, BrokerError) for one in results[:700])
        assert not [one for one in results[700:] if isinstance(one, Exception)]


def test_a_line_ends_when_nobody_answers() -> None:
    """Not after as many timeouts as fit in the line."""
    with responding() as responder:
        responder.serve_route = silence
        config = ProducerConfig(group="g", namesrv=responder.address, send_timeout_ms=300)

        async def run() -> tuple[list[Any], float]:
            begin = time.monotonic()
            async with AsyncProducer(config) as producer:
                sends = [producer.send(Message("T", b"x")) for _ in range(200)]
                return await outcomes(sends), time.monotonic() - begin

        results, seconds = asyncio.run(run())
        kinds = {type(one) for one in results}
        assert kinds == {NameServerError, TooManyRequestsError}
        late = "not started within 300 ms: other sends got no response; "
        assert str(results[-1]).startswith(late)
        assert seconds < 3


def test_a_send_that_is_cancelled_in_line_is_not_sent() -> None:
    with sandbox_thread() as box:

        async def run() -> Flushed:
            async with AsyncProducer(config_of(box)) as producer:
                sends = [producer.send(message()) for _ in range(10)]
                for one in sends[5:]:
                    one.cancel()
                assert await producer.flush() == Flushed(5, 0, 0)
                return await producer.close()

        assert asyncio.run(run()) == Flushed(0, 0, 0)
        assert stored(box) == 5


def test_a_burst_of_transactions_loses_nothing() -> None:
    with sandbox_thread() as box:

        async def run() -> list[Any]:
            async with AsyncProducer(config_of(box, send_timeout_ms=1000)) as producer:
                tasks = [
                    asyncio.ensure_future(
                        producer.send_in_transaction(message(), lambda _: TransactionState.COMMIT)
                    )
                    for _ in range(300)
                ]
                await asyncio.sleep(0)
                time.sleep(1.2)
                return await asyncio.gather(*tasks, return_exceptions=True)

        assert [one for one in asyncio.run(run()) if isinstance(one, Exception)] == []


# -- flush and close ----------------------------------------------------------------------------


def test_leaving_the_block_sends_what_was_not_awaited() -> None:
    with sandbox_thread() as box:

        async def run() -> None:
            async with AsyncProducer(config_of(box)) as producer:
                for _ in range(1000):
                    producer.send(message())

        asyncio.run(run())
        assert stored(box) == 1000


def test_flush_says_how_the_sends_ended() -> None:
    with sandbox_thread() as box:

        async def run() -> None:
            producer = AsyncProducer(config_of(box))
            await producer.start()
            assert await producer.flush() == Flushed(0, 0, 0)
            good = [producer.send(message()) for _ in range(7)]
            bad = [producer.send(Message("", b"x")) for _ in range(2)]
            batch = producer.send_batch([message(), message()])
            assert await producer.flush() == Flushed(8, 2, 0)
            assert all(one.done() for one in (*good, *bad, batch))
            assert {type(one.exception()) for one in bad} == {InvalidMessageError}
            producer.send(message())
            assert await producer.close() == Flushed(1, 0, 0)
            assert await producer.close() == Flushed(0, 0, 0)
            with pytest.raises(ClosedError):
                await producer.flush()

        asyncio.run(run())
        assert stored(box) == 10


def test_close_counts_and_fails_what_has_not_ended(caplog: pytest.LogCaptureFixture) -> None:
    with responding() as responder:
        config = ProducerConfig(group="g", namesrv=responder.address)

        async def run() -> list[Any]:
            producer = AsyncProducer(config)
            await producer.start()
            await producer.send(Message("T", b"x"))
            responder.serve = silence
            sends = [producer.send(Message("T", b"x")) for _ in range(70)]
            assert await producer.flush(0.05) == Flushed(0, 0, 70)
            assert not any(one.done() for one in sends), "they go on"
            begin = time.monotonic()
            closing = asyncio.ensure_future(producer.close(0.2))
            await asyncio.sleep(0)
            with pytest.raises(ClosedError):
                await producer.send(Message("T", b"x"))
            assert await closing == Flushed(0, 0, 70)
            assert time.monotonic() - begin < 2
            return await outcomes(sends)

        with caplog.at_level(logging.WARNING, "rmqtool.replay"):
            results = asyncio.run(run())
        for one in results[:32]:
            assert isinstance(one, SendFailed)
            assert isinstance(one.cause, ClosedError)
            assert len(one.attempts) == 1
            assert "the broker may have stored it" in str(one)
        for one in results[32:]:
            assert type(one) is ClosedError
            assert "it was not sent" in str(one)
        assert [one.message for one in caplog.records] == [
            "the producer was closed before 70 sends had ended"
        ]


def silent(
    leave: Callable[[], None], timeout_ms: int = 300
) -> tuple[BaseException | None, list[str], float]:
    """Leave a block while a send is not answered; what was raised, warned, and the seconds."""
    warned: list[str] = []
    with responding() as responder:
        config = ProducerConfig(group="g", namesrv=responder.address, close_timeout_ms=timeout_ms)

        async def run() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: warned.append(context["message"]))
            async with AsyncProducer(config) as producer:
                await producer.send(Message("T", b"x"))
                responder.serve = silence
                producer.send(Message("T", b"x"))
                await asyncio.sleep(0.05)
                leave()

        begin = time.monotonic()
        try:
            asyncio.run(run())
        except BaseException as error:
            return error, warned, time.monotonic() - begin
        return None, warned, time.monotonic() - begin


def raise_of(error: BaseException) -> Callable[[], None]:
    def leave() -> None:
        raise error

    return leave


def test_leaving_the_block_raises_what_was_not_sent() -> None:
    error, warned, _ = silent(lambda: None)
    assert isinstance(error, UnsentError)
    assert error.count == 1
    assert error.reason == "the producer was closed before 1 send had ended"
    assert warned == []


def test_an_error_of_the_block_is_not_hidden_and_what_was_begun_is_waited_for() -> None:
    raised = KeyError("mine")
    error, _, seconds = silent(raise_of(raised))
    assert error is raised
    assert seconds >= 0.3


def test_a_cancelled_block_waits_for_nothing() -> None:
    error, _, seconds = silent(raise_of(asyncio.CancelledError()), timeout_ms=60_000)
    assert isinstance(error, asyncio.CancelledError)
    assert seconds < 30, "the timeout is far longer than a busy machine takes"


def test_close_waits_for_a_transaction_that_was_begun() -> None:
    with sandbox_thread() as box:

        async def run() -> SendResult:
            producer = AsyncProducer(config_of(box))
            await producer.start()

            async def execute(_: Message) -> TransactionState:
                await asyncio.sleep(0.2)
                return TransactionState.COMMIT

            transaction = asyncio.ensure_future(producer.send_in_transaction(message(), execute))
            await asyncio.sleep(0.05)
            assert await producer.close() == Flushed(1, 0, 0)
            return await transaction

        assert asyncio.run(run()).transaction_state is TransactionState.COMMIT


def test_a_producer_of_another_loop_is_refused() -> None:
    with sandbox_thread() as box:
        producer = AsyncProducer(config_of(box))

        async def start() -> None:
            await producer.start()
            await producer.send(message())

        async def use() -> list[Any]:
            calls = (producer.send(message()), producer.flush(), producer.close())
            return await asyncio.gather(*calls, return_exceptions=True)

        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(start())
            errors = asyncio.run(use())
            loop.run_until_complete(start())  # it works on its own loop as before
            loop.run_until_complete(producer.close())
        finally:
            loop.close()
        for error in errors:
            assert isinstance(error, ClosedError)
            assert "another event loop" in str(error)
