"""RocketMQ's own Java classes and ours make the same of every frame of every sample, both ways."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from dissectors.decode.pipeline import Decode
from dissectors.grpc.command import CallCommand
from dissectors.remoting.framing.frame import encode_frame
from dissectors.remoting.header_codec import decode_header, encode_header
from tests.cluster.clients.oracle import JavaCommand, decode_frames
from tests.dissectors.remoting import odd_bodies
from tests.dissectors.remoting.odd_headers import RELEASES, answers_of, recorded
from tests.streams import frames_of, streams_of

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
VECTORS = SAMPLES.parents[1] / "shared" / "protocol" / "vectors.json"
CAPTURES = sorted(path for path in SAMPLES.glob("*.pcap*") if ".expected." not in path.name)

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("java_oracle")]


@pytest.fixture(scope="module")
def java_oracle() -> None:
    """Skips where the Java classes cannot be had."""
    try:
        decode_frames([])
    except Exception as error:  # whatever is missing: Java, Maven, the artifacts
        pytest.skip(f"no Java oracle: {error}")


@pytest.fixture(scope="module")
def raw_frames() -> dict[str, dict[tuple[str, str], list[bytes]]]:
    """Frames of each capture by direction, of streams that are there from the SYN, whole."""
    found: dict[str, dict[tuple[str, str], list[bytes]]] = {}
    for path in CAPTURES:
        streams = [stream for stream in streams_of(path) if stream.whole]
        found[path.name] = {
            (stream.source, stream.destination): frames_of(stream) for stream in streams
        }
    return found


@pytest.fixture(scope="module")
def java(
    raw_frames: dict[str, dict[tuple[str, str], list[bytes]]],
) -> dict[bytes, JavaCommand]:
    """What Java makes of every frame, asked for in one run."""
    frames = sorted({f for by in raw_frames.values() for fs in by.values() for f in fs})
    answers = decode_frames(frames)
    return {
        frame: answer
        for frame, answer in zip(frames, answers, strict=True)
        if isinstance(answer, JavaCommand)
    }


# What is inside TLS is held to tshark: test_session_tshark.
@pytest.mark.parametrize(
    "path", [path for path in CAPTURES if "-keys-" not in path.name], ids=lambda path: path.name
)
def test_java_reads_the_same(
    path: Path,
    raw_frames: dict[str, dict[tuple[str, str], list[bytes]]],
    java: dict[bytes, JavaCommand],
) -> None:
    ours = defaultdict(list)
    for batch in Decode([str(path)]).commands():
        for seen in batch:
            if not isinstance(seen.pdu.command, CallCommand):
                ours[seen.pdu.src, seen.pdu.dst].append(seen.pdu)
    compared = 0
    for direction, frames in raw_frames[path.name].items():
        taken = [frame for frame in frames if frame in java]
        pdus = sorted(ours[direction], key=lambda pdu: pdu.offset)
        if direction not in ours:
            assert not taken, f"{direction}: Java reads {len(taken)} frames, we none"
            continue
        assert len(pdus) == len(taken)
        for pdu, frame in zip(pdus, taken, strict=True):
            theirs = java[frame]
            command = pdu.command
            assert command.wire_code == theirs.code
            assert command.language == theirs.language
            assert command.version == theirs.version
            assert command.opaque == theirs.opaque
            assert command.flag == theirs.flag
            assert (command.remark or None) == (theirs.remark or None)
            assert command.serialize_type == theirs.serialize_type
            assert command.ext_fields == (theirs.ext_fields or {})
            assert pdu.body == theirs.body
            assert pdu.frame_bytes == len(frame)
            compared += 1
    if "foreign" not in path.name and "tls" not in path.name:
        # Connections that were refused have no frames.
        assert compared or path.name.startswith("grpc-") or not any(raw_frames[path.name].values())


@pytest.mark.parametrize("column", range(len(RELEASES)), ids=RELEASES)
def test_java_reads_odd_headers_as_recorded(column: int) -> None:
    found = recorded()
    answers = answers_of(RELEASES[column], list(found))
    assert answers == [of_releases[column] for of_releases in found.values()]


@pytest.mark.parametrize("column", range(len(odd_bodies.RELEASES)), ids=odd_bodies.RELEASES)
def test_java_reads_odd_bodies_as_recorded(column: int) -> None:
    assert odd_bodies.answers_of(odd_bodies.RELEASES[column]) == odd_bodies.recorded()[column]


def test_java_reads_its_own_frames_from_us() -> None:
    """The frames of the protocol facts, written by Java, decoded and encoded again by us."""
    if not VECTORS.is_file():
        pytest.skip("no protocol facts beside the project")
    frames = [bytes.fromhex(one["hex"]) for one in json.loads(VECTORS.read_text())["frames"]]
    ours = []
    for frame in frames:
        size = int.from_bytes(frame[5:8], "big")
        command = decode_header(frame[4], frame[8 : 8 + size])
        assert command is not None
        ours.append(encode_frame(frame[4], encode_header(command, frame[4]), frame[8 + size :]))
    for before, after in zip(decode_frames(frames), decode_frames(ours), strict=True):
        assert isinstance(before, JavaCommand)
        assert isinstance(after, JavaCommand)
        assert replace(after, encoded=b"") == replace(before, encoded=b"")


def test_java_reads_what_we_encode() -> None:
    pdus = [
        seen.pdu
        for path in CAPTURES
        for batch in Decode([str(path)]).commands()
        for seen in batch
        if not (seen.pdu.missing or isinstance(seen.pdu.command, CallCommand))
    ]
    for serialize_type in (0, 1):
        frames = [
            encode_frame(serialize_type, encode_header(pdu.command, serialize_type), pdu.body)
            for pdu in pdus
        ]
        for pdu, theirs in zip(pdus, decode_frames(frames), strict=True):
            assert isinstance(theirs, JavaCommand)
            cut = serialize_type == 1 and not -32768 <= pdu.command.code <= 32767
            if not cut:
                assert theirs.code == pdu.command.code
            assert theirs.opaque == pdu.command.opaque
            assert theirs.flag == pdu.command.flag
            assert theirs.version == pdu.command.version
            assert theirs.language == pdu.command.language
            assert (theirs.remark or None) == (pdu.command.remark or None)
            wanted = pdu.command.ext_fields
            if serialize_type == 1:  # Java's reader takes an empty value for no value
                theirs_fields = {k: v or "" for k, v in (theirs.ext_fields or {}).items()}
                assert theirs_fields == wanted
            else:
                assert (theirs.ext_fields or {}) == wanted
            assert theirs.body == pdu.body
