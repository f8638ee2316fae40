"""Decompression: every kind, every cut, damage, bombs; never more than the bound."""

from __future__ import annotations

import random
import subprocess
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.remoting.messages.compression import (
    DEFAULT_LIMIT,
    DecompressedBody,
    compress,
    decompress,
)

KINDS = ("zlib", "lz4", "zstd")
TEXT = b"hello world " * 300 + random.Random(1).randbytes(2000)


@pytest.mark.parametrize("kind", KINDS)
def test_both_directions(kind: str) -> None:
    assert decompress(compress(TEXT, kind), kind) == DecompressedBody(TEXT)
    assert decompress(compress(b"", kind), kind) == DecompressedBody(b"")


@pytest.mark.parametrize("kind", KINDS)
def test_a_limit(kind: str) -> None:
    packed = compress(TEXT, kind)
    assert decompress(packed, kind, 100) == DecompressedBody(TEXT[:100], truncated=True)
    assert decompress(packed, kind, len(TEXT)) == DecompressedBody(TEXT)
    assert decompress(packed, kind, len(TEXT) - 1).truncated
    assert decompress(packed, kind, 0) == DecompressedBody(b"", truncated=True)
    assert decompress(packed, kind, -5).data == b""


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut(kind: str) -> None:
    packed = compress(TEXT[:900], kind)
    for size in range(len(packed)):
        found = decompress(packed[:size], kind)
        assert TEXT.startswith(found.data)
        assert found.problem == "the compressed data ends too soon"


@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_is_said(kind: str) -> None:
    found = decompress(compress(TEXT, kind) + b"xy", kind)
    assert found == DecompressedBody(TEXT, problem="2 bytes follow the compressed data")


@pytest.mark.parametrize("kind", ["zlib", "lz4"])
def test_what_comes_before_the_damage_is_given(kind: str) -> None:
    noise = random.Random(2).randbytes(300_000)
    packed = bytearray(compress(noise, kind))
    packed[200_000:200_400] = b"\xff" * 400
    found = decompress(bytes(packed), kind)
    if found.problem is not None:  # stored blocks may hide it; then a checksum is all there is
        assert len(found.data) >= 1000
        assert noise.startswith(found.data[:1000])
    else:
        assert kind == "lz4"


@pytest.mark.parametrize("kind", KINDS)
def test_a_bomb_stays_below_the_bound(kind: str) -> None:
    bomb = compress(bytes(100_000_000), kind)
    decompress(bomb[:10], kind)  # imports the library before measuring
    tracemalloc.start()
    found = decompress(bomb, kind)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(found.data), found.truncated) == (DEFAULT_LIMIT, True)
    assert peak < 3 * DEFAULT_LIMIT


def test_a_zstd_window_that_is_too_large_is_refused() -> None:
    # Magic, no flags, window descriptor of 2 GiB, one empty last block.
    frame = bytes.fromhex("28b52ffd" + "00" + "a8" + "010000")
    found = decompress(frame, "zstd")
    assert found.data == b""
    assert found.problem is not None
    assert "memory" in found.problem


def test_an_unknown_kind() -> None:
    assert decompress(b"x", "unknown(0x400)").problem == "compression unknown(0x400) is not known"
    with pytest.raises(ValueError, match="zlib, lz4, zstd"):
        compress(b"x", "snappy")


def test_the_libraries_are_not_imported_before_they_are_needed() -> None:
    code = (
        "import sys, dissectors.remoting.messages.compression as c; "
        "assert not {'lz4', 'zstandard'} & set(sys.modules); c.compress(b'', 'lz4')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", KINDS)
@given(noise=st.binary(max_size=200), at=st.integers(0, 99))
def test_any_bytes(kind: str, noise: bytes, at: int) -> None:
    packed = compress(TEXT[:500], kind)
    for data in (noise, packed[:at] + noise, packed[:at] + noise + packed[at + len(noise) :]):
        assert len(decompress(data, kind, 1000).data) <= 1000
