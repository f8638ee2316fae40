"""Whatever brokers and callers do: every send ends once, in its time, and leaves nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.command import RemotingCommand
from replay.errors import ClientError
from replay.fault import FaultSettings
from replay.message import Message, SendMode, SendResult
from replay.wire.operation import RunningOperation
from tests.profiles import examples

from ..script import MS, STORED, Bench, ScriptLink

MODES = list(SendMode)
SLACK_MS = 25
"""the clock is looked at every 5 ms, and an attempt may begin just before the end"""


@dataclass(frozen=True)
class Deed:
    """What a broker does with one request."""

    kind: str
    delay_ms: int


DEEDS = st.builds(
    Deed,
    st.sampled_from(["store", "store", "store", "code", "go away", "drop", "mute", "garbage"])
    | st.sampled_from(["half", "twice", "unusable", "stranger"]),
    st.integers(0, 700),
)
SENDS = st.tuples(
    st.sampled_from(MODES),
    st.integers(1, 800),  # timeout
    st.integers(0, 300),  # begins after
    st.none() | st.integers(0, 400),  # is cancelled after
)


def behave(deeds: list[Deed]) -> object:
    """A broker that does one deed after the other, over and over."""
    turn = 0

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        nonlocal turn
        deed = deeds[turn % len(deeds)]
        turn += 1
        if command.code != 310:
            link.answer(command)
        elif deed.kind == "drop":
            link.end(delay_ms=deed.delay_ms)
        elif deed.kind == "garbage":
            link.send(b"\x00\x00\x00\x30rubbish!" * 9, deed.delay_ms)
        elif deed.kind == "half":
            link.send(b"\x00\x00\x01\x00\x00\x00", deed.delay_ms)
        elif deed.kind == "stranger":
            other = RemotingCommand(310, command.opaque ^ 0x55555, 0)
            link.answer(other, 0, STORED, delay_ms=deed.delay_ms)
        elif deed.kind == "unusable":
            link.answer(command, 0, {}, delay_ms=deed.delay_ms)
        elif deed.kind == "code":
            link.answer(command, 14, {}, delay_ms=deed.delay_ms)
        elif deed.kind == "go away":
            link.answer(command, 1500, {}, delay_ms=deed.delay_ms)
        elif deed.kind != "mute":
            for _ in range(2 if deed.kind == "twice" else 1):
                link.answer(command, 0, STORED, delay_ms=deed.delay_ms)

    return serve


@pytest.mark.slow
@examples(3)
@given(
    st.lists(DEEDS, min_size=1, max_size=6),
    st.lists(SENDS, min_size=1, max_size=12),
    st.sampled_from([None, "4.7", "4.8", "5.1"]),
    st.integers(1, 4),
    st.booleans(),
)
def test_every_send_ends_once_and_in_time(
    deeds: list[Deed],
    sends: list[tuple[SendMode, int, int, int | None]],
    generation: str | None,
    limit: int,
    backpressure: bool,
) -> None:
    bench = Bench(
        async_limit=limit,
        oneway_limit=limit,
        backpressure=backpressure,
        fault=FaultSettings(generation) if generation else None,
        connect_timeout_ms=200,
    )
    bench.network.connect_ms = 3
    for address in bench.brokers.values():
        bench.network.peers[address] = behave(deeds)  # type: ignore[assignment]
    ends: dict[int, list[int]] = {number: [] for number in range(len(sends))}
    begins: dict[int, int] = {}
    operations: dict[int, RunningOperation[SendResult]] = {}

    def begin(number: int) -> None:
        mode, timeout, _, cancelled_after = sends[number]
        begins[number] = bench.network.time
        steps = bench.sender.send(Message("T", b"x"), mode, timeout)

        def ended(_: object) -> None:
            ends[number].append(bench.network.time)

        operations[number] = bench.client.runner.start(steps, ended)
        if cancelled_after is not None:
            bench.network.later(cancelled_after, operations[number].cancel)

    for number, (_, _, after, _) in enumerate(sends):
        bench.network.later(after, lambda n=number: begin(n))
    bench.network.run(5000)

    for number, (_, timeout, _, cancelled_after) in enumerate(sends):
        operation = operations[number]
        assert operation.done
        assert len(ends[number]) <= 1
        if cancelled_after is None:
            assert len(ends[number]) == 1
        if ends[number]:
            assert (ends[number][0] - begins[number]) / MS <= timeout + SLACK_MS
            failed = operation.error is not None
            assert failed == isinstance(operation.error, ClientError)
    permits = bench.sender.attempts.permits
    assert all(one.free == limit for one in permits.values())
    assert bench.client.channels.in_flight == 0
    # a heartbeat that was answered leaves its deadline, which is looked at once more
    assert all(channel.earliest > bench.network.time for channel in bench.client.channels)
