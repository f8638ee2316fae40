"""Other ways to capture: formats, cut packets, no beginning, holes, IPv6; and another client."""

from __future__ import annotations

import shutil
import struct
import subprocess
import time
from pathlib import Path

from tests.cluster.clients.clients import Client, start_go
from tests.cluster.servers.artifacts import NEWEST_5, Unavailable
from tests.cluster.servers.cluster import BrokerSpec, Cluster

from .scene import EVERYTHING, Scenario, Scene, single_5x


def ipv6_5x() -> Cluster:
    """Servers on ::1."""
    return Cluster([BrokerSpec()], version=NEWEST_5, ipv6=True)


def ipv6(scene: Scene) -> None:
    scene.cluster.make_topic("SixTopic")
    with scene.capture("ip6 and tcp"):
        client = {"topic": "SixTopic", "client_ip": "::1"}
        scene.run("Send", instance="producer", count=4, **client)
        scene.run("PushConsume", instance="consumer", group="six_group", count=4, **client)


def _consumer(scene: Scene, topic: str) -> Client:
    """A consumer that has been running for a while, and stays."""
    scene.cluster.make_topic(topic)
    scene.run("Send", topic=topic, instance="filler", count=4)
    consumer = scene.start(
        "PushConsume",
        topic=topic,
        instance="consumer",
        group=f"{topic}_group",
        count=12,
        linger_ms=500,
    )
    consumer.wait_for("started")
    time.sleep(2)
    return consumer


def midstream(scene: Scene) -> None:
    consumer = _consumer(scene, "MidstreamTopic")
    with scene.capture():
        scene.run("Send", topic="MidstreamTopic", instance="producer", count=8)
        consumer.finish()


def snaplen(scene: Scene) -> None:
    consumer = _consumer(scene, "SnapTopic")
    with scene.capture(snaplen=200):
        scene.run("Send", topic="SnapTopic", instance="producer", count=8, body=600)
        consumer.finish()


def removed(scene: Scene) -> None:
    scene.cluster.make_topic("HoleTopic")
    with scene.capture() as capture:
        scene.run("Send", topic="HoleTopic", instance="producer", count=12, body=900)
        scene.run(
            "PushConsume", topic="HoleTopic", instance="consumer", group="hole_group", count=12
        )
    remove_packets(capture.path, every=9)


def one_direction(scene: Scene) -> None:
    scene.cluster.make_topic("HalfTopic")
    # Only what goes to the servers: the answers are sent from their addresses.
    with scene.capture(f"{EVERYTHING} and dst net {scene.cluster.network}.0/24"):
        scene.run("Send", topic="HalfTopic", instance="producer", count=6)


def pcapng(scene: Scene) -> None:
    scene.cluster.make_topic("PcapngTopic")
    with scene.capture() as capture:
        scene.run("Send", topic="PcapngTopic", instance="producer", count=6)
    converted = capture.path.with_suffix(".pcapng")
    _editcap("-F", "pcapng", str(capture.path), str(converted))
    capture.path.unlink()
    scene.made[-1] = converted


def any_interface(scene: Scene) -> None:
    scene.cluster.make_topic("AnyTopic")
    with scene.capture(interface="any", nanoseconds=True):
        scene.run("Send", topic="AnyTopic", instance="producer", count=6)


def compressed(scene: Scene) -> None:
    scene.cluster.make_topic("GzipTopic")
    with scene.capture():
        scene.run("Send", topic="GzipTopic", instance="producer", count=6)


def cut_short(scene: Scene) -> None:
    scene.cluster.make_topic("CutTopic")
    with scene.capture() as capture:
        scene.run("Send", topic="CutTopic", instance="producer", count=6)
    whole = capture.path.read_bytes()
    capture.path.write_bytes(whole[: len(whole) * 3 // 4])


def big_bodies(scene: Scene) -> None:
    scene.cluster.make_topic("BigTopic", queues=1)
    none = 10_000_000
    with scene.capture():
        scene.run(
            "Send", topic="BigTopic", instance="producer", count=2, body=40_000, compress_over=none
        )
        scene.run("PushConsume", topic="BigTopic", instance="consumer", group="big_group", count=2)


def go_client(scene: Scene) -> None:
    scene.cluster.make_topic("GoTopic")
    with scene.capture():
        start_go([scene.cluster.namesrv_text, "GoTopic", "8"]).finish()


def remove_packets(path: Path, every: int) -> None:
    """Leaves out every n-th packet that has TCP payload, counted over the capture."""
    data = path.read_bytes()
    kept, at, seen = [data[:24]], 24, 0
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        record = data[at : at + 16 + size]
        at += 16 + size
        # Ethernet 14, IPv4 20 and TCP 32 with timestamps: longer packets carry payload.
        if size > 14 + 20 + 32:
            seen += 1
            if seen % every == 0:
                continue
        kept.append(record)
    path.write_bytes(b"".join(kept))


def _editcap(*arguments: str) -> None:
    editcap = shutil.which("editcap")
    if editcap is None:
        raise Unavailable("no editcap on this machine (Wireshark's command line tools)")
    subprocess.run([editcap, *arguments], check=True, capture_output=True, timeout=60)


def _variant(name: str, run: object, what: str, odd: str = "") -> Scenario:
    assert callable(run)
    return Scenario(name, single_5x, run, what, odd)


VARIANTS: tuple[Scenario, ...] = (
    Scenario(
        "ipv6-5x",
        ipv6_5x,
        ipv6,
        "Sends and a push consumer on ::1",
        "offset ids of 56 digits instead of 32; stored messages with the IPv6 bits of sysFlag",
    ),
    _variant(
        "midstream-5x",
        midstream,
        "The capture starts while a consumer is running",
        "its connections have no SYN; responses to pulls that were sent before",
    ),
    _variant("snaplen-5x", snaplen, "Captured with a snap length of 200 bytes", "bodies are cut"),
    _variant(
        "removed-5x",
        removed,
        "Every ninth packet with payload is left out",
        "holes in both directions; the peer acknowledges what was never captured",
    ),
    _variant(
        "one-direction-5x",
        one_direction,
        "Only packets towards the servers",
        "unanswered requests, although nothing failed",
    ),
    _variant("format-pcapng-5x", pcapng, "A pcapng file"),
    _variant(
        "format-sll2-nano-5x",
        any_interface,
        "Captured on `any` with nanoseconds: link type SLL2",
        "each packet is there as `any` sees it on loopback",
    ),
    Scenario("format-gzip-5x", single_5x, compressed, "A pcap packed with gzip", packed=True),
    _variant("cut-short-5x", cut_short, "The capture file ends inside a packet"),
    _variant(
        "big-bodies-5x",
        big_bodies,
        "Messages of 40 KB, not compressed",
        "frames over several segments, pulled again in one response",
    ),
    _variant(
        "go-client-5x",
        go_client,
        "The Go client: sends of every kind, then a push consumer",
        "language GO, its own field order, oneway without the flag",
    ),
)
