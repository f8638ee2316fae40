"""Attacks by peers and over sockets: each in a size that is asked for, and what must have ended.

What NameServers and brokers say is said on a network without sockets, whose clock goes on by
itself; clients of the sandbox come over loopback. `measure` runs each at a size and at twice that.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import NamedTuple

import pytest

from dissectors.remoting.command import RemotingCommand
from dissectors.remoting.messages.message import StoredMessage, encode_message
from replay.errors import ClientError
from replay.message import SendMode, SendResult, TransactionState
from replay.sandbox import (
    EventKind,
    Sandbox,
    SandboxError,
    SandboxEvent,
    SandboxOptions,
    TopicSpec,
)
from replay.sandbox.store.memory import MessageStore, NewMessage
from replay.sandbox.store.sqlite import StoreFile
from replay.sending.request_reply import PendingRequests
from replay.sending.transaction import Check, Transactions
from replay.wire.request import encode_command
from tests.replay.responder import responding
from tests.replay.sandbox.linked_pages import link_pages
from tests.replay.sandbox.talk import frame, heartbeat, pull_fields, send_fields
from tests.replay.script import Bench, ScriptLink, dropping, stored
from tests.replay.sending.sends import message
from tests.rmqtool.command import rmqtool
from tests.traffic.captures import pcap_of
from tests.traffic.commands import send
from tests.traffic.talk import End, Talk

MOST_MS = 600_000
"""scripted time in which a send has ended"""
SYS_FLAG = 1 | 0x300
Serve = Callable[[ScriptLink, RemotingCommand, bytes], None]


class PeerAttack(NamedTuple):
    """Something that a peer does, more of it the larger the size."""

    run: Callable[[int], None]
    size: int
    """where it begins"""


@cache
def bomb() -> bytes:
    """Return 16 MiB of zeros, compressed; to make them takes long."""
    return zlib.compress(bytes(16 << 20), 9)


def _sent(bench: Bench) -> None:
    """Send a message; whatever is said, that ends."""
    operation = bench.run(bench.sender.send(message(), SendMode.SYNC), MOST_MS)
    assert isinstance(operation.error or operation.result, (ClientError, SendResult))
    bench.network.run(1000)


def _routed(body: bytes) -> None:
    bench = Bench()
    bench.network.peers[bench.config.namesrv] = lambda link, command, _: link.answer(
        command, 0, {}, body
    )
    _sent(bench)


def _answered(serve: Serve, bench: Bench | None = None) -> Bench:
    bench = Bench() if bench is None else bench
    for address in bench.brokers.values():
        bench.network.peers[address] = serve
    return bench


def queues_of_a_route(rows: int) -> None:
    """Rows of a route each of which claims as many queues as there may be."""
    row = {"brokerName": "a", "perm": 6, "readQueueNums": 65_536, "writeQueueNums": 65_536}
    broker = {"brokerAddrs": {"0": "10.0.1.1:10911"}, "brokerName": "a"}
    _routed(json.dumps({"brokerDatas": [broker], "queueDatas": [row] * rows}).encode())


def brokers_of_a_route(count: int) -> None:
    """Brokers of which none answers."""
    names = [f"b{number}" for number in range(count)]
    brokers = [
        {"brokerAddrs": {"0": f"10.{n >> 8}.{n & 255}.1:1"}, "brokerName": name}
        for n, name in enumerate(names)
    ]
    rows = [{"brokerName": n, "perm": 6, "readQueueNums": 1, "writeQueueNums": 1} for n in names]
    _routed(json.dumps({"brokerDatas": brokers, "queueDatas": rows}).encode())


def nested_route(depth: int) -> None:
    """A route of brackets."""
    _routed(b'{"queueDatas":' + b"[" * depth)


def fields_of_an_answer(count: int) -> None:
    """An answer of many fields, and a long remark."""
    fields = {f"f{number}": "x" * 20 for number in range(count)}
    remark = "\n".join(fields)
    _sent(_answered(lambda link, command, _: link.answer(command, 1, fields, b"", remark)))


def garbage(length: int) -> None:
    """Bytes that are no frame, a few at a time."""

    def serve(link: ScriptLink, command: RemotingCommand, _: bytes) -> None:
        link.send(b"\x00\x10\x00\x00\x00\x00\x00\x10")
        for _number in range(length):
            link.send(b"{}")

    _sent(_answered(serve))


def unasked_answers(count: int) -> None:
    """Answers that nobody asked for."""

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        for opaque in range(count):
            link.send(encode_command(RemotingCommand(0, 1 << 20 | opaque, 1, "JAVA", 479)))
        stored(link, command, body)

    _sent(_answered(serve))


def unread_answers(count: int) -> None:
    """Requests of a broker that does not read what it is answered."""

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        link.writable = False
        asked = encode_command(RemotingCommand(999, 1, 0, "JAVA", 479, None, {"x": "y" * 5000}))
        for _ in range(count):
            link.send(asked)
        stored(link, command, body)

    bench = _answered(serve)
    _sent(bench)
    assert bench.config.budget.said()


def pushed_replies(count: int) -> None:
    """Replies of kilobytes that are megabytes each, to requests that wait."""

    def serve(link: ScriptLink, command: RemotingCommand, _: bytes) -> None:
        if command.code != 310:
            link.answer(command)
            return
        told = command.ext_fields["i"].partition("CORRELATION_ID\x01")[2].partition("\x02")[0]
        for correlation in ("a stranger", told):
            fields = {"properties": f"CORRELATION_ID\x01{correlation}\x02"}
            fields |= {"topic": "T", "sysFlag": str(SYS_FLAG)}
            link.send(encode_command(RemotingCommand(326, 9, 0, "JAVA", 479, None, fields), bomb()))

    bench = _answered(serve)
    requests = PendingRequests(bench.sender)
    for _ in range(count):
        bench.client.runner.start(requests.request(message(), 2000))
    bench.network.run(10_000)


def questions(count: int) -> None:
    """Questions about transactions, of kilobytes that are megabytes each."""
    bench = Bench(check_listener=lambda _: TransactionState.COMMIT)
    transactions = Transactions(bench.sender)
    waiting: list[Check] = []
    transactions.on_check = waiting.append
    half = StoredMessage("T", bomb(), {"PGROUP": "g"}, sys_flag=4 | SYS_FLAG)
    asked = encode_command(RemotingCommand(39, 1, 2, "JAVA", 479), encode_message(half))

    def serve(link: ScriptLink, command: RemotingCommand, body: bytes) -> None:
        for _ in range(count):
            link.send(asked)
        stored(link, command, body)

    _sent(_answered(serve, bench))
    assert sum(len(check.message.body) for check in waiting) <= 64 << 20


def flapping_broker(count: int) -> None:
    """Sends to brokers that end every connection."""
    bench = _answered(dropping)
    for _ in range(count):
        _sent(bench)
    assert bench.client.channels.open_count <= len(bench.brokers) + 1


async def _lives(sandbox: Sandbox) -> None:
    reader, writer = await _connected(sandbox)
    writer.write(frame(9999))
    assert await reader.readexactly(4)
    writer.close()


async def _connected(sandbox: Sandbox) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = sandbox.addresses["broker-a"].rpartition(":")
    return await asyncio.open_connection(host, int(port), limit=1)


def _with_sandbox(deed: Callable[[Sandbox], object], **settings: object) -> None:
    async def run() -> None:
        options = SandboxOptions(topics=[TopicSpec("Orders")], **settings)  # type: ignore[arg-type]
        async with Sandbox(options) as sandbox:
            done = deed(sandbox)
            assert asyncio.iscoroutine(done)
            await done
            await _lives(sandbox)

    asyncio.run(run())


def idle_connections(count: int) -> None:
    """Connections that say nothing, or a byte; the sandbox closes them."""

    async def deed(sandbox: Sandbox) -> None:
        opened = [await _connected(sandbox) for _ in range(count)]
        for number, (_, writer) in enumerate(opened):
            if number % 2:
                writer.write(b"\0")
        for reader, writer in opened:
            assert await reader.read() == b""
            writer.close()

    _with_sandbox(deed, greeting_ms=200, connections_limit=count + 1)


def connections_without_files(count: int) -> None:
    """Twice as many connections as the process may open files for."""
    told: list[SandboxEvent] = []

    async def deed(sandbox: Sandbox) -> None:
        sandbox.hub.files.limit = count // 2
        opened = [await _connected(sandbox) for _ in range(count)]
        await asyncio.sleep(0.05)
        assert len(sandbox.hub.connections) <= count // 2
        for _, writer in opened:
            writer.close()

    _with_sandbox(deed, on_event=told.append)
    assert [event.kind for event in told].count(EventKind.REFUSED) == 1


def unfinished_frames(count: int) -> None:
    """Frames of megabytes that never end."""

    async def deed(sandbox: Sandbox) -> None:
        opened = [await _connected(sandbox) for _ in range(count)]
        for _, writer in opened:
            writer.write((8 << 20).to_bytes(4, "big") + bytes(2000) + b"x" * (1 << 16))
        await asyncio.sleep(0.05)
        for _, writer in opened:
            writer.close()

    _with_sandbox(deed, input_limit=1 << 20)


def unread_pulls(count: int) -> None:
    """Pulls of what is large, by a client that reads none of it."""

    async def deed(sandbox: Sandbox) -> None:
        _, writer = await _connected(sandbox)
        writer.write(frame(310, send_fields("Orders"), bytes(200_000)))
        await asyncio.sleep(0.05)
        _, greedy = await _connected(sandbox)
        greedy.write(frame(11, pull_fields("Orders")) * count)
        await asyncio.sleep(0.2)
        greedy.close()
        writer.close()

    _with_sandbox(deed)


def linked_store(count: int) -> None:
    """A store whose pages refer to each other: some 100 kB that are 10^8 rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "box.db"
        file = StoreFile(path, lambda: None)
        messages = MessageStore("127.0.0.1:10911", 1 << 30)
        messages.go_on_with(file.journal("broker-a"))
        for _ in range(600 + count):  # the index has more than one page
            messages.put(NewMessage("Orders", 0, b"x", {}), 1)
        file.close()
        link_pages(path)

        with pytest.raises(SandboxError, match="refer to each other"):
            asyncio.run(Sandbox(SandboxOptions(store=path)).start())


def groups_of_clients(count: int) -> None:
    """Heartbeats of ever new clients, groups and topics."""

    async def deed(sandbox: Sandbox) -> None:
        _, writer = await _connected(sandbox)
        for number in range(count):
            body = heartbeat(f"c{number}", consumers={f"g{number}": f"t{number}"})
            writer.write(frame(34, body=body, flag=2))
        await asyncio.sleep(0.2)
        writer.close()

    _with_sandbox(deed)


def late_target(count: int) -> None:
    """A capture through a pipe whose last send went to what is the target of its replay."""
    with responding() as target, TemporaryDirectory() as folder:
        host, _, port = target.address.rpartition(":")
        sends = Talk(mss=60_000).open()
        for number in range(count):
            sends.say(0, send(number).frame)
        last = Talk(server=End(host, int(port)), at=sends.now).open().say(0, send(count).frame)
        pipe = Path(folder) / "pipe"
        os.mkfifo(pipe)
        data = pcap_of([*sends.segments, *last.segments], "raw")
        writer = Thread(target=pipe.write_bytes, args=(data,))
        writer.start()
        options = ("-n", target.address, "-y", "--top-speed", "-q", "-o", f"{folder}/run")
        done = rmqtool("replay", pipe, *options)
        writer.join()
        assert "never sent back to where it came from" in done.err, done
        assert not target.accepted


def kept_texts(count: int) -> None:
    """Long texts that a broker keeps: subscriptions, topics, groups, and pulls that wait."""

    async def deed(sandbox: Sandbox) -> None:
        reader, writer = await _connected(sandbox)
        for number in range(count):
            wanted = {"topic": "Orders", "subString": "T" * 60_000, "subVersion": 1}
            group = {"groupName": f"g{number}", "subscriptionDataSet": [wanted]}
            body = json.dumps({"clientID": "c" * 60_000, "consumerDataSet": [group]}).encode()
            writer.write(frame(34, body=body, flag=2))
            topic = {"topic": f"t{number}", "readQueueNums": "1", "writeQueueNums": "1"}
            topic |= {"perm": "6", "attributes": "+a=" + "x" * 60_000}
            writer.write(frame(17, topic, flag=2))
            writer.write(frame(200, body=json.dumps({"groupName": "g" * 60_000}).encode(), flag=2))
            pull = pull_fields("Orders", hold_ms=30_000, tags="T" * 60_000)
            writer.write(frame(11, pull))
            await writer.drain()
        writer.write(frame(9999, opaque=7))
        await reader.read(4)
        room = sandbox.brokers["broker-a"].state.room
        assert room.used <= room.limit == 16 << 20
        writer.close()

    _with_sandbox(deed, store_limit=1 << 20)


PEERS: dict[str, PeerAttack] = {
    "queues of a route": PeerAttack(queues_of_a_route, 100),
    "brokers of a route": PeerAttack(brokers_of_a_route, 200),
    "nested route": PeerAttack(nested_route, 5000),
    "fields of an answer": PeerAttack(fields_of_an_answer, 2000),
    "garbage": PeerAttack(garbage, 500),
    "unasked answers": PeerAttack(unasked_answers, 300),
    "unread answers": PeerAttack(unread_answers, 300),
    "pushed replies": PeerAttack(pushed_replies, 6),
    "questions": PeerAttack(questions, 6),
    "flapping broker": PeerAttack(flapping_broker, 40),
    "idle connections": PeerAttack(idle_connections, 100),
    "connections without files": PeerAttack(connections_without_files, 100),
    "unfinished frames": PeerAttack(unfinished_frames, 50),
    "unread pulls": PeerAttack(unread_pulls, 200),
    "groups of clients": PeerAttack(groups_of_clients, 100),
    "kept texts": PeerAttack(kept_texts, 100),
    "linked store": PeerAttack(linked_store, 600),
    "late target": PeerAttack(late_target, 500),
}
"""name → attack"""
