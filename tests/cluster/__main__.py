"""Command line of the test cluster: `up`, `record`, `proxied`, `list`, `fetch`, `lock`."""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from pathlib import Path

from .servers.artifacts import HERE, NEWEST_5, RELEASES, Unavailable, class_path, write_lock
from .servers.cluster import BrokerSpec, Cluster

SAMPLES = HERE.parents[1] / "samples"


def main() -> int:
    """Runs one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a cluster and keep it until Ctrl-C")
    up.add_argument("--version", choices=sorted(RELEASES), default=NEWEST_5)
    up.add_argument("--namesrvs", type=int, default=1)
    up.add_argument("--masters", type=int, default=1)
    up.add_argument(
        "--slave", action="store_true", help="a slave of the first master, with replication"
    )
    up.add_argument("--topic", action="append", default=[], help="make this topic; may be repeated")
    record = commands.add_parser("record", help="record samples anew, all or the named ones")
    record.add_argument("name", nargs="*")
    record.add_argument("--into", type=Path, default=SAMPLES, help="folder, samples/ by default")
    both = commands.add_parser(
        "proxied", help="run scenarios without and with rmqtool proxy, and compare what clients say"
    )
    both.add_argument("name", nargs="*")
    commands.add_parser("list", help="the names that can be recorded")
    commands.add_parser("readme", help="write samples/README.md anew")
    reflect = commands.add_parser("reflect", help="tables and headers of a release as JSON")
    reflect.add_argument("version", choices=sorted(RELEASES))
    commands.add_parser("fetch", help="fill the cache: jars and compiled programs")
    lock = commands.add_parser("lock", help="resolve a release anew and pin what comes")
    lock.add_argument("version", choices=sorted(RELEASES))
    arguments = parser.parse_args()
    try:
        return _run(arguments)
    except Unavailable as reason:
        print(f"unavailable: {reason}", file=sys.stderr)
        return 2


def _run(arguments: argparse.Namespace) -> int:
    if arguments.command == "up":
        return _up(arguments)
    if arguments.command == "fetch":
        for version in RELEASES:
            print(class_path(version))
        return 0
    if arguments.command == "lock":
        print(write_lock(arguments.version))
        return 0
    if arguments.command == "reflect":
        from .clients.oracle import reflect

        print(json.dumps(reflect(arguments.version), indent=1))
        return 0
    if arguments.command == "proxied":
        from .proxy.scenes import compare
        from .recording import namespace
        from .recording.record import prepare

        if namespace.inside():
            namespace.furnish()
            return compare(arguments.name)
        prepare()
        # Some scenarios narrow the network or lose packets.
        return namespace.run_inside(["proxied", *arguments.name])
    from .recording.readme import write_readme
    from .recording.record import record
    from .scenarios import SCENARIOS

    if arguments.command == "list":
        for scenario in SCENARIOS:
            print(f"{scenario.name:32} {scenario.what}")
        return 0
    if arguments.command == "readme":
        print(write_readme(SAMPLES, SCENARIOS))
        return 0
    return record(arguments.name, arguments.into.resolve())


def _up(arguments: argparse.Namespace) -> int:
    """Keeps a cluster running for a person."""
    names = [f"broker-{chr(ord('a') + i)}" for i in range(arguments.masters)]
    specs = [BrokerSpec(name) for name in names]
    if arguments.slave:
        specs[0].role = "SYNC_MASTER"
        specs.append(BrokerSpec(names[0], 1, "SLAVE"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Cluster(specs, version=arguments.version, namesrvs=arguments.namesrvs) as cluster:
        for topic in arguments.topic:
            cluster.make_topic(topic)
        print(f"RocketMQ {cluster.version}, logs in {cluster.folder}")
        print(f"NameServer: {cluster.namesrv_text}")
        for broker in cluster.brokers:
            print(f"broker {broker.name}: {broker.text}")
        print("Ctrl-C ends it.", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            while True:
                time.sleep(1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
