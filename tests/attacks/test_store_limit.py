"""Whatever peers make a broker keep, `--store-limit` bounds the memory of its process.

Each flood would take a multiple of what is allowed, were it not counted; twice of it takes no more.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.replay.sandbox.talk import Talk, frame, heartbeat, pull_fields, send_fields
from tests.rmqtool.command import PROGRAM, ROOT

MIB = 1 << 20
LIMIT = 16 * MIB
ALLOWED = LIMIT + 2 * 16 * MIB
"""messages, and what else the broker and the NameServer keep: at least 16 MiB each"""
SLACK = 24 * MIB
"""fragments, answers and requests on their way"""
FULL = ("--drop-oldest",)
WIDE = "\U0001f600"
"""a character that takes four bytes, as does each other one beside it"""
TOPIC = "Orders"
Frames = Iterable[bytes]


class Flood(NamedTuple):
    """Requests that a broker keeps something of."""

    make: Callable[[int], Frames]
    """a number → so many parts of the flood"""
    count: int
    options: tuple[str, ...] = ()
    """of the broker"""
    namesrv: bool = False
    """to the NameServer"""


def oneway(code: int, fields: dict[str, str] | None = None, body: bytes = b"") -> bytes:
    return frame(code, fields, body, flag=2)


def stored(topic: str, queue_id: int = 0, body: bytes = b"x", **properties: str) -> bytes:
    return oneway(310, send_fields(topic, queue_id, **properties), body)


def made(topic: str, queues: int) -> bytes:
    fields = {"topic": topic, "readQueueNums": str(queues), "writeQueueNums": str(queues)}
    return oneway(17, {**fields, "perm": "6"})


def tags(count: int) -> Frames:
    """Tags of 8,000 characters, four bytes each in memory."""
    return (stored(TOPIC, TAGS=WIDE + "x" * 8000) for _ in range(count))


def keys(count: int) -> Frames:
    """Messages of thousands of keys, and a question for one."""
    for number in range(count):
        yield stored(TOPIC, KEYS=" ".join(f"{number:x}{key:x}" for key in range(3000)))
        yield oneway(12, {"topic": TOPIC, "key": "0", "maxNum": "1", **SPAN})


SPAN = {"beginTimestamp": "0", "endTimestamp": str(1 << 60)}


def queues(count: int) -> Frames:
    """A message in each of very many queues, most of which are forgotten again."""
    for number in range(count):
        yield made(f"T{number}", 1000)
        yield from (stored(f"T{number}", queue) for queue in range(1000))


def halves(count: int) -> Frames:
    """Half messages that a full store drops."""
    wanted = {"TRAN_MSG": "true", "PGROUP": "g"}
    return (stored(TOPIC, body=bytes(100_000), **wanted) for _ in range(count))


def delayed(count: int) -> Frames:
    """Messages for later that a full store drops."""
    return (stored(TOPIC, body=bytes(100_000), DELAY="18") for _ in range(count))


def popped(group: str, **more: str) -> bytes:
    fields = {"consumerGroup": group, "topic": TOPIC, "queueId": "-1", "maxMsgNums": "1"}
    fields |= {"invisibleTime": str(1 << 40), "pollTime": "0", "bornTime": str(1 << 50)}
    return oneway(200050, {**fields, "initMode": "0", "order": "false", "exp": "*", **more})


def pop_groups(count: int) -> Frames:
    """Long names of POP groups, from the end and in order."""
    more = {"initMode": "1", "order": "true"}
    return (popped(f"{WIDE}{number}" + "g" * 60_000, **more) for number in range(count))


def pop_queues(count: int) -> Frames:
    """Groups that pop from a topic of many queues."""
    yield made(TOPIC, 500)
    yield stored(TOPIC, 499)
    for number in range(count):
        yield popped(f"g{number}")


def pop_receipts(count: int) -> Frames:
    """A message whose invisible time is changed again and again."""
    yield stored(TOPIC)
    yield popped("g", queueId="0")
    fields = {"consumerGroup": "g", "topic": TOPIC, "queueId": "0", "offset": "0"}
    receipt = "0 1 1099511627776 0 0 broker-a 0 0"
    for number in range(count):
        fields |= {"extraInfo": receipt, "invisibleTime": str((1 << 40) + number)}
        yield oneway(200053, fields)


def consumers(count: int) -> Frames:
    """Texts of consumer groups that are not names."""
    for number in range(count):
        kinds = ("consumeType", "messageModel", "consumeFromWhere")
        group = {"groupName": f"g{number}", **dict.fromkeys(kinds, f"{number}" + "x" * 60_000)}
        body = {"clientID": "c", "consumerDataSet": [group]}
        yield oneway(34, body=json.dumps(body).encode())


def producers(count: int) -> Frames:
    """One connection that is ever another client."""
    for number in range(count):
        yield oneway(34, body=heartbeat(f"{number}" + "c" * 60_000, producers=("p",)))
        yield oneway(35, {"producerGroup": "p", "clientID": "c"})


def subscriptions(count: int) -> Frames:
    """Subscriptions of thousands of tags."""
    for number in range(count):
        text = "||".join(f"{tag:x}" for tag in range(10_000))
        wanted = [{"topic": f"t{topic}", "subString": text, "subVersion": 1} for topic in range(4)]
        group = {"groupName": f"g{number}", "subscriptionDataSet": wanted}
        body = {"clientID": "c", "consumerDataSet": [group]}
        yield oneway(34, body=json.dumps(body).encode())


def held(count: int) -> Frames:
    """Pulls of thousands of tags that wait."""
    text = "||".join(f"{tag:x}" for tag in range(10_000))
    return (frame(11, pull_fields(TOPIC, hold_ms=60_000, tags=text)) for _ in range(count))


def long_subscription(count: int) -> Frames:
    """Pulls of millions of tags."""
    text = "||".join(f"{tag:x}" for tag in range(2_000_000))
    return (oneway(11, pull_fields(TOPIC, hold_ms=60_000, tags=text)) for _ in range(count))


def offsets(count: int) -> Frames:
    """Offsets of very many groups."""
    fields = {"topic": TOPIC, "queueId": "0", "commitOffset": "0"}
    return (oneway(15, {**fields, "consumerGroup": f"{n}{'g' * 200}"}) for n in range(count))


def locks(count: int) -> Frames:
    """Locks of queues whose numbers have thousands of digits."""
    for number in range(count):
        wanted = [{"topic": TOPIC, "queueId": int(f"{number + 1}{n}" * 500)} for n in range(20)]
        body = {"consumerGroup": "g", "clientId": "c", "mqSet": wanted}
        yield oneway(41, body=json.dumps(body).encode())


def modes(count: int) -> Frames:
    """Request modes of very many groups."""
    for number in range(count):
        value = {"topic": f"{number}{WIDE * 200}", "consumerGroup": WIDE * 200, "mode": "POP"}
        yield oneway(401, body=json.dumps(value, ensure_ascii=False).encode())


def administered(count: int) -> Frames:
    """Groups and topics with long names and attributes."""
    for number in range(count):
        yield oneway(200, body=json.dumps({"groupName": f"{number}{'g' * 200}"}).encode())
        yield made(f"T{number}", 1)


def values(count: int) -> Frames:
    """Values of a name space."""
    for number in range(count):
        yield oneway(100, {"namespace": "n", "key": str(number), "value": WIDE + "x" * 60_000})


def brokers(count: int) -> Frames:
    """Brokers of many addresses and topics, which are forbidden to be written, and leave."""
    topic = {"topicName": "T" * 120, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6}
    table = {str(n): topic | {"topicName": f"{n}{'T' * 100}"} for n in range(50)}
    body = json.dumps({"topicConfigSerializeWrapper": {"topicConfigTable": table}}).encode()
    for number in range(count):
        name = f"{number}{WIDE * 200}"
        fields = {"brokerName": name, "brokerAddr": WIDE * 200, "clusterName": WIDE * 200}
        for broker_id in range(5):
            yield oneway(103, {**fields, "brokerId": str(broker_id)}, body)
        yield oneway(205, {"brokerName": name})
        for broker_id in range(5) if number % 2 else ():
            yield oneway(104, {**fields, "brokerId": str(broker_id)})


FLOODS: dict[str, Flood] = {
    "tags": Flood(tags, 2000, FULL),
    "keys": Flood(keys, 300, FULL),
    "queues": Flood(queues, 40, FULL),
    "half messages": Flood(halves, 1000, FULL),
    "delayed messages": Flood(delayed, 1000, FULL),
    "POP groups": Flood(pop_groups, 1000),
    "POP queues": Flood(pop_queues, 200),
    "POP receipts": Flood(pop_receipts, 100_000),
    "consumer groups": Flood(consumers, 500),
    "producers": Flood(producers, 1500),
    "subscriptions": Flood(subscriptions, 40),
    "held pulls": Flood(held, 100),
    "long subscriptions": Flood(long_subscription, 1),
    "offsets": Flood(offsets, 30_000),
    "locks": Flood(locks, 1000),
    "request modes": Flood(modes, 12_000),
    "groups and topics": Flood(administered, 20_000),
    "values": Flood(values, 500, namesrv=True),
    "brokers": Flood(brokers, 100, namesrv=True),
}
"""what is kept → requests that make it so"""


@contextlib.contextmanager
def broker(*options: str) -> Iterator[tuple[int, dict[str, str], str]]:
    """A running broker: its process, the addresses of its brokers, and of its NameServer."""
    command = [*PROGRAM, "broker", "--port", "0", "--namesrv-port", "0", "-T", "jsonl", "--quiet"]
    limit = ("--store-limit", f"{LIMIT >> 20}MiB", "-t", f"{TOPIC}:4")
    with subprocess.Popen(
        [*command, *limit, *options],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ,
    ) as running:
        try:
            assert running.stdout is not None
            first = json.loads(running.stdout.readline())
            yield running.pid, first["brokers"], first["namesrv"]
        finally:
            running.kill()


def peak(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) << 10


def poured(address: str, frames: Frames) -> None:
    """Send a flood, and wait until it is served; answers are read and ignored."""
    with Talk(address, timeout=300) as talk:

        def read() -> None:
            with contextlib.suppress(OSError):
                while talk.receive().opaque != -7:
                    pass

        reader = threading.Thread(target=read)
        reader.start()
        parts = chain(frames, [frame(9999, opaque=-7)])
        while part := b"".join(islice(parts, 50)):
            talk.socket.sendall(part)
        reader.join()


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_takes_no_more_than_the_limit(name: str) -> None:
    flood = FLOODS[name]
    with broker(*flood.options) as (pid, addresses, namesrv):
        address = namesrv if flood.namesrv else addresses["broker-a"]
        poured(address, [])
        before = peak(pid)
        poured(address, flood.make(flood.count))
        once = peak(pid) - before
        poured(address, flood.make(flood.count))
        twice = peak(pid) - before
    print(f"{name}: {once / MIB:.0f} MiB, twice {twice / MIB:.0f} MiB")
    assert twice < ALLOWED + SLACK, (once / MIB, twice / MIB)
