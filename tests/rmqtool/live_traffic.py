"""Commands over a real TCP connection on the loopback interface, at a rate.

`python -m tests.rmqtool.live_traffic COMMANDS_PER_SECOND SECONDS` opens a connection of its own,
says so many commands, half of them responses, each in a packet of its own, and prints what it did
as JSON. One thread holds both ends, so that it costs little beside what it is to measure.
"""

from __future__ import annotations

import json
import socket
import sys
import time

from tests.traffic.commands import send, sent

OPAQUES = 4000
"""distinct requests; each is used again long after it was answered"""


class Wire:
    """Both ends of one TCP connection over 127.0.0.1."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port: int = server.getsockname()[1]
            self.client = socket.create_connection(("127.0.0.1", self.port))
            self.server, _ = server.accept()
        for end in (self.client, self.server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def say(self, request: bytes, response: bytes = b"") -> None:
        """One end says something, and the other answers, once it has it."""
        self.client.sendall(request)
        _drain(self.server, len(request))
        if response:
            self.server.sendall(response)
            _drain(self.client, len(response))

    def close(self) -> None:
        """Both ends close."""
        self.client.close()
        self.server.close()


def _drain(end: socket.socket, size: int) -> None:
    while size > 0:
        size -= len(end.recv(size))


def run(wire: Wire, rate: float, seconds: float) -> dict[str, float]:
    """Say `rate` commands a second, requests and responses alike; return what was said."""
    pairs = [(send(number).frame, sent(number, number).frame) for number in range(OPAQUES)]
    exchanges = int(rate * seconds / 2)
    batch = max(int(rate / 2 / 500), 1)
    start = time.perf_counter()
    for number in range(exchanges):
        wire.say(*pairs[number % OPAQUES])
        if number % batch == 0:
            ahead = start + number / (rate / 2) - time.perf_counter()
            if ahead > 0.0005:
                time.sleep(ahead)
    took = time.perf_counter() - start
    return {"commands": 2 * exchanges, "seconds": took, "rate": 2 * exchanges / took}


if __name__ == "__main__":
    rate, seconds, pause = (float(text) for text in (*sys.argv[1:3], "1"))
    wire = Wire()
    print(json.dumps({"port": wire.port}), flush=True)
    sys.stdin.readline()
    print(json.dumps(run(wire, rate, seconds)), flush=True)
    wire.close()
