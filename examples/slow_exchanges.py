"""The slowest responses in captures: python examples/slow_exchanges.py CAPTURE..."""

from __future__ import annotations

import heapq
import sys

import rmqtool


def main(*captures: str) -> None:
    """Print the ten slowest exchanges that nobody made wait on purpose."""
    waiting = "^(LITE_PULL|PULL|POP_MESSAGE|POP_LITE|NOTIFICATION|ReceiveMessage|Telemetry)"
    exchanges = rmqtool.read(captures).exchanges(f"has latency_us and not request ~ '{waiting}'")
    for one in heapq.nlargest(10, exchanges, key=lambda row: row.latency_us or 0):
        milliseconds = (one.latency_us or 0) / 1000
        print(
            f"{milliseconds:9.3f} ms  {one.request_name}  {one.topic or '-'}  {one.server_address}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
