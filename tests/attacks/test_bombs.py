"""Few bytes that would become many: what is made of them is bounded, and where it ended is said."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from dissectors.budget import FREE_BYTES
from dissectors.conversations.conversation import Pdu
from dissectors.decode.pipeline import CommandSeen, Decode
from dissectors.tcp.source import BytesSource
from rmqtool.decode.tree import Tree
from tests.rmqtool.command import rmqtool as run
from tests.traffic.captures import pcap_of
from tests.traffic.commands import HEART_BEAT, Command, send
from tests.traffic.talk import Talk

from .catalogue import long_headers, open_streams, telemetry
from .limited import MIB, limited

ZLIB, ZSTD = str(0x1 | 0x300), str(0x1 | 0x200)
MEMORY = 400 * MIB
"""bytes of address space: ten times what is in use"""


def capture_of(folder: Path, *commands: Command) -> Path:
    """Write a capture of one connection."""
    talk = Talk(mss=60_000).open()
    for one in commands:
        talk.say(0, one.frame)
    path = folder / "attack.pcap"
    path.write_bytes(pcap_of(talk.close().segments, "raw"))
    return path


def compressed(number: int, body: bytes, sys_flag: str) -> Command:
    """A send of a compressed body."""
    one = send(number, body)
    return replace(one, ext={**one.ext, "f": sys_flag})


def bombs(folder: Path, count: int) -> Path:
    """Sends of 147 bytes that are 4 MiB each."""
    body = zstandard.ZstdCompressor().compress(bytes(4 * MIB))
    assert len(body) < 200
    return capture_of(folder, *(compressed(n, body, ZSTD) for n in range(count)))


@pytest.mark.slow
@pytest.mark.parametrize("view", [("--commands", "-T", "jsonl"), ("-V", "--body-limit", "4MiB")])
def test_compressed_bodies_fill_no_screen_and_no_memory(view: list[str], tmp_path: Path) -> None:
    capture = bombs(tmp_path, 400)
    ended = limited(tmp_path, MEMORY, "decode", "pcap", capture, *view)
    assert ended.status == 0, ended.err
    assert ended.written < 2 * FREE_BYTES
    assert "compressed messages cut, first in packet" in ended.err
    assert "--max-output" in ended.err
    assert ended.peak < 150 * MIB


@pytest.mark.slow
def test_compressed_bodies_fill_no_disk(tmp_path: Path) -> None:
    capture = bombs(tmp_path, 400)
    arguments = ("decode", "pcap", capture, "--messages", "-o")
    ended = limited(tmp_path, MEMORY, *arguments, tmp_path / "default")
    assert ended.status == 0, ended.err
    written = sum(one.stat().st_size for one in (tmp_path / "default").rglob("*.body"))
    assert written < 2 * FREE_BYTES
    ended = limited(tmp_path, MEMORY, *arguments, tmp_path / "little", "--max-output", "10MB")
    assert "398 compressed messages cut" in ended.err
    assert sum(one.stat().st_size for one in (tmp_path / "little").rglob("*.body")) == 10_000_000


@pytest.mark.slow
def test_a_plan_of_many_large_bodies_is_shown_in_little_memory(tmp_path: Path) -> None:
    """Rows that wait for the width of a table are not bodies."""
    body = zlib.compress(bytes(16 * MIB), 9)
    capture = capture_of(tmp_path, *(compressed(n, body, ZLIB) for n in range(40)))
    assert capture.stat().st_size < MIB
    ended = limited(tmp_path, MEMORY, "replay", capture, "--dry-run", "--max-output", "1GiB")
    assert ended.status == 0, ended.err
    assert "40 messages in 40 sends would be replayed" in ended.err
    assert ended.peak < 200 * MIB


@pytest.mark.slow
def test_what_a_replay_decompresses_is_paid_for_by_what_it_reads(tmp_path: Path) -> None:
    body = zlib.compress(bytes(16 * MIB), 9)
    capture = capture_of(tmp_path, *(compressed(n, body, ZLIB) for n in range(40)))
    ended = limited(tmp_path, MEMORY, "replay", capture, "--dry-run")
    assert ended.status == 0, ended.err
    sent, left_out = 8, 32
    assert f"{sent} messages in {sent} sends would be replayed" in ended.err
    assert f"{left_out} its body exceeds the decompression limit" in ended.err
    assert "--max-output" in ended.err


def doubling(levels: int) -> bytes:
    """A body of references that would double with each level."""
    twice = (",".join([f'{{"$ref":"$.x{n - 1}"}}'] * 2) for n in range(1, levels))
    return f"{{x0:[1,2],{','.join(f'x{n}:[{refs}]' for n, refs in enumerate(twice, 1))}}}".encode()


def seen_of(body: bytes) -> CommandSeen:
    talk = Talk(mss=60_000).open().say(0, Command(HEART_BEAT, 1, body=body).frame)
    decode = Decode([BytesSource("a.pcap", pcap_of(talk.segments))])
    (one,) = [seen for batch in decode.commands() for seen in batch]
    assert isinstance(one.pdu, Pdu)
    return one


def test_references_are_no_more_lines_than_the_body_pays_for() -> None:
    """Twice the body, twice the lines: 800 bytes were a hundred thousand."""
    lines = []
    for levels in (16, 32, 64):
        seen = seen_of(doubling(levels))
        tree = Tree(["a.pcap"], False, None)
        lines.append(len(tree._lines_of("Request", seen)))
        assert lines[-1] < 10 * len(seen.pdu.body) + 100
    for less, more in pairwise(lines):
        assert more < 2.6 * less


@pytest.mark.slow
def test_a_text_that_nobody_can_read_is_cut_and_the_rest_counted(tmp_path: Path) -> None:
    one = send(3)
    long = replace(one, ext={**one.ext, "b": "T" * 1_001_000})
    capture = capture_of(tmp_path, send(1), send(2), long, *(send(n) for n in range(4, 400)))
    for view in ((), ("--commands",), ("-V",)):
        ended = limited(tmp_path, MEMORY, "decode", "pcap", capture, *view)
        assert ended.status == 0, ended.err
        text = (tmp_path / "stdout").read_text()
        assert " more" in text
        assert max(map(len, text.splitlines())) < 40_000
        assert ended.peak < 100 * MIB
    limited(tmp_path, MEMORY, "decode", "pcap", capture)
    assert "T… 1,000,000 more" in (tmp_path / "stdout").read_text()


@pytest.mark.slow
def test_bytes_without_a_capture_have_the_same_bounds(tmp_path: Path) -> None:
    body = zstandard.ZstdCompressor().compress(bytes(4 * MIB))
    stream = tmp_path / "stream.bin"
    stream.write_bytes(b"".join(compressed(n, body, ZSTD).frame for n in range(60)))
    arguments = ("decode", "stream", stream, "--input", "raw", "-T", "jsonl", "--max-output", "9MB")
    ended = limited(tmp_path, MEMORY, *arguments)
    assert ended.status == 0, ended.err
    assert ended.written < 20_000_000
    assert "compressed messages cut, first in packet" in ended.err


@pytest.mark.slow
@pytest.mark.parametrize("make", [open_streams, long_headers])
def test_streams_that_stay_open_keep_few_headers(
    make: Callable[[int], bytes], tmp_path: Path
) -> None:
    """Of 3,000 on each of four connections 1.6 GB were kept."""
    peaks = []
    for count in (1500, 3000):
        capture = tmp_path / "attack.pcap"
        capture.write_bytes(make(count))
        ended = limited(tmp_path, MEMORY, "decode", "pcap", capture, "--summary")
        assert ended.status == 0, ended.err
        peaks.append(ended.peak)
    assert max(peaks) < 250 * MIB
    assert peaks[1] < peaks[0] + 60 * MIB


@pytest.mark.parametrize("view", [(), ("--commands",)])
def test_messages_of_five_bytes_are_few_lines(view: list[str], tmp_path: Path) -> None:
    """They were 155 times as many bytes as the capture."""
    capture = tmp_path / "attack.pcap"
    written = []
    for count in (40, 80):
        capture.write_bytes(telemetry(count))
        ended = run("decode", "pcap", capture, "-T", "jsonl", *view)
        assert ended.status == 0, ended.err
        written.append(len(ended.out))
        assert written[-1] < 32 * capture.stat().st_size
    assert written[1] < 2.3 * written[0]
