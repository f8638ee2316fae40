"""What goes wrong when it is asked for, seen from a socket."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.sandbox import (
    EventKind,
    SandboxEvent,
    SandboxOptions,
    SandboxThread,
    TopicSpec,
    injection_of_text,
    sandbox_thread,
)
from replay.sandbox.injection.injection import Injection, InjectionKind
from replay.sandbox.injection.injector import Injector
from replay.sandbox.request import ReceivedRequest
from replay.sandbox.server import Connection, HandlerResponse
from tests.patience import PATIENCE, Stopwatch, wait_for

from ..talk import Talk, heartbeat, send_fields, within

TOPIC = "Orders"


def running(
    *injections: str, brokers: int = 1, seed: int = 0, events: list[SandboxEvent] | None = None
) -> AbstractContextManager[SandboxThread]:
    """A sandbox with these injections."""
    return sandbox_thread(
        SandboxOptions(
            brokers=brokers,
            topics=[TopicSpec(TOPIC)],
            injections=[injection_of_text(text) for text in injections],
            seed=seed,
            on_event=events.append if events is not None else None,
        )
    )


@pytest.fixture
def box() -> Iterator[SandboxThread]:
    with running(brokers=2) as started:
        yield started


def send(broker: Talk, body: bytes = b"x", topic: str = TOPIC) -> int:
    return broker.ask(310, send_fields(topic), body).code


def stored(broker: Talk, topic: str = TOPIC) -> int:
    return int(broker.ask(30, {"topic": topic, "queueId": "0"}).fields["offset"])


@pytest.mark.parametrize(
    ("text", "code", "remark"),
    [
        ("busy", 2, "[TIMEOUT_CLEAN_QUEUE]broker busy"),
        ("disk-full", 14, "disk is full"),
        ("read-only", 16, "sending message is forbidden"),
        ("error=1 remark='create mapped file failed'", 1, "create mapped file failed"),
        ("error=SYSTEM_BUSY remark=[PCBUSY_CLEAN_QUEUE]", 2, "[PCBUSY_CLEAN_QUEUE]"),
        ("error=1500", 1500, "sandbox"),
    ],
)
def test_errors_are_answered_and_nothing_is_stored(text: str, code: int, remark: str) -> None:
    with running(text) as box, Talk(box.addresses["broker-a"]) as broker:
        reply = broker.ask(310, send_fields(TOPIC), b"x")
        assert reply.code == code
        assert remark in reply.remark
        assert stored(broker) == 0
        assert broker.ask(34, body=heartbeat("one")).code == 0  # only sends fail


def test_an_error_after_the_work_stores_the_message() -> None:
    with running("error=10 stored=true") as box, Talk(box.addresses["broker-a"]) as broker:
        reply = broker.ask(310, send_fields(TOPIC), b"x")
        assert (reply.code, reply.fields["queueOffset"]) == (10, "0")
        assert stored(broker) == 1


def test_injections_choose_broker_topic_and_requests(box: SandboxThread) -> None:
    box.add_injections(
        injection_of_text("error=1 broker=broker-b"),
        injection_of_text("error=2 topic=Pay*"),
        injection_of_text("error=3 requests=QUERY_CONSUMER_OFFSET"),
    )
    with Talk(box.addresses["broker-a"]) as first, Talk(box.addresses["broker-b"]) as second:
        assert send(second) == 1
        assert send(first) == 0
        assert send(first, topic="Payments") == 2
        offset = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0"}
        assert first.ask(14, offset).code == 3
        box.clear_injections()
        assert send(second) == 0


def sends_for(box: SandboxThread, seconds: float, text: str) -> list[tuple[float, float, int]]:
    """(begin, end, code) of sends one after the other, after an injection was added at 0."""
    seen = []
    with Talk(box.addresses["broker-a"]) as broker:
        send(broker)
        zero = time.monotonic()
        box.add_injections(injection_of_text(text))
        late = time.monotonic() - zero  # the injection's own clock began some time between the two
        while (at := time.monotonic() - zero) < seconds:
            code = send(broker)
            seen.append((at - late, time.monotonic() - zero, code))
            time.sleep(0.01)
    return seen


@pytest.mark.slow
def test_injections_last_for_their_windows(box: SandboxThread) -> None:
    for _ in range(5):  # a busy machine may leave a window without a whole send
        seen = sends_for(box, 1.0, "busy from=300ms until=700ms")
        box.clear_injections()
        before = {code for _, end, code in seen if end < 0.3}
        within = {code for begin, end, code in seen if begin > 0.3 and end < 0.7}
        after = {code for begin, _, code in seen if begin > 0.7}
        assert before <= {0}
        assert within <= {2}
        assert after <= {0}
        if before and within and after:
            return
    pytest.fail("no sends in a window")


@pytest.mark.slow
def test_injections_come_back(box: SandboxThread) -> None:
    codes: set[int] = set()
    for _ in range(5):  # a busy machine may leave a window without a whole send
        seen = sends_for(box, 1.6, "busy every=800ms for=400ms")
        box.clear_injections()
        for window, expected in enumerate((2, 0, 2, 0)):
            inside = {
                code
                for begin, end, code in seen
                if 0.4 * window < begin and end < 0.4 * window + 0.4
            }
            assert inside <= {expected}
            codes |= inside
        if codes == {0, 2}:
            break
    assert codes == {0, 2}


def fates(seed: int) -> list[int]:
    with running("busy p=0.4", seed=seed) as box, Talk(box.addresses["broker-a"]) as broker:
        return [send(broker) for _ in range(60)]


def test_chance_is_repeated_with_its_seed() -> None:
    first = fates(7)
    assert first == fates(7)
    assert first != fates(8)
    assert 10 < first.count(2) < 40


def test_an_injection_hits_so_often_and_no_more() -> None:
    with running("busy times=3") as box, Talk(box.addresses["broker-a"]) as broker:
        assert [send(broker) for _ in range(5)] == [2, 2, 2, 0, 0]


def test_latency_delays_answers_and_not_the_others() -> None:
    with running("latency=200ms..300ms") as box, Talk(box.addresses["broker-a"]) as broker:
        watch = Stopwatch()
        assert send(broker) == 0
        assert watch.seconds > 0.19
        assert watch.own < 0.6
        with within(0.15):
            assert stored(broker) == 1


def test_latency_comes_before_an_error() -> None:
    both = ("latency=150ms", "busy latency=150ms")
    with running(*both) as box, Talk(box.addresses["broker-a"]) as broker:
        watch = Stopwatch()
        assert send(broker) == 2
        assert watch.seconds > 0.29


def test_no_answer() -> None:
    with running("silent times=1") as box, Talk(box.addresses["broker-a"], 0.5) as broker:
        with pytest.raises(TimeoutError):
            send(broker)
        broker.socket.settimeout(PATIENCE)
        assert send(broker) == 0
        assert stored(broker) == 1


def test_no_answer_although_it_is_stored() -> None:
    silent = "silent times=1 stored=true"
    with running(silent) as box, Talk(box.addresses["broker-a"], 0.5) as broker:
        with pytest.raises(TimeoutError):
            send(broker)
        broker.socket.settimeout(PATIENCE)
        assert stored(broker) == 1


def test_dropped_connections() -> None:
    with running("drop times=1") as box:
        with Talk(box.addresses["broker-a"]) as broker, pytest.raises(ConnectionError):
            send(broker)
        with Talk(box.addresses["broker-a"]) as broker:
            assert send(broker) == 0


def test_half_a_frame() -> None:
    with running("half") as box, Talk(box.addresses["broker-a"]) as broker:
        broker.send(310, send_fields(TOPIC), b"x")
        data = bytearray()
        while part := broker.socket.recv(65536):
            data += part
        assert 8 < len(data) < 4 + int.from_bytes(data[:4], "big")


def test_bytes_that_are_no_frame() -> None:
    with running("garbage times=1", "huge times=1") as box:
        with Talk(box.addresses["broker-a"]) as broker:
            broker.send(310, send_fields(TOPIC), b"x")
            assert broker.socket.recv(8)[0] >= 128
        with Talk(box.addresses["broker-a"]) as broker:
            broker.send(310, send_fields(TOPIC), b"x")
            assert int.from_bytes(broker.socket.recv(8)[:4], "big") == 1 << 30


def test_a_frozen_broker_does_everything_later(box: SandboxThread) -> None:
    with Talk(box.addresses["broker-a"]) as broker, Talk(box.addresses["broker-b"]) as other:
        watch = Stopwatch()
        box.add_injections(injection_of_text("freeze requests=all until=500ms broker=broker-a"))
        assert send(other) == 0
        assert watch.own < 0.4
        assert send(broker) == 0
        assert watch.seconds > 0.4
        assert watch.own < 1.5
        assert stored(broker) == 1


@pytest.mark.slow
def test_a_broker_that_is_down_and_comes_back(box: SandboxThread) -> None:
    with Talk(box.addresses["broker-a"]) as broker:
        assert send(broker) == 0
        box.add_injections(injection_of_text("down until=2s broker=broker-a"))
        with pytest.raises(OSError, match=r"reset|ended"):
            send(broker)
        with pytest.raises(OSError, match=r"reset|ended"), Talk(box.addresses["broker-a"]) as again:
            send(again)

    def is_back() -> bool:
        try:
            with Talk(box.addresses["broker-a"]) as broker:
                return send(broker) == 0
        except OSError:
            return False

    wait_for("the broker is back", is_back, pause=0.1)


def test_a_broker_that_leaves_the_route(box: SandboxThread) -> None:
    def names() -> list[str]:
        with Talk(box.namesrv) as namesrv:
            route = json.loads(namesrv.ask(105, {"topic": TOPIC}).body)
        return [data["brokerName"] for data in route["brokerDatas"]]

    assert names() == ["broker-a", "broker-b"]
    box.add_injections(injection_of_text("leave-route broker=broker-a"))
    assert names() == ["broker-b"]
    with Talk(box.addresses["broker-a"]) as broker:
        assert send(broker) == 0


def test_a_read_only_broker_in_routes(box: SandboxThread) -> None:
    box.add_injections(injection_of_text("read-only broker=broker-b"))
    with Talk(box.namesrv) as namesrv:
        route = json.loads(namesrv.ask(105, {"topic": TOPIC}).body)
    assert [data["perm"] for data in route["queueDatas"]] == [6, 4]


def test_slow_reads() -> None:
    with running("slow-read=100KiB/s") as box, Talk(box.addresses["broker-a"], 10) as broker:
        watch = Stopwatch()
        for _ in range(3):
            assert send(broker, b"x" * 20_000) == 0
        assert watch.seconds > 0.35
        assert watch.own < 3


def test_the_nameserver_has_injections_of_its_own() -> None:
    injections = ("error=1 broker=namesrv requests=route", "busy requests=all")
    with running(*injections) as box, Talk(box.namesrv) as namesrv:
        assert namesrv.ask(105, {"topic": TOPIC}).code == 1
        assert namesrv.ask(106).code == 0


@pytest.mark.slow
def test_injections_are_told_of() -> None:
    events: list[SandboxEvent] = []
    with running("busy from=100ms until=2s", events=events) as box:

        def are_told(windows: int) -> bool:
            return [e.kind for e in events].count(EventKind.WINDOW) == windows

        wait_for("the window begins", lambda: are_told(1))
        with Talk(box.addresses["broker-a"]) as broker:
            send(broker)
        wait_for("the window ends", lambda: are_told(2))
    told = [(e.kind, e.detail) for e in events if e.kind in (EventKind.INJECTED, EventKind.WINDOW)]
    assert told == [
        (EventKind.WINDOW, "begins: busy"),
        (EventKind.INJECTED, "busy: SEND_MESSAGE_V2 to Orders"),
        (EventKind.WINDOW, "ends: busy"),
    ]
    answered = next(event for event in events if event.kind is EventKind.ANSWERED)
    assert (answered.code, answered.response, answered.topic) == (310, 2, TOPIC)


class Watched:
    """A server that notes when windows begin and end."""

    name = "broker-a"

    def __init__(self, clock: Callable[[], float]) -> None:
        self.seen: list[tuple[int, str]] = []
        self._clock = clock

    def tell(self, kind: EventKind, connection: Connection | None = None, detail: str = "") -> None:
        self.seen.append((round(self._clock() * 1000), detail.partition(":")[0]))

    def execute(self, request: ReceivedRequest) -> None: ...
    def note_error(self, request: ReceivedRequest, response: HandlerResponse) -> None: ...
    def drop_connections(self, chosen: Callable[[Connection], bool]) -> None: ...


def windows(text: str, hours: float) -> list[tuple[int, str]]:
    """When the windows of an injection begin and end, in ms, on a clock that does not wait."""
    now = 0.0
    loop = asyncio.SelectorEventLoop()
    select = loop._selector.select  # type: ignore[attr-defined]

    def skip(timeout: float | None) -> object:
        nonlocal now
        now += timeout or 0
        return select(0)

    async def run() -> list[tuple[int, str]]:
        injector, server = Injector(0, lambda: now), Watched(lambda: now)
        injector.watch(server)
        injector.add([injection_of_text(text)])
        await asyncio.sleep(hours * 3600 - 1)
        injector.close()
        return server.seen

    loop.time = lambda: now  # type: ignore[method-assign]
    loop._selector.select = skip  # type: ignore[attr-defined]
    try:
        return loop.run_until_complete(run())
    finally:
        loop.close()


def test_windows_begin_and_end_however_old_the_sandbox_is() -> None:
    hour = 3_600_000
    found = windows("freeze every=1h for=20m", 30)
    begins, ends = [at for at, what in found if what == "begins"], found[1::2]
    assert begins == [number * hour for number in range(30)]
    assert ends == [(at + hour // 3, "ends") for at in begins]
    assert windows("busy from=48h every=1h for=20m until=2950m", 60) == [
        (48 * hour, "begins"),
        (48 * hour + hour // 3, "ends"),
        (49 * hour, "begins"),
        (49 * hour + hour // 6, "ends"),
    ]


@given(
    start=st.integers(0, 5000),
    every=st.integers(100, 1000),
    lasts=st.integers(1, 1000),
    until=st.none() | st.integers(1, 9000),
    at=st.integers(0, 10**12),
)
def test_the_next_window_is_where_it_lasts(
    start: int, every: int, lasts: int, until: int | None, at: int
) -> None:
    lasts = min(lasts, every)
    one = Injection(InjectionKind.BUSY, from_ms=start, until_ms=until, every_ms=every, for_ms=lasts)
    window = one.next_window(at)
    if window is None:
        assert until is not None
        assert until - every <= at or until <= start
        return
    begin, end = window
    assert end is not None
    assert at <= begin < max(at, start) + every
    assert one.lasts_at(begin)
    assert one.lasts_at(end - 1)
    assert lasts == every or not one.lasts_at(end)
