"""Packets of scapy, and interfaces: the rights of the caller's process are its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rmqtool
from tests.dissectors.live.test_interface import needs_filter, needs_right
from tests.rmqtool.live_traffic import Wire
from tests.traffic.commands import send, sent

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "samples" / "send-sync-5x.pcap"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to keep")


def rows(capture: rmqtool.Capture) -> list[tuple[object, ...]]:
    return [
        (row.request_packet, row.request_time, row.response_time, row.unique_key)
        for row in capture.exchanges()
    ]


def test_packets_of_scapy_are_a_capture() -> None:
    scapy = pytest.importorskip("scapy.all")
    packets = scapy.rdpcap(str(SAMPLE))
    capture = rmqtool.read(packets)
    assert rows(capture) == rows(rmqtool.read(SAMPLE))
    assert rows(capture) == rows(capture)
    assert rows(rmqtool.read(list(packets))) == rows(capture)
    assert {row.capture for row in capture.exchanges()} == {"packets"}


def test_packets_without_a_link_layer_are_said_with_the_way_out() -> None:
    scapy = pytest.importorskip("scapy.all")
    with pytest.raises(rmqtool.ReadError, match=r"not with Raw\n  import scapy\.all"):
        rows(rmqtool.read([scapy.Raw(b"x")]))


@pytest.mark.slow
def test_reading_a_file_does_not_load_scapy() -> None:
    code = (
        "import sys, rmqtool; list(rmqtool.read(sys.argv[1]).exchanges());"
        "assert not [name for name in sys.modules if name.startswith('scapy')]"
    )
    subprocess.run([sys.executable, "-c", code, str(SAMPLE)], cwd=ROOT, check=True)


@as_root
@needs_filter
def test_an_interface_gives_rows_as_they_come_and_keeps_the_rights() -> None:
    pytest.importorskip("scapy.packet")
    rights = Path("/proc/self/status").read_text()
    wire, ended = Wire(), threading.Event()

    def talk() -> None:
        while not ended.wait(0.05):
            wire.say(send(1).frame, sent(1, 1).frame)

    talking = threading.Thread(target=talk)
    try:
        capture = rmqtool.read(
            interface="lo",
            packet_filter=f"tcp port {wire.port}",
            duration=20,
            decode_as=[wire.port],
        )
        found = capture.exchanges("has request_name")
        talking.start()
        assert next(found).request_name == "SEND_MESSAGE_V2"
        del found
    finally:
        ended.set()
        if talking.ident is not None:
            talking.join()
        wire.close()
    assert _rights_in(Path("/proc/self/status").read_text()) == _rights_in(rights)
    assert os.geteuid() == 0


def _rights_in(status: str) -> list[str]:
    names = ("Uid", "Gid", "Groups", "Cap", "NoNewPrivs")
    return [line for line in status.splitlines() if line.startswith(names)]


@as_root
@needs_right
@pytest.mark.slow
def test_rights_are_given_up_where_that_is_asked_for() -> None:
    pytest.importorskip("scapy.packet")
    code = (
        "import rmqtool; list(rmqtool.read(interface='lo', duration=0.1, drop_privileges=True)"
        ".exchanges()); print(open('/proc/self/status').read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "CapEff:\t0000000000000000" in done.stdout
    assert "NoNewPrivs:\t1" in done.stdout


def test_an_interface_that_is_not_there_is_said() -> None:
    pytest.importorskip("scapy.packet")
    capture = rmqtool.read(interface="no-such")
    with pytest.raises(rmqtool.ReadError, match="no-such: no such interface\n  available: "):
        list(capture.exchanges())


def test_an_interface_is_read_alone_and_for_some_time() -> None:
    with pytest.raises(
        rmqtool.ArgumentError, match="an interface cannot be combined with other inputs"
    ):
        rmqtool.read(SAMPLE, interface="lo")
    with pytest.raises(rmqtool.ArgumentError, match="duration"):
        rmqtool.read(interface="lo", duration=0)
