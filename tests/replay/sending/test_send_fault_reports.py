"""What the strategy hears of attempts, by generation, and what that makes of a broker."""

from __future__ import annotations

import pytest

from dissectors.remoting.command import RemotingCommand
from replay.fault import FaultSettings
from replay.message import Message, MessageQueue, SendMode

from ..script import MS, Bench, ScriptLink, dropping, mute, refusing

SYNC, ASYNC, ONEWAY = SendMode.SYNC, SendMode.ASYNC, SendMode.ONEWAY
VICTIM = "broker-a"


def bench_of(generation: str, behaviour: object, **settings: object) -> Bench:
    """A bench whose broker a misbehaves; None: refuses connections."""
    fault = FaultSettings(generation)
    bench = Bench(fault=fault, retries=0, retries_async=0, send_timeout_ms=800, **settings)
    if behaviour is None:
        del bench.network.peers[bench.brokers[VICTIM]]
    else:
        bench.network.peers[bench.brokers[VICTIM]] = behaviour  # type: ignore[assignment]
    return bench


def events(bench: Bench, mode: SendMode, times: int = 40) -> list[str]:
    """What was reported of broker a by the first send that met it."""
    seen: list[str] = []
    report = bench.sender.strategy.report

    def note(broker: str, event: object, latency_ms: int, now: int) -> None:
        if broker == VICTIM:
            seen.append(str(event))
        report(broker, event, latency_ms, now)  # type: ignore[arg-type]

    bench.sender.strategy.report = note  # type: ignore[method-assign]
    for _ in range(times):
        bench.run(bench.sender.send(Message("T", b"x"), mode))
        if seen:
            return seen
    raise AssertionError("the broker was never met")


def unusable(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
    link.answer(command, 0, {"msgId": "A"})


@pytest.mark.parametrize("generation", ["4.7", "4.8", "5.1"])
@pytest.mark.parametrize(
    ("behaviour", "event"),
    [
        (refusing(14), "error code"),
        (mute, "no response"),
        (dropping, "no response"),
        (None, "no response"),
        (unusable, "client error"),
    ],
)
def test_synchronous(generation: str, behaviour: object, event: str) -> None:
    assert events(bench_of(generation, behaviour), SYNC) == [event]


@pytest.mark.parametrize(
    ("generation", "behaviour", "told"),
    [
        ("5.1", refusing(14), ["handed over", "error code (asynchronous)"]),
        ("5.1", mute, ["handed over", "no response (asynchronous)"]),
        ("5.1", None, ["handed over", "no response (asynchronous)"]),
        ("4.8", refusing(14), ["handed over", "error code (asynchronous)"]),
        ("4.8", mute, ["handed over", "no response (asynchronous)"]),
        ("4.8", None, ["not sent (asynchronous)", "handed over"]),
        ("4.7", None, ["not sent (asynchronous)", "handed over"]),
    ],
)
def test_asynchronous(generation: str, behaviour: object, told: list[str]) -> None:
    assert events(bench_of(generation, behaviour), ASYNC) == told


def test_one_way_is_handed_over_or_not_written() -> None:
    assert events(bench_of("5.1", mute), ONEWAY) == ["handed over"]
    assert events(bench_of("5.1", None), ONEWAY) == ["no response"]


def test_an_answer_is_reported_with_its_latency() -> None:
    def slow(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        fields = {"msgId": "A", "queueId": "0", "queueOffset": "1"}
        link.answer(command, 0, fields, delay_ms=600)

    bench = bench_of("5.1", slow)
    events(bench, SYNC)
    (item,) = [one for one in bench.sender.strategy.items() if one.name == VICTIM]
    assert 600 <= item.current_latency <= 610
    assert item.start_timestamp - bench.network.time // MS in range(1990, 2001)


def test_a_chosen_queue_is_not_reported_when_synchronous() -> None:
    bench = bench_of("5.1", refusing(14))
    queue = MessageQueue("T", VICTIM, 0)
    bench.run(bench.sender.send(Message("T", b"x"), SYNC, queue=queue))
    assert bench.sender.strategy.items() == ()
    bench.run(bench.sender.send(Message("T", b"x"), ASYNC, queue=queue))
    assert [one.name for one in bench.sender.strategy.items()] == [VICTIM]
