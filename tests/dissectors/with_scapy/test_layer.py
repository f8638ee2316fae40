"""RemotingCommand as a scapy layer: Java's bytes, captures of others, holes and repeats."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("scapy.packet")

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.sendrecv import sniff
from scapy.sessions import TCPSession
from scapy.utils import rdpcap, wrpcap

from dissectors.decode.pipeline import Decode
from dissectors.with_scapy import layer
from dissectors.with_scapy.layer import PORTS, RemotingLayer, RemotingSession
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, send, sent
from tests.traffic.talk import Talk, Tcp

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared"
DOCS = ROOT / "docs" / "scapy.md"
every_form = pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])


def commands_of(packets: object) -> list[tuple[int, int, int, bytes]]:
    """Code, opaque, flag and body of all commands, in order."""
    found = []
    for packet in packets:  # type: ignore[attr-defined]
        layer = packet.getlayer(RemotingLayer)
        while layer is not None:
            found.append((int(layer.code), int(layer.opaque), int(layer.flag), bytes(layer.body)))
            layer = layer.payload.getlayer(RemotingLayer)
    return found


@every_form
def test_fields_are_those_of_the_bytes_and_build_them_again(binary: bool) -> None:
    for command in (send(7, b"\0body", binary=binary), sent(-7, 9), Command(0, 1, 1, remark="x")):
        layer = RemotingLayer(command.frame)
        assert bytes(layer) == command.frame
        assert (layer.code, layer.opaque, int(layer.flag)) == (
            command.code,
            command.opaque,
            command.flag,
        )
        assert (layer.ext, layer.body, layer.remark) == (command.ext, command.body, command.remark)
        layer.opaque = 12345
        again = RemotingLayer(bytes(layer))
        assert (again.opaque, again.ext, again.body) == (12345, command.ext, command.body)
        layer.ext["topic"] = "changed in place"
        assert RemotingLayer(bytes(layer)).ext["topic"] == "changed in place"


def test_frames_of_the_java_classes_come_back_byte_for_byte() -> None:
    path = SHARED / "protocol" / "vectors.json"
    if not path.exists():
        pytest.skip("the vectors are not beside this repository")
    text = path.read_text()
    frames = [bytes.fromhex(found) for found in re.findall(r'"([0-9a-f]{60,})"', text)]
    whole = [data for data in frames if isinstance(RemotingLayer(data), RemotingLayer)]
    assert len(whole) >= 5
    for data in whole:
        layer = RemotingLayer(data)
        assert bytes(layer) == data
        assert bytes(layer.copy()) == data


def test_names_stand_for_codes_and_values_become_texts() -> None:
    layer = RemotingLayer(code="PULL_MESSAGE", ext={"queueId": 3, "m": False})
    assert layer.code == 11
    again = RemotingLayer(bytes(layer))
    assert again.ext == {"queueId": "3", "m": "false"}
    assert "PULL_MESSAGE (11)" in again.show(dump=True)
    assert again.summary() == "RocketMQ PULL_MESSAGE (11) opaque=0"
    with pytest.raises(ValueError, match="NO_SUCH"):
        RemotingLayer(code="NO_SUCH")


def test_ports_are_bound_both_ways() -> None:
    frame = send(1).frame
    for port in PORTS:
        for ends in ({"dport": port, "sport": 5}, {"sport": port, "dport": 5}):
            packet = Ether(bytes(Ether() / IP() / TCP(**ends) / Raw(frame)))
            assert RemotingLayer in packet
    assert (IP() / TCP() / RemotingLayer())[TCP].dport == 10911


def test_several_in_a_segment_and_a_part_of_one() -> None:
    data = send(1).frame + send(2).frame + send(3).frame[:50]
    packet = IP(bytes(IP() / TCP(dport=10911) / Raw(data)))
    assert [one[1] for one in commands_of([packet])] == [1, 2]
    assert packet[Raw].load == send(3).frame[:50]
    assert bytes(packet[TCP].payload) == data
    for junk in (b"", b"\0", b"GET / HTTP/1.1\r\n\r\n", bytes(100), b"\xff" * 64):
        assert RemotingLayer not in IP(bytes(IP() / TCP(dport=10911) / Raw(junk)))


def test_answers() -> None:
    request, response = RemotingLayer(send(5).frame), RemotingLayer(sent(5).frame)
    assert response.answers(request)
    assert not request.answers(response)
    assert not RemotingLayer(sent(6).frame).answers(request)
    assert request.hashret() == response.hashret()


def sniffed(
    tmp_path: Path, segments: list[Tcp], session: type
) -> list[tuple[int, int, int, bytes]]:
    """The commands that scapy sees in a capture with a session."""
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(segments))
    return commands_of(rdpcap_with(path, session))


def rdpcap_with(path: Path, session: type) -> list[object]:
    """All packets of a capture through a session."""
    one = session()
    found = list(sniff(offline=str(path), session=one, store=True))
    return found + (one.finish() if isinstance(one, RemotingSession) else [])


def talk() -> Talk:
    """Twelve sends of 2000 bytes, each in two segments, and their answers."""
    talk = Talk().open()
    for opaque in range(12):
        talk.say(0, send(opaque, bytes(2000)).frame).say(1, sent(opaque, opaque).frame)
    return talk


EXPECTED = [one for n in range(12) for one in ((310, n, 0, bytes(2000)), (0, n, 1, b""))]


def test_a_session_joins_segments(tmp_path: Path) -> None:
    assert sniffed(tmp_path, talk().segments, RemotingSession) == EXPECTED


@pytest.mark.parametrize("sequence", [50, 1 << 31])
def test_another_connection_of_the_same_ports_is_read(sequence: int, tmp_path: Path) -> None:
    first = Talk(isn=(9999, 5000)).open().say(0, send(1).frame)
    again = Talk(isn=(sequence, 7000)).open()
    again.say(0, send(2).frame).say(0, send(3).frame)
    found = sniffed(tmp_path, [*first.segments, *again.segments], RemotingSession)
    assert [opaque for _, opaque, _, _ in found] == [1, 2, 3]


def test_a_flag_keeps_its_sign() -> None:
    layer = RemotingLayer(replace(send(1), flag=-1).frame)
    layer.opaque = 5
    assert layer.command_value().flag == -1


def test_repeated_segments_are_given_once_where_scapy_gives_them_twice(tmp_path: Path) -> None:
    segments = [one for segment in talk().segments for one in (segment, segment)]
    assert sniffed(tmp_path, segments, RemotingSession) == EXPECTED
    (answer,) = Talk().open().say(1, sent(1).frame).segments[3:]
    assert len(sniffed(tmp_path, [answer, answer], RemotingSession)) == 1
    assert len(sniffed(tmp_path, [answer, answer], TCPSession)) == 2


def test_a_session_keeps_the_latest_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layer, "MOST_FINDINGS", 8)
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of([one for segment in talk().segments for one in (segment, segment)]))
    session = RemotingSession()
    kept = []
    for packet in rdpcap(str(path)):
        session.process(packet)
        kept.append(len(session.experts))
    assert max(kept) == 8
    assert session.experts[-1].packet == len(kept), "the last one is a retransmission"


def test_a_hole_is_no_zero_bytes_and_loses_only_its_own_command(tmp_path: Path) -> None:
    whole = talk()
    requests = [n for n, one in enumerate(whole.segments) if one.dst.port == 10911 and one.payload]
    lost = requests[4]  # the head of the third send
    segments = [one for n, one in enumerate(whole.segments) if n != lost]
    found = sniffed(tmp_path, segments, RemotingSession)
    assert set(found) <= set(EXPECTED)
    path = tmp_path / "a.pcap"
    ours = [
        (seen.pdu.command.code, seen.pdu.opaque, seen.pdu.command.flag, bytes(seen.pdu.body))
        for batch in Decode([str(path)]).commands()
        for seen in batch
        if not seen.pdu.missing
    ]
    assert set(found) <= set(ours)
    assert {one for one in EXPECTED if one[2]} <= set(found)
    assert {(310, 0, 0), (310, 1, 0)} <= {one[:3] for one in found}


@pytest.mark.skipif(not (SHARED / "captures").exists(), reason="the captures are not beside this")
@pytest.mark.parametrize(
    "name", ["rocketmq-send-message-v2", "rocketmq-pull-message", "rocketmq-heartbeat"]
)
def test_captures_have_the_commands_that_our_decode_has(name: str) -> None:
    path = SHARED / "captures" / f"{name}.pcap"
    theirs = sorted(commands_of(rdpcap_with(path, RemotingSession)))
    ours = sorted(
        (seen.pdu.command.code, seen.pdu.opaque, seen.pdu.command.flag, bytes(seen.pdu.body))
        for batch in Decode([str(path)]).commands()
        for seen in batch
        if {int(seen.pdu.src.rpartition(":")[2]), int(seen.pdu.dst.rpartition(":")[2])} & set(PORTS)
    )
    assert [one for one in theirs if one not in ours] == []
    assert len(theirs) >= 0.8 * len(ours) > 0


def test_crafted_packets_are_what_our_decode_and_a_file_have(tmp_path: Path) -> None:
    path = tmp_path / "crafted.pcap"
    layer = RemotingLayer(code="GET_ROUTEINFO_BY_TOPIC", opaque=9, ext={"topic": "Orders"})
    wrpcap(str(path), [Ether() / IP(dst="10.0.0.1") / TCP(dport=9876, seq=1, flags="PA") / layer])
    (seen,) = [seen for batch in Decode([str(path)]).commands() for seen in batch]
    assert (seen.pdu.command.code, seen.pdu.command.ext_fields) == (105, {"topic": "Orders"})
    assert bytes(rdpcap(str(path))[0][RemotingLayer]) == bytes(layer)


@pytest.mark.slow
def test_the_example_of_the_docs_runs_against_the_sandbox() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "sandbox_thread" in block]
    done = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["code"] == "SUCCESS"
    assert said["brokers"] == ["broker-a"]
