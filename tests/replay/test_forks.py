"""Producers in forked children, with real forks: no connection and no number is shared."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dissectors.decode.pipeline import Decode
from replay import AsyncProducer, Message, Producer, ProducerConfig, WireCapture
from replay.errors import ClosedError
from replay.hooks import SendContext
from replay.sandbox import SandboxThread, sandbox_thread

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
TOPIC = "Orders"


@pytest.fixture
def box() -> Iterator[SandboxThread]:
    with sandbox_thread() as one:
        yield one


def config_of(box: SandboxThread, **settings: Any) -> ProducerConfig:
    return ProducerConfig(group="g", namesrv=box.namesrv, **settings)


def in_child(work: Callable[[], object]) -> Callable[[], Any]:
    """Do `work` in a forked child; return what waits for its result."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(write, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(write)

    def result() -> Any:
        with os.fdopen(read, "rb") as pipe:
            data = pipe.read()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return json.loads(data)

    return result


def send_some(producer: Producer, number: int = 200) -> dict[str, Any]:
    results = [producer.send(Message(TOPIC, b"x")) for _ in range(number)]
    return {
        "keys": [one.unique_key for one in results],
        "locals": sorted({one.attempts[-1].local for one in results}),
        "client": producer.client_id,
        "connections": producer.connections,
        "instance": producer.config.instance_name,
    }


def stored_keys(box: SandboxThread) -> Counter[str]:
    def read(_: object) -> Counter[str]:
        found: Counter[str] = Counter()
        for broker in box.sandbox.brokers.values():
            store = broker.state.store
            offset = store.begin_offset
            while (record := store.at(offset)) is not None:
                found[record.message().properties["UNIQ_KEY"]] += 1
                offset += len(record.data)
        return found

    return box.call(read)


@pytest.mark.parametrize("name", ["DEFAULT", "mine"])
def test_parent_and_children_send_at_the_same_time(box: SandboxThread, name: str) -> None:
    with Producer(config_of(box, instance_name=name)) as producer:
        first = send_some(producer, 1)
        waiting = [in_child(lambda: send_some(producer)) for _ in range(3)]
        ours = send_some(producer)
        theirs = [result() for result in waiting]
        last = send_some(producer, 10)  # a child's end has not touched the parent's connections
    everyone = [first, ours, *theirs, last]
    keys = [key for one in everyone for key in one["keys"]]
    assert len(set(keys)) == len(keys) == 811
    assert stored_keys(box) == Counter(keys)
    assert first["locals"] == ours["locals"] == last["locals"]
    own = [one["locals"][0] for one in (ours, *theirs)]
    assert len(set(own)) == 4
    assert len({one["client"] for one in (ours, *theirs)}) == 4
    assert {one["connections"] for one in everyone} == {2}


def test_a_grandchild_has_its_own(box: SandboxThread) -> None:
    with Producer(config_of(box, instance_name="mine")) as producer:
        producer.send(Message(TOPIC, b"x"))

        def child() -> list[Any]:
            before = in_child(lambda: send_some(producer, 5))()
            return [before, send_some(producer, 5), in_child(lambda: send_some(producer, 5))()]

        found = in_child(child)()
        ours = send_some(producer, 5)
    assert len({one["locals"][0] for one in (*found, ours)}) == 4
    assert len({one["instance"] for one in (*found, ours)}) == 4
    assert len(stored_keys(box)) == 21


def test_a_child_that_only_leaves_changes_nothing(box: SandboxThread) -> None:
    """It does not tell brokers that the parent leaves, and ends no connection."""
    with Producer(config_of(box)) as producer:
        before = send_some(producer, 1)

        def leave() -> None:
            producer.close()
            with pytest.raises(ClosedError):
                producer.send(Message(TOPIC, b"x"))

        in_child(leave)()
        assert send_some(producer, 5)["locals"] == before["locals"]


def test_a_closed_producer_is_closed_in_the_child(box: SandboxThread) -> None:
    producer = Producer(config_of(box))
    producer.send(Message(TOPIC, b"x"))
    producer.close()

    def send() -> str:
        with pytest.raises(ClosedError) as raised:
            producer.send(Message(TOPIC, b"x"))
        return raised.value.reason

    assert in_child(send)() == "the producer is closed"


def test_a_fork_while_another_thread_sends(box: SandboxThread) -> None:
    with Producer(config_of(box)) as producer:
        ended = threading.Event()
        keys: list[str] = []

        def work() -> None:
            while not ended.is_set():
                keys.append(producer.send(Message(TOPIC, b"x")).unique_key)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            theirs = [in_child(lambda: send_some(producer, 20))() for _ in range(3)]
        finally:
            ended.set()
            thread.join()
    keys += [key for one in theirs for key in one["keys"]]
    assert stored_keys(box) == Counter(keys)
    assert len(set(keys)) == len(keys)


def test_a_fork_within_a_call_ends_that_call_in_the_child(box: SandboxThread) -> None:
    seen: list[int] = []

    class Forking:
        def before_send(self, context: SendContext) -> None:
            if not seen:
                seen.append(os.fork())

        def after_send(self, context: SendContext) -> None:
            """Nothing."""

    producer = Producer(config_of(box, hooks=(Forking(),)))
    try:
        key = producer.send(Message(TOPIC, b"x")).unique_key
    except BaseException as error:
        if seen == [0]:
            os._exit(0 if "the process was forked in the middle of a call" in str(error) else 2)
        raise
    if seen == [0]:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(seen[0], 0)[1]) == 0
    producer.close()
    assert stored_keys(box) == Counter([key])


def test_an_asynchronous_producer_is_refused_in_the_child_until_it_is_started(
    box: SandboxThread,
) -> None:
    producer = AsyncProducer(config_of(box, instance_name="mine"))

    async def some() -> dict[str, Any]:
        results = await asyncio.gather(*(producer.send(Message(TOPIC, b"x")) for _ in range(50)))
        return {
            "keys": [one.unique_key for one in results],
            "local": results[0].attempts[-1].local,
            "client": producer.client_id,
        }

    async def child() -> dict[str, Any]:
        with pytest.raises(ClosedError, match="started by the parent of this process"):
            await producer.send(Message(TOPIC, b"x"))
        assert producer.peers == []
        await producer.start()
        try:
            return await some()
        finally:
            await producer.close()

    async def parent() -> list[dict[str, Any]]:
        async with producer:
            first = await some()
            waiting = in_child(lambda: asyncio.run(child()))
            second = await some()
            theirs = await asyncio.to_thread(waiting)
            return [first, second, theirs, await some()]

    first, second, theirs, last = asyncio.run(parent())
    keys = [key for one in (first, second, theirs, last) for key in one["keys"]]
    assert stored_keys(box) == Counter(keys)
    assert len(set(keys)) == 200
    assert first["local"] == second["local"] == last["local"] != theirs["local"]
    assert theirs["client"] != first["client"]


def test_a_capture_is_the_parents(box: SandboxThread, tmp_path: Path) -> None:
    """Neither a send nor the exit of the child writes to it what it holds in memory."""
    path = tmp_path / "own.pcapng"
    with WireCapture(str(path)) as wire, Producer(config_of(box, wire=wire)) as producer:
        ours = send_some(producer, 5)

        def child() -> list[str]:
            keys: list[str] = send_some(producer, 5)["keys"]
            wire.flush()
            wire.close()
            return keys

        theirs = in_child(child)()
        ours["keys"] += send_some(producer, 5)["keys"]
    records = [record for batch in Decode([str(path)]).records() for record in batch]
    rows = [record for record in records if record.request_code == 310]
    assert [row.unique_key for row in rows] == ours["keys"]
    assert len(theirs) == 5
