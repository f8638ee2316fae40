"""The bytes of captures: compressions, what is cut or damaged, pipes, growing files, folders."""

from __future__ import annotations

import errno
import gzip
import io
import lzma
import os
import random
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard

from dissectors.tcp import source
from dissectors.tcp.decompression import COMPRESSIONS, DecompressedStream
from dissectors.tcp.source import (
    CHUNK,
    BytesSource,
    CaptureError,
    FileSource,
    StandardInput,
    expand_sources,
    sources_of,
)

Compress = Callable[[bytes], bytes]
ROOT = Path(__file__).resolve().parents[3]


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


COMPRESS: dict[str, Compress] = {
    "gzip": gzip.compress,
    "zstd": _zstd,
    "lz4": lz4.frame.compress,
    "xz": lzma.compress,
}
FORMATS = pytest.mark.parametrize("name", sorted(COMPRESS))
_RANDOM = random.Random(7)
DATA = b"".join(_RANDOM.randbytes(40) + bytes(60) for _ in range(6000))
"""600 kB: more than two chunks, and several blocks of every format"""


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[bytes], tuple[bytes, FileSource]]:
    """All bytes of a file with this content, and its source after the end."""

    def read(content: bytes) -> tuple[bytes, FileSource]:
        path = tmp_path / "file"
        path.write_bytes(content)
        opened = FileSource(str(path))
        chunks = list(opened.chunks())
        opened.close()
        assert all(0 < len(chunk) <= CHUNK for chunk in chunks)
        assert opened.size == len(content)
        return b"".join(chunks), opened

    return read


Stored = Callable[[bytes], tuple[bytes, FileSource]]


def test_plain_bytes(stored: Stored) -> None:
    for size in (0, 1, 7, 8, 9, CHUNK, CHUNK + 1, len(DATA)):
        data, opened = stored(DATA[:size])
        assert data == DATA[:size]
        assert (opened.compression, opened.problem) == (None, None)
        assert opened.bytes_read == size


@FORMATS
def test_compressed_bytes(stored: Stored, name: str) -> None:
    for size in (0, 1, 1000, len(DATA)):
        packed = COMPRESS[name](DATA[:size])
        data, opened = stored(packed)
        assert data == DATA[:size]
        assert (opened.compression, opened.problem) == (name, None)
        assert opened.bytes_read == len(packed)


@FORMATS
def test_several_streams_in_a_row(stored: Stored, name: str) -> None:
    pack = COMPRESS[name]
    data, opened = stored(pack(DATA[:1000]) + pack(b"") + pack(DATA[1000:]))
    assert (data == DATA, opened.problem) == (True, None)


@FORMATS
def test_zeros_behind_the_end_are_padding(stored: Stored, name: str) -> None:
    data, opened = stored(COMPRESS[name](DATA) + bytes(4096 + 4))
    assert (data == DATA, opened.problem) == (True, None)


@FORMATS
def test_other_bytes_behind_the_end_are_said(stored: Stored, name: str) -> None:
    data, opened = stored(COMPRESS[name](DATA) + b"not compressed")
    assert data == DATA
    assert opened.problem == f"what follows the {name} stream is not {name}"


@FORMATS
def test_all_before_the_cut_is_read(stored: Stored, name: str) -> None:
    packed = COMPRESS[name](DATA)
    block = {"gzip": 32768, "xz": 65536, "lz4": 65536, "zstd": 131072}[name]
    for share in (0.5, 0.9, 0.999):
        cut = int(len(packed) * share)
        data, opened = stored(packed[:cut])
        assert opened.problem == f"the {name} stream ends early"
        assert DATA.startswith(data)
        assert len(data) >= len(DATA) * share - 2 * block
    for cut in (len(packed) - 1, 9):
        data, opened = stored(packed[:cut])
        assert DATA.startswith(data)
        assert opened.problem == f"the {name} stream ends early"


@FORMATS
def test_all_before_the_damage_is_read(stored: Stored, name: str) -> None:
    packed = bytearray(COMPRESS[name](DATA))
    middle = len(packed) // 2
    packed[middle : middle + 200] = bytes(200)
    data, opened = stored(bytes(packed))
    assert DATA[: len(DATA) // 4] == data[: len(DATA) // 4]
    if name != "lz4":  # has no checksum where nobody asks for one
        assert opened.problem is not None
        assert f"the {name} stream" in opened.problem


def test_a_large_zstd_window_is_refused_in_words(stored: Stored) -> None:
    head = b"\x28\xb5\x2f\xfd\x00" + bytes((18 << 3,))  # a window of 256 MiB, no size
    data, opened = stored(head + struct.pack("<I", 1 | 3 << 3)[:3] + b"abc")
    assert data == b""
    assert "the zstd stream is damaged" in str(opened.problem)


def test_a_large_xz_dictionary_is_refused_in_words(stored: Stored) -> None:
    packed = bytearray(lzma.compress(DATA))
    at = packed.index(b"\x21\x01", 12)
    packed[at + 2] = 36  # one GiB
    end = 12 + (packed[12] + 1) * 4
    packed[end - 4 : end] = struct.pack("<I", zlib.crc32(packed[12 : end - 4]))
    data, opened = stored(bytes(packed))
    assert data == b""
    assert "Memory usage limit" in str(opened.problem)


def _bomb(name: str) -> bytes:
    """A few bytes that stand for 128 MiB and more of zeros."""
    if name == "zstd":
        block = struct.pack("<I", 2 | 131072 << 3)[:3] + b"\0"
        return b"\x28\xb5\x2f\xfd\x00" + bytes((8 << 3,)) + block * 20000
    if name == "xz":
        return lzma.compress(bytes(1 << 27), preset=0)
    if name == "lz4":
        return bytes(lz4.frame.compress(bytes(1 << 27)))
    return gzip.compress(bytes(1 << 27), 1)


@pytest.mark.slow
@FORMATS
def test_a_bomb_is_read_a_chunk_at_a_time(name: str) -> None:
    which = [entry[1] for entry in COMPRESSIONS].index(name)
    stream = DecompressedStream(io.BytesIO(_bomb(name)), which)
    began = time.process_time()
    for _ in range(64):
        assert stream.read(CHUNK) == bytes(CHUNK)
    assert time.process_time() - began < 5


def test_many_empty_streams(stored: Stored) -> None:
    data, opened = stored(gzip.compress(b"", 1) * 5000 + gzip.compress(b"end"))
    assert (data, opened.problem) == (b"end", None)


# -- pipes and growing files --------------------------------------------------------------------


class _Stdin:
    def __init__(self, buffer: io.BufferedReader) -> None:
        self.buffer = buffer


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_pipe_gives_what_is_there(monkeypatch: pytest.MonkeyPatch, pack: Compress) -> None:
    """A capture program that writes a few packets must not wait for a full chunk."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb", 0) as writer:
        monkeypatch.setattr(sys, "stdin", _Stdin(reader))
        writer.write(pack(DATA[:3000]))
        if pack is bytes:
            opened = StandardInput()
            chunks = opened.chunks()
            got = next(chunks)
            while len(got) < 3000:
                got += next(chunks)
            assert got == DATA[:3000]
            writer.write(DATA[3000:4000])
            assert next(chunks) == DATA[3000:4000]
            writer.close()
            assert list(chunks) == []
        else:
            writer.close()
            opened = StandardInput()
            assert b"".join(opened.chunks()) == DATA[:3000]
            assert opened.compression == "gzip"
        opened.close()
        assert not reader.closed
        assert opened.size is None


def test_a_pipe_without_a_byte_is_idle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(source, "PATIENCE_MS", 1)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as reader, os.fdopen(writing, "wb", 0) as writer:
        monkeypatch.setattr(sys, "stdin", _Stdin(reader))
        chunks = StandardInput().chunks()
        assert [next(chunks) for _ in range(2)] == [b"", b""]
        writer.write(DATA[:3000])
        assert next(chunks) == DATA[:8]
    path = tmp_path / "pipe"
    os.mkfifo(path)
    opened = FileSource(str(path))
    chunks = opened.chunks()
    assert [next(chunks) for _ in range(2)] == [b"", b""]  # nobody has opened it to write
    with path.open("wb", 0) as writer:
        assert next(chunks) == b""
        writer.write(DATA[:3000])
        assert next(chunks) + next(chunks) == DATA[:3000]
        assert next(chunks) == b""
    assert list(chunks) == []
    opened.close()


def test_following_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(source, "FOLLOW_INTERVAL", 0.005)
    path = tmp_path / "growing"
    path.write_bytes(b"")

    def grow() -> None:
        for at in range(0, 30, 3):
            time.sleep(0.01)
            with path.open("ab") as file:
                file.write(DATA[at : at + 3])

    thread = threading.Thread(target=grow)
    thread.start()
    opened = FileSource(str(path), follow=True)
    got, idle = b"", 0
    for chunk in opened.chunks():
        got += chunk
        idle += not chunk
        if len(got) == 30:
            break
    thread.join()
    opened.close()
    assert got == DATA[:30]
    assert idle > 0


def test_a_compressed_file_cannot_be_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(DATA))
    with pytest.raises(CaptureError, match="cannot be followed"):
        next(FileSource(str(path), follow=True).chunks())


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_bytes_in_memory(pack: Compress) -> None:
    stored = pack(DATA)
    opened = BytesSource("x", stored)
    assert (opened.name, opened.size, opened.bytes_read) == ("x", len(stored), 0)
    assert b"".join(opened.chunks()) == DATA
    assert opened.bytes_read == len(stored)
    assert opened.compression == (None if pack is bytes else "gzip")


# -- names --------------------------------------------------------------------------------------


def test_what_cannot_be_opened_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="No such file") as caught:
        next(FileSource(str(tmp_path / "absent")).chunks())
    assert caught.value.path.endswith("absent")
    with pytest.raises(CaptureError, match="no such file"):
        expand_sources([str(tmp_path / "absent")])
    with pytest.raises(CaptureError, match="no capture in this folder"):
        expand_sources([str(tmp_path)])
    text = str(CaptureError("a", "b", 7, "c"))
    assert text == "a, offset 7: b\n  c"


def test_what_cannot_be_read_at_all_is_an_error_with_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken(io.RawIOBase):
        def read(self, _: int = -1, /) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    broken = BytesSource("disk.pcap", b"")
    monkeypatch.setattr(broken, "_open", Broken)
    with pytest.raises(CaptureError, match="Input/output error") as caught:
        next(broken.chunks())
    assert caught.value.path == "disk.pcap"


def test_a_folder_gives_its_captures_in_the_order_they_were_written(tmp_path: Path) -> None:
    names = ["x.pcap10", "x.pcap2", "x.pcap", "y.pcapng.gz", "Z.CAP", "n.pcap.zst", "r.1.pcap"]
    others = ["readme.md", "pcap", "x.txt", "what.capital", "x.pcapng.json", "scan.capture.txt"]
    for name in names + others:
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "folder.pcap").mkdir()
    found = [Path(name).name for name in expand_sources([str(tmp_path)])]
    assert found == [
        "Z.CAP",
        "n.pcap.zst",
        "r.1.pcap",
        "x.pcap",
        "x.pcap2",
        "x.pcap10",
        "y.pcapng.gz",
    ]
    assert expand_sources(["-", str(tmp_path / "readme.md")]) == ["-", str(tmp_path / "readme.md")]


def test_names_and_sources_in_the_order_given(tmp_path: Path) -> None:
    for name in ("b.pcap", "a.pcap"):
        (tmp_path / name).write_bytes(DATA)
    memory = BytesSource("memory", DATA)
    found = sources_of([memory, str(tmp_path), "-"])
    assert [Path(one.name).name for one in found] == ["memory", "a.pcap", "b.pcap", "-"]
    assert [one.size for one in found] == [len(DATA)] * 3 + [None]
    assert found[0] is memory
    assert found[0].bytes_read == 0  # nothing is opened yet


def test_only_the_last_file_is_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(source, "FOLLOW_INTERVAL", 0.001)
    for name in ("a.pcap", "b.pcap"):
        (tmp_path / name).write_bytes(DATA[:100])
    first, last = sources_of([str(tmp_path)], follow=True)
    assert b"".join(first.chunks()) == DATA[:100]
    first.close()
    growing = last.chunks()
    assert [len(next(growing)) for _ in range(4)] == [8, 92, 0, 0]
    last.close()


def test_a_pipe_on_standard_input_says_that_there_is_nothing_new() -> None:
    """What waits in the decoder can be shown then, though the pipe stays open."""
    code = (
        "from dissectors.tcp.source import StandardInput\n"
        "for chunk in StandardInput().chunks(): print(len(chunk), flush=True)"
    )
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, bufsize=0) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(bytes(1000))
        sizes = [int(running.stdout.readline()) for _ in range(4)]
        running.stdin.write(bytes(50))
        running.stdin.close()
        rest = [int(line) for line in running.stdout.read().split()]
    assert sizes[-1] == 0
    assert sum(sizes) == 1000
    assert sum(rest) == 50
    assert running.returncode == 0
