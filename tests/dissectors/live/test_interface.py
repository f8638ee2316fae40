"""Live capture on the loopback interface and on interfaces made for the test.

Oracle: tcpdump, which captures the same packets at the same time.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dissectors.live import interface as live
from dissectors.live import packet_ring
from dissectors.live.interface import (
    LiveCapture,
    LiveError,
    LiveSource,
    RingPacket,
    pcap_records,
)
from dissectors.with_scapy.sockets import list_interfaces, load_scapy, open_capture
from tests.dissectors.tcp.readers import read
from tests.patience import Stopwatch, wait_for
from tests.rmqtool.live_traffic import Wire
from tests.sources import ROOT
from tests.tools import STARTUP
from tests.traffic.captures import pcap
from tests.traffic.talk import START


def missing_right(filter_text: str = "") -> str:
    """Return why packets cannot be captured here, with that filter; empty: they can."""
    try:
        open_capture("lo", filter_text).close()
    except LiveError as error:
        return str(error).splitlines()[0]
    return ""


needs_right = pytest.mark.usefixtures("right_to_capture")
needs_filter = pytest.mark.usefixtures("capture_filters")
every_way = pytest.mark.parametrize("ring", [True, False], ids=["ring", "one"])
LITTLE_RING = 2 * packet_ring.BLOCK_BYTES


def all_of(capture: LiveCapture, patience: float = 0.3) -> list[RingPacket]:
    """What comes until nothing more does for a while."""
    found: list[RingPacket] = []
    while packets := capture.receive(patience):
        found += packets
    return found


def has_times_of_arrival(capture: LiveCapture, wire: Wire) -> bool:
    """Whether packets carry the time at which they came.

    The kernel begins to note it a moment after the first socket asked; until then a packet that is
    read without a ring gets the time at which it is read.
    """
    wire.say(b"first")
    said = time.time_ns()
    time.sleep(0.005)
    return all(packet.ts <= said for packet in all_of(capture))


def payload_of(packet: RingPacket) -> bytes:
    """The TCP payload of a packet over Ethernet and IPv4."""
    data = packet.data[14:]
    head = (data[0] & 15) * 4
    total = int.from_bytes(data[2:4], "big")
    return data[head + (data[head + 12] >> 4) * 4 : total]


# -- without rights ------------------------------------------------------------------------------


def test_interfaces_are_named_with_their_addresses() -> None:
    by_name = {one.name: one for one in list_interfaces()}
    assert by_name["lo"].is_up
    assert by_name["lo"].is_loopback
    assert "127.0.0.1" in by_name["lo"].addresses
    assert set(by_name) == {name for _, name in socket.if_nameindex()}


def test_an_interface_that_is_none_is_said_with_those_there_are() -> None:
    with pytest.raises(LiveError, match=r"^nosuch0: no such interface\n  available: .*\blo\b"):
        open_capture("nosuch0")


@pytest.mark.slow
def test_a_missing_right_is_said_with_the_way_out() -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    code = (
        "from dissectors.with_scapy.sockets import *\n"
        "try: open_capture('lo')\n"
        "except LiveError as error: print(error)"
    )
    drop = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw", sys.executable, "-c", code]
    command = drop if os.geteuid() == 0 else drop[3:]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [
        "lo: permission denied: capturing needs root or CAP_NET_RAW",
        "  run it as root, or use tcpdump:",
        "  sudo tcpdump -i lo -U -w - | rmqtool decode pcap -",
    ]


def test_scapy_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "scapy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scapy", None)
    with pytest.raises(LiveError, match=r"(?s)scapy cannot be imported.*pip install"):
        load_scapy()


def test_records_are_those_of_a_pcap() -> None:
    packets = [RingPacket(START + 7, b"abc", 60), RingPacket(START + 10**9, b"d", 1)]
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    seen, findings = read(head + pcap_records(packets))
    assert findings == []
    assert [(one.ts, one.data, one.length) for one in seen] == [tuple(p) for p in packets]
    whole = pcap([(p.ts, p.data) for p in packets[1:]], nano=True)
    assert head + pcap_records(packets[1:]) == whole


# -- with rights ---------------------------------------------------------------------------------


@needs_right
def test_a_filter_without_libpcap_names_the_packages() -> None:
    code = (
        "from dissectors.with_scapy.sockets import *\n"
        "try: open_capture('lo', 'tcp port 1')\n"
        "except LiveError as error: print(error)"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": f"{STARTUP}:{ROOT}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "lo: the filter 'tcp port 1' needs libpcap, which is not installed",
        "  Debian, Ubuntu: apt install libpcap0.8",
        "  Fedora, RHEL: dnf install libpcap",
        "  or capture without a filter",
    ]


@needs_filter
def test_a_filter_that_is_none_is_said() -> None:
    with pytest.raises(LiveError, match=r"^lo: the filter 'tcp prot 1' is not a capture filter: "):
        open_capture("lo", "tcp prot 1")


@needs_filter
@every_way
def test_packets_are_seen_once_in_order_with_their_times(ring: bool) -> None:
    wire = Wire()
    with closing(open_capture("lo", f"tcp port {wire.port}", ring=ring)) as capture:
        assert capture.linktype == 1
        assert capture.reads_ring == ring
        wait_for("times of arrival", lambda: has_times_of_arrival(capture, wire))
        before = time.time_ns()
        said = [f"{number:06}".encode() * (number + 1) for number in range(300)]
        for text in said:
            wire.say(text)
        wire.close()
        found = all_of(capture)
    spoken = [payload_of(packet) for packet in found]
    assert b"".join(spoken) == b"".join(said)
    times = [packet.ts for packet in found]
    assert times == sorted(times)
    assert before <= times[0] <= times[-1] <= time.time_ns()
    assert all(packet.length == len(packet.data) for packet in found)
    assert capture.dropped == 0


@needs_filter
def test_more_than_the_ring_holds_passes_through_it() -> None:
    wire = Wire()
    with closing(open_capture("lo", f"tcp port {wire.port}", buffer_bytes=LITTLE_RING)) as capture:
        found = []
        for number in range(400):
            wire.say(bytes([number & 255]) * 10_000)
            found += capture.receive(0)
        found += all_of(capture)
    spoken = b"".join(map(payload_of, found))
    assert len(spoken) == 4_000_000 > 4 * LITTLE_RING
    assert spoken == b"".join(bytes([number & 255]) * 10_000 for number in range(400))
    assert capture.dropped == 0
    wire.close()


@needs_filter
def test_what_nobody_reads_is_dropped_and_counted() -> None:
    wire = Wire()
    with closing(open_capture("lo", f"tcp port {wire.port}", buffer_bytes=LITTLE_RING)) as capture:
        for _ in range(300):
            wire.say(bytes(10_000))
        capture.count()
        assert capture.dropped > 100
        found = all_of(capture)
    assert len(found) == capture.received - capture.dropped
    wire.close()


@pytest.mark.slow
@needs_filter
def test_tcpdump_sees_the_same(tmp_path: Path) -> None:
    if shutil.which("tcpdump") is None:
        pytest.skip("tcpdump is not installed")
    wire = Wire()
    path = tmp_path / "theirs.pcap"
    which = f"tcp port {wire.port}"
    command = [
        "tcpdump",
        "-i",
        "lo",
        "-U",
        "-n",
        "-Z",
        "root",
        "--time-stamp-precision=nano",
        "-B64000",
    ]
    with subprocess.Popen([*command, "-w", path, which], stderr=subprocess.PIPE) as theirs:
        assert theirs.stderr is not None
        assert b"listening" in theirs.stderr.readline()
        with closing(open_capture("lo", which)) as capture:
            for number in range(200):
                wire.say(bytes(number), bytes(3 * number))
            wire.say(bytes(3_000_000))  # segments as large as they can be
            wire.close()
            ours = all_of(capture)
            until = time.monotonic() + 20
            while len(read(path.read_bytes())[0]) < len(ours) and time.monotonic() < until:
                time.sleep(0.2)
        theirs.terminate()
        theirs.communicate()
    seen, _ = read(path.read_bytes())
    assert [packet.data for packet in ours] == [one.data for one in seen]
    assert max(abs(a.ts - b.ts) for a, b in zip(ours, seen, strict=True)) < 1_000_000
    assert max(len(packet.data) for packet in ours) > 65_535


@pytest.mark.slow
@needs_filter
def test_a_source_is_a_pcap_and_ends_when_its_time_is_over() -> None:
    wire = Wire()
    kept: list[RingPacket] = []
    capture = open_capture("lo", f"tcp port {wire.port}")
    watch = Stopwatch()  # a duration counts from where the source is made
    with closing(LiveSource(capture, duration=0.8, keep=kept.extend)) as source:
        chunks = source.chunks()
        parts = [next(chunks)]
        assert len(parts[0]) == 24
        wire.say(b"hello", b"there")
        parts += chunks
        assert watch.seconds >= 0.8
        assert watch.own < 3
    wire.close()
    assert b"" in parts
    seen, findings = read(b"".join(parts))
    assert findings == []
    assert [(one.ts, one.data) for one in seen] == [(one.ts, one.data) for one in kept]
    assert b"".join(map(payload_of, kept)) == b"hellothere"
    assert source.bytes_read == sum(map(len, parts))
    assert source.problem is None


# -- interfaces made for the test ----------------------------------------------------------------


@contextmanager
def pair_of_interfaces() -> Iterator[tuple[str, str]]:
    """Two interfaces, each the other's far end."""
    names = f"rmqa{os.getpid() % 10000}", f"rmqb{os.getpid() % 10000}"
    made = subprocess.run(
        ["ip", "link", "add", names[0], "type", "veth", "peer", "name", names[1]],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no pair of interfaces: {made.stderr.strip()}")
    try:
        for name in names:
            subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield names
    finally:
        subprocess.run(["ip", "link", "del", names[0]], check=False, capture_output=True)


@needs_right
@every_way
@pytest.mark.slow
def test_a_vlan_tag_that_the_kernel_takes_out_is_put_back(ring: bool) -> None:
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed")
    packet = bytes.fromhex("020000000001 020000000002 8100 6007 0800") + bytes(range(60))
    with (
        pair_of_interfaces() as (near, far),
        closing(open_capture(far, "", ring=ring)) as capture,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
    ):
        sender.bind((near, 0))
        sender.send(packet)
        found = [one for one in all_of(capture) if one.data.endswith(bytes(range(60)))]
    assert [(one.data, one.length) for one in found] == [(packet, len(packet))]


@needs_right
@every_way
def test_an_interface_that_goes_down_ends_the_capture(ring: bool) -> None:
    if shutil.which("ip") is None:
        pytest.skip("ip is not installed")
    with pair_of_interfaces() as (near, _):
        source = LiveSource(open_capture(near, ring=ring), duration=20)
        with closing(source):
            chunks = source.chunks()
            next(chunks)
            subprocess.run(["ip", "link", "set", near, "down"], check=True)
            watch = Stopwatch()
            list(chunks)
            assert watch.own < 10
    assert source.problem in ("the interface is down", "the interface is gone")


def test_the_reasons_of_the_system_are_in_plain_words() -> None:
    assert live.reason_of(OSError(100, "x")) == "the interface is down"
    assert live.reason_of(OSError(19, "x")) == "the interface is gone"
    assert live.reason_of(OSError(22, "Invalid argument")) == "Invalid argument"
