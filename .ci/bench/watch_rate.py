"""What `rmqtool watch` does with 50,000 commands a second: what it sees, drops, and takes.

python -m bench.watch_rate [--rate N] [--seconds N] [--batch N] [--check] [-- WATCH OPTIONS]

A process of its own sends prepared packets through a pair of virtual interfaces, many with each
system call, so that it costs little beside the watch. Half of the commands are responses; a packet
has `--batch` of them. Each second repeats the commands of the first one, with other unique keys.
`--check`: the watch goes on, and each packet was decoded or is counted as dropped or unread.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from bench.soak import cpu_of
from tests.dissectors.live.test_interface import missing_right
from tests.tools import find
from tests.traffic.commands import send, sent

ROOT: Final = Path(__file__).resolve().parents[2]
CONNECTIONS: Final = 16
PORT: Final = 10911
BURST_MS: Final = 4
"""milliseconds between two bursts"""
AT_ONCE: Final = 512
"""packets with one system call"""
_SOL_PACKET: Final = 263
_PACKET_QDISC_BYPASS: Final = 20
_IP: Final = 14
_SEQUENCE: Final = _IP + 20 + 4
_KEY: Final = b"UNIQ_KEY\\u00010A0000050000"
"""of a send; behind the host there is room for the connection and the second"""
_NUMBERS: Final = struct.Struct(">II")


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """struct mmsghdr"""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vector", ctypes.POINTER(_Vector)),
        ("vectors", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint),
    )


class Second:
    """The packets of one second, in one piece of memory."""

    def __init__(self, rate: int, batch: int) -> None:
        each = rate // (2 * CONNECTIONS * batch)
        self.packets = 2 * CONNECTIONS * each
        self.commands = self.packets * batch
        self._sizes = [0] * (2 * CONNECTIONS)
        parts: list[bytes] = []
        self._places: list[tuple[int, int]] = []
        """where the sequence number of a packet is, and which direction it is of"""
        self._keys: list[int] = []
        """where the unique key of a message says the second"""
        self._number = 0
        size = 0
        lengths = []
        for number in range(each):
            for connection in range(CONNECTIONS):
                first = number * batch
                numbers = range(first, first + batch)
                asked = b"".join(send(one).frame for one in numbers)
                asked = asked.replace(_KEY, b"%s%04X" % (_KEY[:-4], connection))
                told = b"".join(sent(one, one).frame for one in numbers)
                for direction, payload in ((0, asked), (1, told)):
                    packet = self._packet(connection, direction, payload)
                    self._places.append((size + _SEQUENCE, 2 * connection + direction))
                    at = packet.find(_KEY[:-4])
                    while at >= 0:
                        self._keys.append(size + at + len(_KEY))
                        at = packet.find(_KEY[:-4], at + 1)
                    parts.append(packet)
                    lengths.append(len(packet))
                    size += len(packet)
        self._data = bytearray(b"".join(parts))
        self._ends = list(self._sizes)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._data))
        self._vectors = (_Vector * self.packets)()
        self.messages = (_Message * self.packets)()
        for at, length in enumerate(lengths):
            self._vectors[at] = _Vector(base, length)
            self.messages[at].vector = ctypes.pointer(self._vectors[at])
            self.messages[at].vectors = 1
            base += length

    def _packet(self, connection: int, direction: int, payload: bytes) -> bytes:
        here, there = 2 * connection + direction, 2 * connection + 1 - direction
        client = socket.inet_aton("10.88.0.1"), 40000 + connection
        server = socket.inet_aton("10.88.0.2"), PORT
        source, target = (client, server) if direction == 0 else (server, client)
        ip = struct.pack(
            ">BBHHHBBH4s4s",
            *(0x45, 0, 40 + len(payload), 0, 0x4000, 64, 6, 0, source[0], target[0]),
        )
        tcp = struct.pack(
            ">HHIIBBHHH",
            *(source[1], target[1], self._sizes[here], self._sizes[there], 0x50, 0x18),
            *(65535, 0, 0),
        )
        self._sizes[here] += len(payload)
        return b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + ip + tcp + payload

    def advance(self) -> None:
        """Move all packets on in their streams by one second."""
        self._number += 1
        text = b"%04X" % self._number
        for at in self._keys:
            self._data[at : at + 4] = text
        data, read, write = self._data, _NUMBERS.unpack_from, _NUMBERS.pack_into
        ends = self._ends
        for at, direction in self._places:
            sequence, acknowledged = read(data, at)
            write(
                data,
                at,
                (sequence + ends[direction]) & 0xFFFFFFFF,
                (acknowledged + ends[direction ^ 1]) & 0xFFFFFFFF,
            )


def _send(interface: str, rate: int, seconds: int, batch: int) -> None:
    """Send; print what was sent as JSON."""
    second = Second(rate, batch)
    libc = ctypes.CDLL(None, use_errno=True)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as one:
        one.bind((interface, 0))
        one.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
        with suppress(OSError):
            os.nice(-10)  # what is to be measured must not slow it down
        print(json.dumps({"packets": second.packets}), flush=True)
        sys.stdin.readline()
        begin = time.perf_counter()
        packets = 0
        for number in range(seconds):
            if number:
                second.advance()
            done = 0
            while done < second.packets:
                due = int((time.perf_counter() - begin - number) * second.packets)
                due = min(due, second.packets)
                while done < due:
                    count = min(AT_ONCE, due - done)
                    place = ctypes.byref(second.messages, done * ctypes.sizeof(_Message))
                    found = libc.sendmmsg(one.fileno(), place, count, 0)
                    if found < 0:
                        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                    done += found
                time.sleep(BURST_MS / 1000)
            packets += done
        took = time.perf_counter() - begin
    done = {"packets": packets, "commands": packets * batch, "seconds": took}
    print(json.dumps({**done, "rate": packets * batch / took}), flush=True)


class NoInterfaceError(Exception):
    """There is no way to make an interface; the text says so."""


@contextmanager
def interfaces() -> Iterator[tuple[str, str]]:
    """A pair of virtual interfaces without addresses; raise NoInterfaceError without the right."""
    names = f"rmq{os.getpid() % 100000}a", f"rmq{os.getpid() % 100000}b"

    def link(*words: str) -> bool:
        program = find("ip")
        if program is None:
            return False
        done = subprocess.run([program, "link", *words], capture_output=True, check=False)
        return done.returncode == 0

    if not link("add", names[0], "type", "veth", "peer", "name", names[1]):
        raise NoInterfaceError("no virtual interface can be made here")
    try:
        for name in names:
            link("set", name, "mtu", "65535", "up")
        yield names
    finally:
        link("del", names[0])


def measure(rate: int, seconds: int, batch: int, options: list[str]) -> dict[str, Any]:
    """Run the watch beside the packets; return what it did."""
    me = [sys.executable, "-m", "bench.watch_rate", "--rate", str(rate)]
    with interfaces() as (near, far), tempfile.TemporaryDirectory() as folder:
        command = [*me, "--seconds", str(seconds), "--batch", str(batch), "--send", near]
        watch = [sys.executable, "-m", "rmqtool", "watch", "-i", far, "-T", "jsonl"]
        watch += ["-f", f"tcp port {PORT}", "--ring-dir", f"{folder}/ring", *options]
        pipe = subprocess.PIPE
        with (
            subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as sender,
            subprocess.Popen(watch, cwd=ROOT, stdout=pipe) as running,
        ):
            assert sender.stdout is not None
            assert sender.stdin is not None
            assert running.stdout is not None
            try:
                sender.stdout.readline()
                running.stdout.readline()
                before = cpu_of(running.pid)
                sender.stdin.write(b"\n")
                sender.stdin.flush()
                done = json.loads(sender.stdout.readline())
                time.sleep(2)
                running.terminate()
                events = [json.loads(line) for line in running.stdout]
                status = running.wait(60)
            finally:
                sender.kill()
                running.kill()
    last = events[-1]
    commands = 2 * last["exchanges"]
    return {
        "sent": done["commands"],
        "sent_per_second": round(done["rate"]),
        "status": status,
        "packets": last["packets"],
        "dropped": last["dropped"],
        "unread": last["unread"],
        "decoded_commands": commands,
        "memory_bytes": last["memory_bytes"],
        "cpu_seconds": round(last["cpu_seconds"] - before, 2),
        "cpu_ms_per_1000_commands": round(
            (last["cpu_seconds"] - before) * 1e6 / max(commands, 1), 2
        ),
        "told": sorted({one["event"] for one in events}),
    }


def main() -> int:
    """Measure; the status is 1 with `--check` where something is not accounted for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=50_000, help="commands a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--batch", type=int, default=1, help="commands in a packet")
    parser.add_argument("--send", default="", help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("options", nargs="*", help="further options of the watch")
    given = parser.parse_args()
    if given.send:
        _send(given.send, given.rate, given.seconds, given.batch)
        return 0
    if why := missing_right("tcp"):
        print(f"skipped: {why}")
        return 0
    try:
        result = measure(given.rate, given.seconds, given.batch, given.options)
    except NoInterfaceError as reason:
        print(f"skipped: {reason}")
        return 0
    print(json.dumps(result, indent=2))
    sent = result["sent"] // given.batch
    good = result["status"] == 0 and result["packets"] == sent
    read = sent - result["dropped"] - result["unread"]
    good = good and result["decoded_commands"] >= read * given.batch * 0.9  # streams have holes
    return 0 if good or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
