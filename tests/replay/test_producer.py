"""The two producers: what they tell, hooks, attempts, traces, captures; and what they do not do."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path

import msgspec
import pytest

from dissectors.decode.pipeline import Decode
from dissectors.remoting.bodies.trace import decode_trace
from replay import (
    AsyncProducer,
    Attempt,
    Message,
    Producer,
    ProducerConfig,
    SendMode,
    WireCapture,
    record_of_attempt,
)
from replay.errors import ClosedError, InvalidMessageError, NameServerError, SendFailed
from replay.hooks import SendContext

from .responder import Responder, responding, silence, store

SYNC, ASYNC, ONEWAY = SendMode.SYNC, SendMode.ASYNC, SendMode.ONEWAY


def config_of(responder: Responder, **settings: object) -> ProducerConfig:
    values: dict[str, object] = {"group": "g", "namesrv": responder.address, **settings}
    return ProducerConfig(**values)  # type: ignore[arg-type]


def test_no_thread_is_made() -> None:
    before = {thread.name for thread in threading.enumerate()}
    with responding() as responder:
        with Producer(config_of(responder)) as producer:
            producer.send(Message("T", b"x"))
            names = {thread.name for thread in threading.enumerate()}

        async def run() -> set[str]:
            async with AsyncProducer(config_of(responder)) as producer:
                await producer.send(Message("T", b"x"))
                return {thread.name for thread in threading.enumerate()}

        names |= asyncio.run(run())
    own = {name for name in names if "_accept" not in name and "_talk" not in name}
    assert own <= before


def test_a_producer_may_be_shared_by_threads() -> None:
    with responding() as responder, Producer(config_of(responder)) as producer:
        results: list[object] = []

        def work() -> None:
            results.extend(producer.send(Message("T", b"x")) for _ in range(50))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 200
        assert producer.connections == 1


def test_closed_is_closed() -> None:
    with responding() as responder:
        producer = Producer(config_of(responder))
        producer.close()
        producer.close()
        with pytest.raises(ClosedError):
            producer.send(Message("T", b"x"))
        with pytest.raises(ClosedError):
            producer.poll()


def test_without_a_nameserver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NAMESRV_ADDR", raising=False)
    with pytest.raises(NameServerError, match="NAMESRV_ADDR"):
        Producer(ProducerConfig(group="g"))


def test_an_asynchronous_producer_tells_through_its_futures() -> None:
    async def run() -> None:
        producer = AsyncProducer(ProducerConfig(group="g", namesrv="127.0.0.1:1"))
        with pytest.raises(ClosedError):
            await producer.send(Message("T", b"x"))
        async with producer:
            with pytest.raises(InvalidMessageError):
                await producer.send(Message("T", b""))
            with pytest.raises(NameServerError):
                await producer.send(Message("T", b"x"))

    asyncio.run(run())


class Recorder:
    """A hook that notes what it is told, and fails where it is told to."""

    def __init__(self, fails: bool = False) -> None:
        self.seen: list[tuple[str, str, object]] = []
        self.fails = fails

    def before_send(self, context: SendContext) -> None:
        self.seen.append(("before", context.queue.broker_name, context.attempt))
        context.state["mark"] = len(self.seen)
        if self.fails:
            raise RuntimeError("hook")

    def after_send(self, context: SendContext) -> None:
        assert "mark" in context.state
        self.seen.append(("after", context.queue.broker_name, context.error or context.result))
        assert context.attempt is not None


@pytest.mark.parametrize("fails", [False, True])
def test_hooks_see_every_attempt_and_cannot_stop_it(fails: bool) -> None:
    from .responder import answer

    with responding(brokers=2) as responder:
        count = 0

        def once(connection, command, body) -> None:  # type: ignore[no-untyped-def]
            nonlocal count
            count += 1
            if count == 1:
                answer(connection, command, 14)
            else:
                store(connection, command, body)

        responder.serve = once
        hook = Recorder(fails)
        with Producer(config_of(responder, hooks=(hook,))) as producer:
            result = producer.send(Message("T", b"x"))
    assert [row[0] for row in hook.seen] == ["before", "after", "before", "after"]
    assert isinstance(hook.seen[1][2], Exception)
    assert hook.seen[3][2] == msgspec.structs.replace(result, hook_errors=())
    assert [str(error) for error in result.hook_errors] == (["hook", "hook"] if fails else [])


def test_every_attempt_is_a_row_like_a_captured_one() -> None:
    rows = []

    def note(message: Message, attempt: Attempt) -> None:
        rows.append(record_of_attempt(message, attempt))

    with responding() as responder, Producer(config_of(responder, on_attempt=note)) as producer:
        producer.send(Message("T", b"x", tags="a", keys="k"))
        producer.send(Message("T", b"x"), mode=ONEWAY)
        responder.serve = silence
        with pytest.raises(SendFailed):
            producer.send(Message("T", b"x"), timeout_ms=200)
    assert [row.status for row in rows] == ["answered", "oneway", "unanswered"]
    assert rows[0].topic == "T"
    assert rows[0].response_code == 0


@pytest.mark.parametrize("blocking", [True, False])
def test_a_capture_of_what_was_sent_decodes_to_the_same(blocking: bool, tmp_path: Path) -> None:
    path = tmp_path / "own.pcapng"
    with responding() as responder, WireCapture(str(path)) as wire:
        config = config_of(responder, wire=wire)
        if blocking:
            with Producer(config) as producer:
                results = [producer.send(Message("T", b"body %d" % n)) for n in range(20)]
        else:

            async def run() -> list[object]:
                async with AsyncProducer(config) as producer:
                    sends = [producer.send(Message("T", b"body %d" % n)) for n in range(20)]
                    return list(await asyncio.gather(*sends))

            results = asyncio.run(run())  # type: ignore[assignment]
    records = [record for batch in Decode([str(path)]).records() for record in batch]
    sends = [record for record in records if record.request_code == 310]
    assert [record.status for record in sends] == ["answered"] * 20
    assert {record.unique_key for record in sends} == {one.unique_key for one in results}
    assert {record.client_address for record in sends} == {one.attempts[0].local for one in results}


@pytest.mark.parametrize("blocking", [True, False])
def test_traces_tell_of_the_sends(blocking: bool) -> None:
    with responding() as responder:
        config = config_of(responder, trace=True)
        if blocking:
            with Producer(config) as producer:
                results = [producer.send(Message("T", b"x", keys="k")) for _ in range(13)]
        else:

            async def run() -> list[object]:
                async with AsyncProducer(config) as producer:
                    return [await producer.send(Message("T", b"x", keys="k")) for _ in range(13)]

            results = asyncio.run(run())  # type: ignore[assignment]
        told = [
            (command, body)
            for command, body in responder.received
            if command.code == 310 and command.ext_fields["b"] == "RMQ_SYS_TRACE_TOPIC"
        ]
    assert len(told) == 2
    assert all("TRACE_PRODUCER" in command.ext_fields["a"] for command, _ in told)
    records = [row for _, body in told for row in decode_trace(body).records]
    assert [row["msgId"] for row in records] == [one.unique_key for one in results]


def test_a_listener_may_send_itself() -> None:
    """What is called back in a blocking call may use the producer."""
    from .sending.test_transaction import check_frame, storing

    with responding() as responder:
        first = True

        def serve(connection, command, body) -> None:  # type: ignore[no-untyped-def]
            nonlocal first
            if first:
                connection.sendall(check_frame("g"))
                first = False
            storing(0)(connection, command, body)  # type: ignore[operator]

        responder.serve = serve
        sent: list[object] = []

        def listen(message: Message) -> object:
            sent.append(producer.send(Message("T", b"from the listener")))
            return None

        producer = Producer(config_of(responder, check_listener=listen))
        with producer:
            producer.send(Message("T", b"x"))
            producer.poll(0.2)
        assert len(sent) == 1
        assert len(responder.sends()) == 2


def test_an_interrupt_ends_the_wait_and_leaves_the_producer_whole() -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    seen: list[Attempt] = []
    with responding() as responder:
        config = config_of(responder, on_attempt=lambda _, attempt: seen.append(attempt))
        with Producer(config) as producer:
            producer.send(Message("T", b"x"))
            responder.serve = silence
            former = signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            try:
                with pytest.raises(KeyboardInterrupt):
                    producer.send(Message("T", b"x"))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, former)
            assert seen[-1].outcome == "cancelled"
            responder.serve = store
            assert producer.send(Message("T", b"x")).queue_offset == 7


def test_a_namespace_counts_for_the_length_of_a_topic() -> None:
    with (
        responding() as responder,
        Producer(config_of(responder, namespace="space" * 4)) as producer,
    ):
        assert producer.send(Message("T" * 100, b"x")).queue.topic == "T" * 100
        assert responder.sends()[0].ext_fields["b"] == "space" * 4 + "%" + "T" * 100
        with pytest.raises(InvalidMessageError):
            producer.send(Message("T" * 120, b"x"))
        with pytest.raises(InvalidMessageError):
            producer.send_batch([Message("T" * 120, b"x")])
