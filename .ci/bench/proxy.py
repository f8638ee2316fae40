"""What `rmqtool proxy` costs: against a plain asyncio relay, and with 10,000 connections.

python -m bench.proxy [--check] [--seconds N]

Server, client, and what stands between them are processes of their own. Requests are sends of
1 KiB; each connection has one in flight. Relay and proxy take turns, and the medians of the rounds
count, because other programs may run. `--check`: throughput at most 15 % below the relay's, p50 at
most 0.3 ms above it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from dissectors.remoting.codes import RequestCode
from dissectors.remoting.command import RESPONSE_FLAG, RemotingCommand
from dissectors.remoting.framing.frame import encode_frame
from dissectors.remoting.header_codec import encode_header

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
ROUNDS = 5
MANY = 10_000
MOST_LOSS, MOST_MORE_MS = 0.15, 0.3


def _frame(code: int, flag: int, body: bytes) -> bytes:
    fields = dict.fromkeys("abcdefghijklm", "producer_or_topic")
    command = RemotingCommand(code, 1_000_001, flag, "JAVA", 477, None, fields)
    return encode_frame(0, encode_header(command), body)


REQUEST: Final = _frame(RequestCode.SEND_MESSAGE_V2, 0, bytes(1024))
RESPONSE: Final = _frame(0, RESPONSE_FLAG, b"")


class _Server(asyncio.Protocol):
    """Answers each request at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._got = transport, 0

    def data_received(self, data: bytes) -> None:
        count, self._got = divmod(self._got + len(data), len(REQUEST))
        if count:
            self._transport.write(RESPONSE * count)  # type: ignore[attr-defined]


class _Relay(asyncio.Protocol):
    """A plain relay, with back-pressure, that looks at nothing."""

    def __init__(self, target: int, other: _Relay | None = None) -> None:
        self._target, self.other = target, other

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=65536)  # type: ignore[attr-defined]
        if self.other is None:
            transport.pause_reading()  # type: ignore[attr-defined]
            loop = asyncio.get_running_loop()
            opening = loop.create_connection(lambda: _Relay(0, self), HOST, self._target)
            loop.create_task(opening).add_done_callback(self._opened)

    def _opened(self, task: asyncio.Task[tuple[asyncio.Transport, _Relay]]) -> None:
        self.other = task.result()[1]
        self.transport.resume_reading()  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)  # type: ignore[union-attr, attr-defined]

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()  # type: ignore[union-attr, attr-defined]

    def resume_writing(self) -> None:
        self.other.transport.resume_reading()  # type: ignore[union-attr, attr-defined]

    def connection_lost(self, error: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


class _Client(asyncio.Protocol):
    """Sends the next request when the last one is answered."""

    latencies: list[float]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self._got = transport, 0
        self._begin = 0.0

    def ask(self) -> None:
        self._begin = time.perf_counter()
        self._transport.write(REQUEST)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._got += len(data)
        if self._got >= len(RESPONSE):
            self._got = 0
            self.latencies.append(time.perf_counter() - self._begin)
            self.ask()


def _serve(role: str, target: int) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        factory = _Server if role == "server" else lambda: _Relay(target)
        server = await loop.create_server(factory, HOST, 0, backlog=1024)
        print(json.dumps({"namesrv": f"{HOST}:{server.sockets[0].getsockname()[1]}"}), flush=True)
        await server.serve_forever()

    asyncio.run(run())


async def _ask(port: int, connections: int, seconds: float) -> list[float]:
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    clients = []
    for _ in range(connections):
        _, client = await loop.create_connection(_Client, HOST, port)
        client.latencies = latencies
        clients.append(client)
    for client in clients:
        client.ask()
    await asyncio.sleep(seconds / 4)
    latencies.clear()
    await asyncio.sleep(seconds)
    return list(latencies)


class Round(NamedTuple):
    """One run of the client."""

    per_second: float
    p50_ms: float


class Process(NamedTuple):
    """A server, a relay or a proxy."""

    number: int
    port: int

    def cpu_seconds(self) -> float:
        """CPU time so far."""
        fields = Path(f"/proc/{self.number}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """Resident bytes."""
        pages = Path(f"/proc/{self.number}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def running(*arguments: str) -> Iterator[Process]:
    """Run a part; yields it once it listens."""
    with subprocess.Popen([sys.executable, "-m", *arguments], cwd=ROOT, stdout=-1) as one:
        try:
            assert one.stdout is not None
            address = json.loads(one.stdout.readline())["namesrv"]
            yield Process(one.pid, int(address.rpartition(":")[2]))
        finally:
            one.kill()


def asked(port: int, connections: int, seconds: float) -> Round:
    """Run the client, in this process."""
    latencies = asyncio.run(_ask(port, connections, seconds))
    return Round(len(latencies) / seconds, statistics.median(latencies) * 1000)


def compare(seconds: float, connections: int) -> bool:
    """Measure in turn; print; return whether the proxy costs no more than it may."""
    me = "bench.proxy"
    proxy = ("rmqtool", "proxy", "--listen", f"{HOST}:0", "-T", "jsonl", "--quiet", "-n")
    with (
        running(me, "--role", "server") as server,
        running(me, "--role", "relay", "--target", str(server.port)) as relay,
        running(*proxy, f"{HOST}:{server.port}") as plain,
        running(*proxy, f"{HOST}:{server.port}", "--write", os.devnull, "--force") as records,
    ):
        parts = {"direct": server, "relay": relay, "proxy": plain, "proxy --write": records}
        rounds: dict[str, list[Round]] = {name: [] for name in parts}
        spent = dict.fromkeys(parts, 0.0)
        for _ in range(ROUNDS):
            for name, part in parts.items():
                before = part.cpu_seconds()
                done = asked(part.port, connections, seconds)
                rounds[name].append(done)
                spent[name] += (part.cpu_seconds() - before) / (done.per_second * seconds * 1.25)
    medians = {
        name: Round(
            statistics.median(one.per_second for one in found),
            statistics.median(one.p50_ms for one in found),
        )
        for name, found in rounds.items()
    }
    print(f"\n{connections} connections, 1 KiB sends, {ROUNDS} rounds of {seconds:g} s")
    print(f"{'':14} {'requests/s':>10} {'p50':>9} {'CPU/request':>12}")
    for name, one in medians.items():
        cpu = spent[name] / ROUNDS * 1e6
        print(f"{name:14} {one.per_second:10,.0f} {one.p50_ms:6.3f} ms {cpu:9.1f} µs")
    loss = 1 - medians["proxy"].per_second / medians["relay"].per_second
    more = medians["proxy"].p50_ms - medians["relay"].p50_ms
    print(f"proxy against relay: throughput {-loss:+.1%}, p50 {more:+.3f} ms")
    return loss <= MOST_LOSS and more <= MOST_MORE_MS


def many() -> bool:
    """Open 10,000 connections through a proxy; print what they cost; return whether all work."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MANY + 200
    count = MANY
    if hard != resource.RLIM_INFINITY and hard < wanted:
        count = (hard - 200) // 2
        print(f"{count:,} connections instead of {MANY:,}: ulimit -n is {hard:,} at most")
        wanted = hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    with (
        running("bench.proxy", "--role", "server") as server,
        running(
            *("rmqtool", "proxy", "--listen", f"{HOST}:0", "-T", "jsonl", "--quiet", "-n"),
            f"{HOST}:{server.port}",
        ) as proxy,
    ):
        empty = proxy.memory()
        begin = time.monotonic()
        sockets = [socket.create_connection((HOST, proxy.port), 60) for _ in range(count)]
        for one in sockets:
            one.sendall(REQUEST)
        got = sum(len(_received(one)) == len(RESPONSE) for one in sockets)
        seconds = time.monotonic() - begin
        each = (proxy.memory() - empty) / count
        for one in sockets:
            one.close()
    print(f"{count:,} connections: {got:,} answered in {seconds:.1f} s, {each / 1024:.1f} KiB each")
    return got == count


def _received(one: socket.socket) -> bytes:
    data = b""
    while len(data) < len(RESPONSE):
        more = one.recv(65536)
        if not more:
            break
        data += more
    return data


def main() -> int:
    """Measure; the status is 1 with `--check` where it costs more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--role", choices=("server", "relay"))
    parser.add_argument("--target", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if given.role:
        _serve(given.role, given.target)
        return 0
    good = [compare(given.seconds, 1), compare(given.seconds, 16), many()]
    return 0 if all(good) or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
