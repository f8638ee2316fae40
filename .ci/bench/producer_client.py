"""How fast our producer sends, as a process of its own: `NAMESRV TOPIC KIND IN_FLIGHT BODY WARM N`.

With one in flight by blocking sockets, else on an asyncio loop. Prints one line of
JSON, as `SendBench.java` does.
"""

from __future__ import annotations

import asyncio
import json
import sys
from time import perf_counter, perf_counter_ns, process_time

from replay.async_producer import AsyncProducer
from replay.config import ProducerConfig
from replay.errors import ClientError
from replay.message import Message, SendMode
from replay.producer import Producer


class Outcome:
    """What was measured."""

    def __init__(self) -> None:
        self.failed = 0
        self.latencies: list[int] = []

    def percentile(self, percent: int) -> int:
        """µs."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] // 1000


def _blocking(producer: Producer, topic: str, body: bytes, mode: SendMode, count: int) -> Outcome:
    outcome = Outcome()
    latencies = outcome.latencies
    for _ in range(count):
        begin = perf_counter_ns()
        try:
            producer.send(Message(topic, body), mode=mode)
        except ClientError:
            outcome.failed += 1
        latencies.append(perf_counter_ns() - begin)
    if mode is SendMode.ONEWAY:  # the answer says that the broker has read all that was written
        producer.send(Message(topic, body))
    return outcome


async def _asynchronous(
    producer: AsyncProducer, topic: str, body: bytes, mode: SendMode, in_flight: int, count: int
) -> Outcome:
    outcome = Outcome()
    latencies = outcome.latencies
    left = iter(range(count))

    async def work() -> None:
        for _ in left:
            begin = perf_counter_ns()
            try:
                await producer.send(Message(topic, body), mode=mode)
            except ClientError:
                outcome.failed += 1
            latencies.append(perf_counter_ns() - begin)

    await asyncio.gather(*[work() for _ in range(in_flight)])
    if mode is SendMode.ONEWAY:
        await producer.send(Message(topic, body), mode=SendMode.SYNC)
    return outcome


def _print(outcome: Outcome, count: int, seconds: float, cpu: float) -> None:
    figures = {
        "count": count,
        "failed": outcome.failed,
        "seconds": round(seconds, 6),
        "cpu": round(cpu, 6),
        "p50": outcome.percentile(50),
        "p99": outcome.percentile(99),
    }
    print(json.dumps(figures), flush=True)


def main(arguments: list[str]) -> None:
    """Warm up, measure, print."""
    namesrv, topic, kind = arguments[:3]
    in_flight, size, warm, count = map(int, arguments[3:7])
    config = ProducerConfig("bench_group", namesrv, send_timeout_ms=10_000, retries_async=0)
    body = b"x" * size
    mode = SendMode(kind)
    if in_flight > 1:

        async def run() -> None:
            async with AsyncProducer(config) as producer:
                if warm:
                    await _asynchronous(producer, topic, body, mode, in_flight, warm)
                cpu, begin = process_time(), perf_counter()
                outcome = await _asynchronous(producer, topic, body, mode, in_flight, count)
                _print(outcome, count, perf_counter() - begin, process_time() - cpu)

        asyncio.run(run())
        return
    with Producer(config) as producer:
        if warm:
            _blocking(producer, topic, body, mode, warm)
        cpu, begin = process_time(), perf_counter()
        outcome = _blocking(producer, topic, body, mode, count)
        _print(outcome, count, perf_counter() - begin, process_time() - cpu)


if __name__ == "__main__":
    main(sys.argv[1:])
