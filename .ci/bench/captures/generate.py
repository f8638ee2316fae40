"""Writes captures of RocketMQ traffic with known contents: FILE.pcap, and the truth in FILE.json.

`python -m bench.captures.generate --packets 1000000 --seed 1 --mix mixed -o FILE.pcap`

Fifty connections talk at once: 70 % producers, 20 % consumers, 10 % name-server clients. One in
five was open before the capture began. Half of the bursts share segments, so that frames straddle
them; responses come in another order than their requests; a few segments come late or twice. The
file depends on the arguments alone, and memory does not grow with it.

`--mix sends`: all are producers, and each packet behind the handshakes is one whole command, a send
or its response. Nothing comes late.
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import json
import random
import struct
from collections.abc import Iterator
from pathlib import Path

from . import frames, traffic, truth, wire
from .frames import Writer
from .traffic import (
    BROKERS,
    NAMESERVERS,
    Body,
    Call,
    Consumer,
    NameServerClient,
    PlainProducer,
    Producer,
    Role,
)
from .truth import Truth
from .wire import MSS, PCAP_HEADER, Connection, Timed

CONNECTIONS = 50
PARKED_AFTER_US = 500_000
SENDS = "sends"
"""the mix of small commands only"""
START_US = 1_700_000_000_000_000


def generator_version() -> str:
    """Return a digest of the generator's source: captures of another version are made anew."""
    digest = hashlib.sha256()
    for path in (frames.__file__, traffic.__file__, truth.__file__, wire.__file__, __file__):
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()[:12]


def _writers(index: int, mixed: bool) -> tuple[Writer, Writer]:
    """Return the client and the server process of a connection.

    In a mixed capture 45 % of the processes write binary headers, clients and servers
    independently: one conversation often has both.
    """
    go = index % 5 == 3
    client = Writer(
        b"GO" if go else b"JAVA",
        9 if go else 0,
        317 if go else (401, 441, 479)[index % 3],
        mixed and not go and index * 7 % 16 < 9,
    )
    server = Writer(b"JAVA", 0, 479, mixed and index * 9 % 20 < 9)
    return client, server


class Talk:
    """One connection with the client that uses it: an ordered stream of packets."""

    def __init__(self, index: int, seed: int, mix: str, bodies: list[Body], truth: Truth) -> None:
        """Choose the role, the endpoints and the serialisations by `index`."""
        self.rng = random.Random(f"{seed}/{index}")
        self.truth = truth
        plain = mix == SENDS
        self.midstream = index % 5 == 4 and not plain
        self.parked: list[tuple[int, bytes]] = []
        place = index % 10
        role: type[Role] = NameServerClient if place == 9 else Producer
        servers = NAMESERVERS if place == 9 else BROKERS
        if place in (2, 6):
            role = Consumer
        server = servers[index // 10 % len(servers)]
        client = bytes((10, 0, 1, 1 + index)) + struct.pack(">H", 40000 + index * 7)
        if plain:
            role, server = PlainProducer, BROKERS[index % len(BROKERS)]
            self.tcp = Connection(index, self.rng, truth, client, server, 0.0, 0.0)
        else:
            self.tcp = Connection(index, self.rng, truth, client, server)
        writers = _writers(index, mix == "mixed")
        self.role = role(self.rng, truth, writers, client, server, bodies)

    def packets(self, limit: int) -> Iterator[Timed]:
        """Yield this connection's packets in order of time, until the capture has `limit`."""
        tcp = self.tcp
        tcp.now = START_US + self.rng.randrange(200_000)
        if self.midstream:
            yield from tcp.send(False, self._segments([self.role.orphan(0).response]))
        else:
            yield from tcp.open()
        while self.truth.packets < limit:
            tcp.now += int(self.rng.expovariate(1) * self.role.pause_us) + 50
            yield from self._release()
            yield from self._burst(self.role.burst(tcp.now - START_US))
        for when, _ in sorted(self.parked):
            tcp.now = max(tcp.now, when)
            yield from self._release()
        if not self.midstream and tcp.index % 2:
            yield from tcp.close()

    def _burst(self, calls: list[Call]) -> list[Timed]:
        """Return the packets of some calls: requests, then responses, shuffled."""
        tcp = self.tcp
        from_server = calls[0].from_server
        packets = tcp.send(not from_server, self._segments([call.request for call in calls]))
        ready: list[bytes] = []
        delay = 0
        for call in calls:
            if call.delay > PARKED_AFTER_US:
                self.parked.append((tcp.now + call.delay, call.response))
            elif call.response:
                ready.append(call.response)
                delay = max(delay, call.delay)
        if ready:
            self.rng.shuffle(ready)
            tcp.now += delay
            packets += tcp.send(from_server, self._segments(ready))
        return packets

    def _release(self) -> list[Timed]:
        """Return the packets of long polls that are due."""
        now = self.tcp.now
        due = [response for when, response in self.parked if when <= now]
        if not due:
            return []
        self.parked = [item for item in self.parked if item[0] > now]
        return self.tcp.send(False, self._segments(due))

    def _segments(self, payloads: list[bytes]) -> list[bytes]:
        """Return the payloads cut into segments; half of the time they share them."""
        if len(payloads) > 1 and self.rng.random() < 0.5:
            payloads = [b"".join(payloads)]
        segments = []
        for payload in payloads:
            segments += [payload[at : at + MSS] for at in range(0, len(payload), MSS)]
        return segments


def write_capture(path: Path, packets: int, seed: int, mix: str) -> dict[str, object]:
    """Write the capture and its ground truth beside it; return the ground truth.

    The capture has `packets` packets and as many more as the bursts under way need to end.
    """
    truth = Truth()
    bodies = traffic.message_bodies(seed)
    talks = [Talk(index, seed, mix, bodies, truth) for index in range(CONNECTIONS)]
    written = len(PCAP_HEADER)
    with path.open("wb", buffering=1 << 20) as file:
        file.write(PCAP_HEADER)
        for _, _, record in heapq.merge(*(talk.packets(packets) for talk in talks)):
            file.write(record)
            written += len(record)
    truth.file_bytes = written
    result = {
        "version": generator_version(),
        "arguments": {"packets": packets, "seed": seed, "mix": mix},
        **truth.as_dict(),
    }
    path.with_suffix(".json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def main() -> None:
    """Write the capture that the arguments ask for and print its counts."""
    parser = argparse.ArgumentParser(prog="bench.captures.generate", description=__doc__)
    parser.add_argument("--packets", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mix", choices=("json", "mixed", SENDS), default="json")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    output: Path = arguments.output
    output.parent.mkdir(parents=True, exist_ok=True)
    result = write_capture(output, arguments.packets, arguments.seed, arguments.mix)
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
