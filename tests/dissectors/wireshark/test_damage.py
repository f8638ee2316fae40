"""Bytes of any kind in the dissector: Lua never fails, and tshark ends.

The inputs that fuzzing has found for our decoder, seeded noise, and frames in which single bytes
are wrong, each as a conversation of its own; trees, JSON and summary lines are made of all.
"""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from dissectors.remoting.code_names import OPERATIONS
from tests.fuzz.corpus import corpus_of
from tests.fuzz.seeds import seeds_of
from tests.traffic.captures import pcap_of
from tests.traffic.commands import Command, frame, send, sent
from tests.traffic.talk import End, Talk, Tcp

from .tshark import run_tshark

pytestmark = pytest.mark.tshark

CODES = sorted(OPERATIONS)
VIEWS = (("-V",), ("-2", "-T", "json"), ())


def talks(conversations: Iterable[Iterable[tuple[int, bytes]]]) -> list[Tcp]:
    """The segments of conversations on RocketMQ's port, each what its ends say in order."""
    segments: list[Tcp] = []
    for number, said in enumerate(conversations):
        client = End(f"10.1.{number >> 8 & 255}.{number & 255}", 40000 + number % 20000)
        talk = Talk(client, End("10.0.0.1", 10911)).open()
        for side, data in said:
            talk.say(side, data)
        segments += talk.close().segments
    return segments


def assert_survives(
    dissector: Path, folder: Path, conversations: Iterable[Iterable[tuple[int, bytes]]]
) -> None:
    """tshark shows all of it in every way and ends, and nothing goes wrong in Lua."""
    path = folder / "any.pcap"
    path.write_bytes(pcap_of(talks(conversations)))
    for view in VIEWS:
        out = run_tshark(dissector, path, *view)
        assert out


def inputs_of(target: str) -> list[bytes]:
    found = [*corpus_of(target), *seeds_of(target)]
    assert len(found) > 10
    return found


def test_streams(dissector: Path, tmp_path: Path) -> None:
    def said(data: bytes) -> Iterator[tuple[int, bytes]]:
        size = 1 + data[0] if data else 1
        for index, at in enumerate(range(2, len(data), size)):
            yield (index & 1 if data[1] & 2 else 0), data[at : at + size]

    assert_survives(dissector, tmp_path, [list(said(data)) for data in inputs_of("stream")])


def test_frames(dissector: Path, tmp_path: Path) -> None:
    assert_survives(dissector, tmp_path, [[(0, data[1:])] for data in inputs_of("frames")])


def test_headers(dissector: Path, tmp_path: Path) -> None:
    said = [
        [(0, frame(data, b"{}", kind)), (1, sent(1).frame)]
        for data in inputs_of("header")
        for kind in (0, 1)
    ]
    assert_survives(dissector, tmp_path, said)


def test_bodies(dissector: Path, tmp_path: Path) -> None:
    said = []
    for number, data in enumerate(inputs_of("body")):
        if len(data) < 3:
            continue
        request = Command(CODES[data[0] % len(CODES)], number)
        if data[1] & 1:
            said.append([(0, request.frame), (1, request.answer(body=data[2:]).frame)])
        else:
            said.append([(0, Command(request.code, number, body=data[2:]).frame)])
    assert_survives(dissector, tmp_path, said)


def test_noise(dissector: Path, tmp_path: Path) -> None:
    dice = random.Random(8)
    said: list[list[tuple[int, bytes]]] = []
    for number in range(150):
        noise = dice.randbytes(dice.choice((1, 7, 8, 30, 300, 3000)))
        head = (b"", b"\0\0", b"\0\0\1\0\0\0\0\x20{", b"\0\0\1\0\1\0\0\x20")[number % 4]
        said.append([(0, head + noise), (1, noise), (0, send(number).frame), (0, head)])
    assert_survives(dissector, tmp_path, said)


@pytest.mark.parametrize("binary", [False, True])
def test_wrong_bytes(dissector: Path, tmp_path: Path, binary: bool) -> None:
    """A frame with one byte changed, then whole ones: those behind it are found again."""
    dice = random.Random(9)
    whole = send(1, body=b"x" * 40, binary=binary).frame
    said = []
    for at in range(0, len(whole), 3):
        wrong = bytearray(whole)
        wrong[at] = dice.randrange(256)
        said.append([(0, bytes(wrong)), (0, send(2).frame), (0, send(3).frame)])
    assert_survives(dissector, tmp_path, said)


def opens(path: Path) -> bool:
    """Return whether Wireshark's library opens a file; it is asked in a tenth of tshark's start."""
    asked = subprocess.run(["capinfos", "-c", str(path)], capture_output=True, check=False)
    return b"Number of packets" in asked.stdout


def test_captures(dissector: Path, tmp_path: Path) -> None:
    """Whole capture files of the fuzzer; most are refused before any packet is read."""
    read = refused = 0
    for number, data in enumerate(inputs_of("capture")):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(data)
        if not opens(path):
            refused += 1
            if refused > 1:
                continue
        done = subprocess.run(
            ["tshark", "-n", "-X", f"lua_script:{dissector}", "-r", str(path), "-V"],
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert b"Lua Error" not in done.stdout
        assert b"Lua" not in done.stderr
        read += done.returncode == 0
    assert read
    assert refused > read
