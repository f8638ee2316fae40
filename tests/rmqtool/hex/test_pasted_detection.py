"""`rmqtool decode X` without a command detects captures, and bytes as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rmqtool.command import ROOT, rmqtool

CAPTURE = ROOT / "samples" / "push-orderly-5x.pcap"
FRAME = '{"code":105,"extFields":{"topic":"Orders"},"opaque":7,"version":435}'
HEX = f"{len(FRAME) + 4:08x}{len(FRAME):08x}{FRAME.encode().hex()}"


def _same(given: tuple[object, ...], named: tuple[object, ...]) -> None:
    one, other = rmqtool("decode", *given), rmqtool("decode", *named)
    assert one.status == other.status == 0
    assert one.out == other.out != ""


def test_a_capture_is_detected_wherever_its_options_stand(tmp_path: Path) -> None:
    _same((CAPTURE, "-c", 2), ("pcap", CAPTURE, "-c", 2))
    _same(("-c", 2, CAPTURE), ("pcap", "-c", 2, CAPTURE))
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "a.pcap").write_bytes(CAPTURE.read_bytes())
    _same((folder,), ("pcap", folder))


def test_hex_is_detected_as_an_argument_and_in_a_file(tmp_path: Path) -> None:
    _same((HEX,), ("hex", HEX))
    path = tmp_path / "frame.txt"
    path.write_text(" ".join(HEX[at : at + 2] for at in range(0, len(HEX), 2)))
    _same((path,), ("hex", path))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("missing.pcap", "no such file"),
        ("nope.pcap", "no such file"),
        ("pcpa", "Did you mean 'pcap'?"),
        ("a\0b", "no such file"),
    ],
)
def test_what_does_not_exist_is_reported(word: str, message: str) -> None:
    result = rmqtool("decode", word)
    assert result.status != 0
    assert message in result.err
    assert "Traceback" not in result.err


def test_a_file_instead_of_a_command_gets_the_command() -> None:
    result = rmqtool(CAPTURE, COLUMNS="200")
    assert result.status == 2
    assert f"rmqtool decode {CAPTURE}" in " ".join(result.err.split())


@pytest.mark.parametrize("data", [b"", b"hello\n", b"not hex, not a dump\n" * 400])
def test_other_files_are_no_captures(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    named = rmqtool("decode", "pcap", path)
    assert rmqtool("decode", path) == named
    assert named.status == 1


def test_a_long_hex_dump_is_detected(tmp_path: Path) -> None:
    path = tmp_path / "frames.txt"
    path.write_text("\n".join([HEX] * 100))
    assert path.stat().st_size > 8192
    _same((path,), ("hex", path))
