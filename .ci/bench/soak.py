"""`make soak`: a watch over a sandbox for an hour; its memory, and its CPU next to the broker's.

`python -m bench.soak [--seconds N] [--rate N]` starts a sandbox, a producer that sends at a
rate, a consumer that follows, and a watch with everything on: ring, incidents, metrics that are
scraped. Some sends are refused, so that problems come and go. Memory is that of the watch after a
warm-up of two and a half windows: the median of the first turn of a window against that of the last
one, because memory rises and falls with each turn. It fails where memory grows by more than 5 % or
an incident was not kept, and skips where packets cannot be captured. With `--real`, the broker is a
Java broker of the newest release instead of a sandbox.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from rmqtool.watch.windows import SHARED
from tests.dissectors.live.test_interface import missing_right

ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAM: Final = [sys.executable, "-m", "rmqtool"]
INTERVAL: Final = 5.0
"""seconds between two looks"""
MOST_GROWTH: Final = 0.05
QUIET: Final = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main() -> int:
    """Run the soak; print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak")
    parser.add_argument("--seconds", type=int, default=3600)
    parser.add_argument("--rate", type=int, default=200, help="sends a second")
    parser.add_argument("--real", action="store_true", help="a Java broker instead of a sandbox")
    given = parser.parse_args()
    if why := missing_right("tcp"):
        print(f"skipped: {why}")
        return 0
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        server = real_server(stack) if given.real else sandbox(stack)
        result = soak(Path(folder), stack, server, given.seconds, given.rate)
    print(json.dumps(result, indent=2))
    growth, failed = result["memory_growth"], result["incidents_failed"]
    if growth is None:
        print("too short to judge the memory")
    elif growth > MOST_GROWTH:
        print(f"memory grew by {growth:.1%}, more than {MOST_GROWTH:.0%}")
    if failed:
        print(f"{failed} incidents were not kept: see reasons")
    return 1 if failed or (growth or 0) > MOST_GROWTH else 0


class Server(NamedTuple):
    """A broker, and a NameServer that knows it."""

    name: str
    namesrv: str
    ports: tuple[int, int]
    """of the broker and of the NameServer"""
    pid: int
    """of the broker"""


def sandbox(stack: ExitStack) -> Server:
    """Start a sandbox that refuses some sends."""
    broker_port, namesrv_port = free_port(), free_port()
    broker = started(
        stack,
        *("broker", "--port", broker_port, "--namesrv-port", namesrv_port, "-t", "Orders:4"),
        *("--store-limit", "16MiB", "--drop-oldest", "--quiet", "--fault", "busy p=0.002"),
    )
    wait_for_port(broker_port)
    ports = broker_port, namesrv_port
    return Server("sandbox broker", f"127.0.0.1:{namesrv_port}", ports, broker.pid)


def real_server(stack: ExitStack) -> Server:
    """Start a Java broker and NameServer of the newest release."""
    from tests.cluster.servers.cluster import Cluster

    cluster = stack.enter_context(Cluster(network="127.77.188"))
    cluster.make_topic("Orders")
    (broker,), (namesrv,) = cluster.brokers, cluster.namesrvs
    ports = broker.port, namesrv.port
    name = f"broker {cluster.version}"
    return Server(name, cluster.namesrv_text, ports, broker.running().pid)


def soak(folder: Path, stack: ExitStack, server: Server, seconds: int, rate: int) -> dict[str, Any]:
    """Return what was measured."""
    metrics_port = free_port()
    namesrv, (broker_port, namesrv_port) = server.namesrv, server.ports
    window = max(60, seconds // 10)
    events = (folder / "events.jsonl").open("wb")
    stack.enter_context(events)
    watch = started(
        stack,
        *("watch", "-i", "lo", "-f", f"tcp port {broker_port} or tcp port {namesrv_port}"),
        *("--window", f"{window}s", "--status", "0", "-T", "jsonl"),
        *("--ring-dir", folder / "ring", "--ring", "64MiB", "--incidents", folder / "incidents"),
        *("--metrics", f"127.0.0.1:{metrics_port}"),
        stdout=events,
    )
    wait_for_port(metrics_port)
    before = cpu_of(server.pid), cpu_of(watch.pid)
    consume = ("consume", "-n", namesrv, "-t", "Orders", "--follow", "--quiet")
    started(stack, *consume)
    started(
        stack,
        *("send", "-n", namesrv, "-t", "Orders", "--body", "x" * 500, "--quiet"),
        *("--count", rate * (seconds + 600), "--rate", f"{rate}/s", "--mode", "async"),
    )
    samples = sampled(watch, metrics_port, seconds)
    broker_cpu, watch_cpu = cpu_of(server.pid) - before[0], cpu_of(watch.pid) - before[1]
    watch.terminate()
    status = watch.wait(120)
    events.flush()
    lines = (folder / "events.jsonl").read_bytes().splitlines()
    last = json.loads(lines[-1])
    settled = [one for one in samples if one[0] > 2.5 * window]
    warm = settled or samples
    turn = window - window // SHARED
    begin = statistics.median(size for at, size in warm if at <= warm[0][0] + turn)
    end = statistics.median(size for at, size in warm if at >= warm[-1][0] - turn)
    commands = 2 * last["exchanges"]
    return {
        "seconds": seconds,
        "window_seconds": window,
        "windows": last["windows"],
        "status": status,
        "commands": commands,
        "packets": last["packets"],
        "dropped": last["dropped"],
        "events": last["events"],
        "incidents": last["incidents"],
        "incidents_failed": last["incidents_failed"],
        "incidents_not_diagnosed": sum(b'"diagnosed":false' in line for line in lines),
        "reasons": dict(
            Counter(one["reason"] for one in map(json.loads, lines) if one.get("reason"))
        ),
        "ring_bytes": last["ring_bytes"],
        "memory_bytes": [round(begin), round(end), max(size for _, size in samples)],
        "memory_by_window": [
            round(statistics.median(sizes))
            for _, group in itertools.groupby(samples, key=lambda one: one[0] // window)
            if (sizes := [size for _, size in group])
        ],
        "memory_growth": round(end / begin - 1, 4) if settled else None,
        "cpu_ms_per_1000_commands": {
            "watch": round(watch_cpu * 1e6 / commands, 2),
            server.name: round(broker_cpu * 1e6 / commands, 2),
        },
    }


def started(stack: ExitStack, *arguments: object, **files: Any) -> subprocess.Popen[bytes]:
    """Start rmqtool; it is ended with the stack."""
    process = subprocess.Popen(
        [*PROGRAM, *map(str, arguments)], cwd=ROOT, stdin=subprocess.DEVNULL, **{**QUIET, **files}
    )
    stack.callback(ended, process)
    return process


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
    if process.poll() is None:
        process.kill()
        process.wait()


def sampled(watch: subprocess.Popen[bytes], port: int, seconds: int) -> list[tuple[float, int]]:
    """Return the memory of the watch over time, in bytes; scrape its metrics as well."""
    found = []
    begin = time.monotonic()
    while (at := time.monotonic() - begin) < seconds:
        if watch.poll() is not None:
            raise RuntimeError(f"the watch ended with status {watch.returncode}")
        pages = int(Path(f"/proc/{watch.pid}/statm").read_text().split()[1])
        found.append((at, pages * os.sysconf("SC_PAGE_SIZE")))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
            response.read()
        time.sleep(INTERVAL)
    return found


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process."""
    text = Path(f"/proc/{pid}/stat").read_text()
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_for_port(port: int) -> None:
    """Return as soon as somebody listens there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nobody listens on port {port}")


if __name__ == "__main__":
    sys.exit(main())
