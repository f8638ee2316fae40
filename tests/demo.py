"""The tour of `make demo`: real captures of samples/, by the commands that a user would type.

They are decoded, replayed into the sandbox, and reported; what is written goes to .cache/demo.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from replay.sandbox import SandboxOptions, sandbox_thread

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
        "One send taken apart: every header field with its meaning, the message, the response.",
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
    (
        "What both ends of one connection said, as text.",
        "decode pcap samples/send-sync-4x.pcap --follow-conversation 1 --body-limit 200",
    ),
    (
        "A capture to share: names, addresses, and bodies are replaced, what went wrong stays.",
        "anonymize samples/fault-kill-5x.pcap -o {folder}/shared.pcapng",
    ),
    (
        "Its diagnosis is that of the original, with pseudonyms.",
        "diagnose {folder}/shared.pcapng",
    ),
    (
        "A frame out of a log line.",
        "decode hex 000000500000004c7b22636f6465223a302c22666c6167223a312c226c616e6775616765223a2"
        "24a415641222c226f7061717565223a372c2272656d61726b223a226f6b222c2276657273696f6e223a34373"
        "97d",
    ),
    (
        "What a watch over live traffic tells, here of a capture, and the packets that it keeps.",
        "watch samples/busy-send-queue-5x.pcap --ring-dir {folder}/ring"
        " --incidents {folder}/incidents",
    ),
    (
        "Messages of our own, to an embedded NameServer and two brokers: each attempt and why.",
        "send -n {namesrv} -t DemoTopic --body hello --count 12 --fault-strategy 5.1",
    ),
    (
        "The same through a proxy that injects a fault into the traffic: the producer tries again.",
        "send -n {proxied} -t DemoTopic --body hello --count 12",
    ),
    (
        "What the proxy recorded, with the fault that it injected.",
        "decode pcap {folder}/proxy.pcapng --where 'facts ~ \"fault=\"'",
    ),
    (
        "A capture sent again, at ten times its pace, to that sandbox; captured against replayed.",
        "replay samples/send-async-5x.pcap -n {namesrv} --speed 10x -o {folder}/replay",
    ),
    (
        "Producers whose broker was killed: which messages were tried again, where, and why.",
        "report retries isolation samples/fault-kill-5x.pcap samples/fault-kill-4x.pcap",
    ),
    (
        "The same report computed on Spark, as a cluster does for days of traffic.",
        "report retries isolation samples/fault-kill-5x.pcap samples/fault-kill-4x.pcap"
        " --engine spark --table retry_totals",
    ),
    (
        "The same and more as one page for the browser.",
        "report samples/fault-kill-5x.pcap samples/fault-kill-4x.pcap samples/fault-slow-5x.pcap"
        " samples/push-retry-dlq-5x.pcap -o {folder}/report.html",
    ),
)
FOLDER = ".cache/demo"


def main() -> int:
    """Runs the tour; the exit status is that of the first command that fails, else 0."""
    shutil.rmtree(ROOT / FOLDER, ignore_errors=True)
    (ROOT / FOLDER).mkdir(parents=True)
    with sandbox_thread(SandboxOptions(brokers=2)) as box, _proxied(box.namesrv) as proxied:
        for title, pattern in TOUR:
            if "--engine spark" in pattern and shutil.which("java") is None:
                print(f"\n── {title}\nskipped: Java is not installed", flush=True)
                continue
            status = _run(
                title, pattern.format(namesrv=box.namesrv, proxied=proxied, folder=FOLDER)
            )
            if status != 0:
                return status
    print(f"\nThe page: {FOLDER}/report.html; the journal of the replay: {FOLDER}/replay/")
    print("More: rmqtool --help, README.md, samples/README.md")
    return 0


@contextmanager
def _proxied(namesrv: str) -> Iterator[str]:
    """Run a proxy in front of the sandbox; yields its NameServer."""
    rmqtool = Path(sys.executable).with_name("rmqtool")
    command = [str(rmqtool), "proxy", "-n", namesrv, "--listen", "127.0.0.1:0", "-T", "jsonl"]
    command += ["--fault", "error=SYSTEM_BUSY times=1", "--write", f"{FOLDER}/proxy.pcapng"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            yield json.loads(running.stdout.readline())["namesrv"]
        finally:
            running.send_signal(signal.SIGINT)
            running.stdout.read()


def _run(title: str, command: str) -> int:
    rmqtool = Path(sys.executable).with_name("rmqtool")
    print(f"\n── {title}\n$ rmqtool {command}\n", flush=True)
    environment = dict(os.environ)
    environment.setdefault("COLUMNS", "150")
    arguments = [str(rmqtool), *shlex.split(command)]
    done = subprocess.run(arguments, cwd=ROOT, env=environment, check=False)
    if done.returncode != 0:
        print(f"rmqtool {command}: exit status {done.returncode}", file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
