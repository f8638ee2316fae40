"""The raw mode: whole requests to one broker."""

from __future__ import annotations

import asyncio

from replay.config import ProducerConfig
from replay.message import MessageQueue
from replay.plan.planner import PlannedSend, Planner, PlanOptions
from replay.run.replayer import outcome_of
from replay.run.resend import RawSender, Sent
from replay.sandbox import SandboxOptions, TopicSpec, sandbox_thread

from ..replayed import captured, seen


def sent_raw(*queues: int) -> list[tuple[PlannedSend, Sent]]:
    """Requests for these queues of a topic with two, all sent at the same time."""
    planner = Planner(PlanOptions(raw=True))
    requests = [seen(number, queue=queue) for number, queue in enumerate(queues)]
    for request in requests:
        request.command.ext_fields |= {"c": "TBW102", "d": "4"}
    sends = map(captured, requests)
    steps = [step for step in planner.steps(sends) if isinstance(step, PlannedSend)]
    options = SandboxOptions(topics=[TopicSpec("Orders", queues=2)])

    async def send(address: str) -> list[Sent]:
        sender = RawSender(ProducerConfig(group="replay", namesrv=address))
        try:
            return await asyncio.gather(*map(sender.send, steps))
        finally:
            await sender.close()

    with sandbox_thread(options) as box:
        return list(zip(steps, asyncio.run(send(box.addresses["broker-a"])), strict=True))


def test_concurrent_requests_of_a_topic_get_a_queue_that_it_has() -> None:
    found = [sent for _, sent in sent_raw(5, 7, 3, 0)]
    assert [sent.error for sent in found] == [None] * 4
    assert [sent.attempts[0].queue.queue_id for sent in found] == [1, 1, 1, 0]


def test_the_result_says_where_the_broker_stored_it() -> None:
    ((step, sent),) = sent_raw(5)
    (attempt,) = sent.attempts
    assert (attempt.queue_id, attempt.queue_offset) == (1, 0)
    assert sent.result is not None
    assert sent.result.queue == MessageQueue("Orders", "broker-a", 1)
    assert (sent.result.queue_offset, sent.result.offset_msg_id) == (0, attempt.offset_msg_id)
    assert "queue 5 → 1" in outcome_of(step, sent, 0, False).differences
