"""A broker killed, frozen and restarted in the middle of 10,000 messages.

What was reported as stored is there, nothing is reported twice, and what a consumer finds twice was
named: an attempt without answer went before.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from uuid import uuid4

import pytest

from dissectors.remoting.code_sets import SENDS as SENDS_OF_MESSAGES
from replay.async_producer import AsyncProducer
from replay.config import ProducerConfig
from replay.errors import ClientError, SendFailed
from replay.fault import FaultSettings
from replay.message import Attempt, AttemptOutcome, Message, SendMode, SendResult
from replay.producer import Producer
from tests.cluster.producer.producing import read_by_java, stored_in
from tests.cluster.servers import faults, probe
from tests.cluster.servers.cluster import Cluster
from tests.cluster.servers.processes import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

COUNT = 10_000
HIT, HEAL, WHOLE = 2500, 5000, 7500
"""message before which the fault begins, healing begins, healing has ended"""
IN_FLIGHT = 200
SHORT = (0, 0, 200, 500, 600, 1000, 1000)
"""ms that the strategy avoids a broker for: the test must not wait for Java's ten seconds"""
SETTLED = 3.0
"""s after which routes are fresh and nothing is avoided any more"""
BACK = 60.0
"""s: a broker that has just started is slow and avoided for it; messages go on until it is used"""
BETWEEN = 0.02
"""s between these messages"""
WITHOUT_ANSWER = (AttemptOutcome.TIMEOUT, AttemptOutcome.LOST)


@pytest.fixture(scope="session")
def healer() -> Iterator[Executor]:
    """One thread that lasts: a server that it started ends with it."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


class Fault:
    """Goes wrong and heals as the messages go by."""

    def __init__(self, cluster: Cluster, kind: str, healer: Executor) -> None:
        self._healer = healer
        self._cluster = cluster
        self._kind = kind
        self._broker = cluster.broker("broker-a")
        self._stack = ExitStack()
        self._killing: Future[None] | None = None
        self._healing: Future[None] | None = None
        self._ends: float | None = None

    def at(self, number: int) -> None:
        """Message `number` is about to be sent."""
        if number == HIT:
            if self._kind == "killed":
                # Sends go on while the process ends, which takes seconds on a busy machine: without
                # any, routes would drop the broker before a message is sent to it.
                self._killing = self._healer.submit(faults.kill, self._broker)
            else:
                self._stack.enter_context(faults.frozen(self._broker))
        elif number == HEAL:
            self._healing = self._healer.submit(self._heal)

    def wait_whole(self) -> None:
        """Until the broker serves again; sends may go on meanwhile."""
        assert self._healing is not None
        if self._killing is not None:
            self._killing.result()
        self._healing.result()

    def enough(self, number: int, outcomes: Outcomes) -> bool:
        """True where no message `number` is needed: the broker is used again, or never will be."""
        if number < COUNT:
            return False
        self._ends = self._ends or time.monotonic() + BACK
        return outcomes.used_again or time.monotonic() > self._ends

    def _heal(self) -> None:
        if self._kind == "killed":
            # The NameServer lists a broker that was killed until it has seen its connection end.
            wait_until("the broker is unlisted", lambda: not self._listed(), 60.0)
            faults.restart(self._cluster, self._broker)
        else:
            self._stack.close()

    def _listed(self) -> bool:
        namesrv = self._cluster.namesrvs[0].address
        return probe.is_registered(namesrv, self._broker.registered_as)


class Outcomes:
    """What was reported of each message."""

    def __init__(self) -> None:
        self.stored: dict[str, SendResult] = {}
        self.failed: dict[str, ClientError] = {}
        self.reports: Counter[str] = Counter()
        self.used_again = False
        """the broker that failed has stored a message since it was whole"""

    def add(
        self, number: int, message: Message, result: SendResult | None, error: ClientError | None
    ) -> None:
        """The send of a message has ended."""
        key = message.unique_key
        assert key is not None
        self.reports[key] += 1
        if result is not None:
            self.stored[key] = result
            if number >= WHOLE and result.queue.broker_name == "broker-a":
                self.used_again = True
        else:
            assert error is not None
            self.failed[key] = error

    def attempts(self, key: str) -> tuple[Attempt, ...]:
        """All tries of a message."""
        result = self.stored.get(key)
        return self.failed[key].attempts if result is None else result.attempts

    def unsure(self, key: str) -> int:
        """Attempts of which nobody knows whether the broker stored the message."""
        return sum([attempt.outcome in WITHOUT_ANSWER for attempt in self.attempts(key)])


def _config(cluster: Cluster, **options: object) -> ProducerConfig:
    return ProducerConfig(
        group="fault_group",
        namesrv=cluster.namesrv_text,
        send_timeout_ms=20_000,
        send_max_timeout_per_request_ms=1000,
        retries=5,
        retries_async=5,
        fault=FaultSettings("5.1", not_available=SHORT),
        poll_namesrv_ms=1000,
        **options,  # type: ignore[arg-type]
    )


def _messages(topic: str) -> Iterator[Message]:
    for number in count():
        yield Message(topic, f"message {number}".encode(), keys=f"k{number}")


def _send_sync(cluster: Cluster, topic: str, fault: Fault, outcomes: Outcomes) -> None:
    with Producer(_config(cluster)) as producer:
        for number, message in enumerate(_messages(topic)):
            if fault.enough(number, outcomes):
                break
            fault.at(number)
            if number == WHOLE:
                fault.wait_whole()
                producer.poll(SETTLED)
            elif number > COUNT:
                producer.poll(BETWEEN)
            try:
                outcomes.add(number, message, producer.send(message, mode=SendMode.SYNC), None)
            except ClientError as error:
                outcomes.add(number, message, None, error)


def _codes_in_flight(producer: AsyncProducer) -> list[int]:
    """Codes of the requests that wait for an answer or for their connection."""
    codes = []
    for channel in producer._started.client.channels:
        sent = channel.connection.table.values() if channel.connection is not None else ()
        codes += [one.request.code for one in (*sent, *channel._waiting)]
    return codes


def _send_async(cluster: Cluster, topic: str, fault: Fault, outcomes: Outcomes) -> None:
    async def send() -> None:
        messages = enumerate(_messages(topic))
        async with AsyncProducer(_config(cluster)) as producer:

            async def whole() -> None:
                await asyncio.to_thread(fault.wait_whole)
                await asyncio.sleep(SETTLED)

            waiting: list[asyncio.Task[None]] = []

            async def work() -> None:
                for number, message in messages:
                    if fault.enough(number, outcomes):
                        break
                    fault.at(number)
                    if number == WHOLE:
                        waiting.append(asyncio.create_task(whole()))
                    if waiting:
                        await waiting[0]
                    if number > COUNT:
                        await asyncio.sleep(IN_FLIGHT * BETWEEN)
                    try:
                        result = await producer.send(message, timeout_ms=5000)
                        outcomes.add(number, message, result, None)
                    except ClientError as error:
                        outcomes.add(number, message, None, error)

            await asyncio.gather(*[work() for _ in range(IN_FLIGHT)])
            # Routes are asked for and heartbeats sent at any time; no request stays for ever.
            assert SENDS_OF_MESSAGES.isdisjoint(_codes_in_flight(producer))
            async with asyncio.timeout(5.0):
                while producer.in_flight:
                    await asyncio.sleep(0.01)

    asyncio.run(send())


SENDS: dict[str, Callable[[Cluster, str, Fault, Outcomes], None]] = {
    "sync": _send_sync,
    "async": _send_async,
}


@pytest.mark.parametrize("kind", ["killed", "frozen"])
@pytest.mark.parametrize("mode", sorted(SENDS))
def test_ten_thousand_messages_and_a_broker_that_fails(
    rocketmq: Cluster, healer: Executor, mode: str, kind: str
) -> None:
    # A second try must not find the messages of the first.
    topic = f"Fault-{mode}-{kind}-{uuid4().hex[:6]}"
    rocketmq.make_topic(topic)
    outcomes = Outcomes()
    SENDS[mode](rocketmq, topic, Fault(rocketmq, kind, healer), outcomes)

    assert len(outcomes.reports) >= COUNT
    assert set(outcomes.reports.values()) == {1}, "a message was reported twice"
    if mode == "sync":
        assert not outcomes.failed
    brokers = {result.queue.broker_name for result in outcomes.stored.values()}
    assert brokers == {"broker-a", "broker-b"}
    assert outcomes.used_again, "the broker was not used again"

    read = read_by_java(rocketmq, topic, stored_in(rocketmq, topic), wait_ms=60_000)
    times = Counter(one.msg_id for one in read)
    lost = [key for key in outcomes.stored if key not in times]
    assert not lost, f"{len(lost)} reported as stored are not there: {lost[:3]}"
    for key, number in times.items():
        named = outcomes.unsure(key) + (key in outcomes.stored)
        assert number <= named, f"{key} is there {number} times: {outcomes.attempts(key)}"
    bodies = {one.msg_id: one.body for one in read}
    assert len(set(bodies.values())) == len(bodies)
    for key, error in outcomes.failed.items():
        assert isinstance(error, SendFailed)
        assert error.attempts
        if key in times:  # it failed and is there: then without an answer
            assert outcomes.unsure(key)
    retried = sum([len(result.attempts) > 1 for result in outcomes.stored.values()])
    twice = sum([number > 1 for number in times.values()])
    print(f"{mode} {kind}: {len(outcomes.stored)} stored, {len(outcomes.failed)} failed,", end=" ")
    print(f"{retried} took more than one attempt, {twice} are there twice")
    # An asynchronous send may end with its first attempt, when its time is over.
    assert retried or (mode == "async" and outcomes.failed)
