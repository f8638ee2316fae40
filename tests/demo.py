"""The tour of `make demo`: real captures of samples/, decoded by the commands a user would type."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

TOUR: tuple[tuple[str, str], ...] = (
    (
        "A push consumer at work: routes, heartbeat, rebalance, offsets, pulls and long polls.",
        "decode pcap samples/push-consumer-5x.pcap --limit 24",
    ),
    (
        "The same capture summed up.",
        "decode pcap samples/push-consumer-5x.pcap --summary",
    ),
    (
        "Only what was slow: long polls that the broker held.",
        "decode pcap samples/push-consumer-5x.pcap --where 'latency > 1s and request_name ~ PULL'",
    ),
    (
        "One send taken apart: every header field with its meaning, the message, the answer.",
        "decode pcap samples/send-binary-header-5x.pcap -V --limit 1"
        " --where 'request_name == SEND_MESSAGE_V2'",
    ),
    (
        "The commands of a transaction as they were seen, the broker's check-backs among them.",
        "decode pcap samples/transaction-5x.pcap --commands --limit 20",
    ),
    (
        "Rows for scripts: the error answers of a send to a topic that does not exist.",
        "decode pcap samples/send-unknown-topic-5x.pcap --format jsonl --limit 2"
        " --where 'response_code != 0'",
    ),
    (
        "Beside RocketMQ on the same port: what is not decoded is named and counted.",
        "decode pcap samples/foreign-5x.pcap --summary",
    ),
)


def main() -> int:
    """Runs the tour; the exit status is that of the first command that fails, else 0."""
    rmqtool = Path(sys.executable).with_name("rmqtool")
    for title, command in TOUR:
        print(f"\n── {title}\n$ rmqtool {command}\n", flush=True)
        environment = dict(os.environ)
        environment.setdefault("COLUMNS", "150")
        arguments = shlex.split(command)
        done = subprocess.run([str(rmqtool), *arguments], cwd=ROOT, env=environment, check=False)
        if done.returncode != 0:
            print(f"rmqtool {command}: exit status {done.returncode}", file=sys.stderr)
            return done.returncode
    print("\nMore: rmqtool decode pcap --help, README.md, samples/README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
