"""Commit logs as brokers write them: whole, half written, damaged, cut anywhere."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dissectors.broker_store.commit_log import LogEntry, entries_of, log_files
from dissectors.remoting.messages.message import StoredMessage, encode_message
from dissectors.remoting.messages.record_layout import MAGIC_FILLER
from dissectors.tcp.source import CaptureError

BASE = 1 << 20
"""where a second file starts"""


def record(at: int, body: bytes = b"body", topic: str = "Orders") -> bytes:
    """Return a record at an offset of the log."""
    message = StoredMessage(topic, body, {"KEYS": "k", "UNIQ_KEY": f"{at:032X}"})
    return encode_message(msgspec.structs.replace(message, physical_offset=at, queue_offset=7))


def log(bodies: Iterable[bytes], base: int = 0) -> bytes:
    """Return the records of these bodies, one after another."""
    data = b""
    for body in bodies:
        data += record(base + len(data), body)
    return data


def written(folder: Path, data: bytes, base: int = 0) -> str:
    path = folder / f"{base:020d}"
    path.write_bytes(data)
    return str(path)


def read(path: str) -> list[LogEntry]:
    return list(entries_of(path))


FILLER_MAGIC = struct.pack(">iI", 64, MAGIC_FILLER)
BODIES = [b"one", b"", b"x" * 5000, b"four"]


@pytest.mark.parametrize("end", [b"", bytes(8), bytes(4096), FILLER_MAGIC])
def test_records_are_read_up_to_the_end(tmp_path: Path, end: bytes) -> None:
    entries = read(written(tmp_path, log(BODIES, BASE) + end, BASE))
    assert [one.message.body for one in entries if one.message] == BODIES
    assert [one.problem for one in entries] == [None] * len(BODIES)
    assert [one.message.physical_offset - BASE for one in entries if one.message] == [
        one.offset for one in entries
    ]


def test_a_record_larger_than_the_window(tmp_path: Path) -> None:
    bodies = [b"a", b"b" * (3 << 20), b"c"]
    assert [
        one.message.body for one in read(written(tmp_path, log(bodies))) if one.message
    ] == bodies


@given(st.integers(0, len(log(BODIES)) - 1))
def test_a_log_that_is_cut_anywhere(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    data = log(BODIES)
    entries = read(written(tmp_path_factory.mktemp("log"), data[:cut]))
    whole = read(written(tmp_path_factory.mktemp("log"), data))
    ends = [one.offset + len(record(0, body)) for one, body in zip(whole, BODIES, strict=True)]
    complete = [body for body, end in zip(BODIES, ends, strict=True) if end <= cut]
    assert [one.message.body for one in entries if one.message and not one.problem] == complete


@given(st.integers(8, len(log(BODIES)) - 1), st.integers(1, 255))
@example(len(record(0, BODIES[0])), 1)  # the size of the second record
def test_a_damaged_byte_costs_one_record(
    tmp_path_factory: pytest.TempPathFactory, at: int, change: int
) -> None:
    data = bytearray(log(BODIES))
    data[at] ^= change
    entries = read(written(tmp_path_factory.mktemp("log"), bytes(data)))
    bodies = [one.message.body for one in entries if one.message]
    assert sum(body in BODIES for body in bodies) >= len(BODIES) - 1


@given(st.binary(max_size=2000))
@example(b"\0")
def test_any_bytes_before_a_record(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = written(tmp_path_factory.mktemp("log"), data + log([b"last"], len(data)))
    entries = read(path)
    assert sum(one.offset for one in entries) <= len(entries) * len(data)
    ends = any(one.message and one.message.body == b"last" for one in entries)
    assert ends or data.startswith((bytes(8), FILLER_MAGIC))


@pytest.mark.parametrize("size", [1 << 14, 1 << 20])
def test_the_search_crosses_windows(tmp_path: Path, size: int) -> None:
    rubbish = b"\x11" * (size - 20)
    entries = read(written(tmp_path, rubbish + log([b"found"], len(rubbish))))
    assert entries[0].problem == f"{len(rubbish)} bytes are not a record"
    assert entries[1].message is not None
    assert entries[1].message.body == b"found"


def test_the_search_reads_the_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b""
    for _ in range(1000):  # heads of records without the rest
        data += record(len(data))[:36]
    path = written(tmp_path, data + bytes(1 << 20))
    sizes: list[int] = []

    def pread(file: int, count: int, at: int) -> bytes:
        found = os_pread(file, count, at)
        sizes.append(len(found))
        return found

    os_pread = os.pread
    monkeypatch.setattr(os, "pread", pread)
    assert len(read(path)) == 1000
    # Each search used to read a window of 1 MiB.
    assert sum(sizes) <= 3 << 20


def test_a_record_of_another_place_does_not_count(tmp_path: Path) -> None:
    stale = record(999)
    (entry,) = read(written(tmp_path, stale))
    assert entry.message is None
    assert entry.problem == f"{len(stale)} bytes are not a record"


def test_a_body_that_was_changed_is_said(tmp_path: Path) -> None:
    message = StoredMessage("T", b"body", body_crc=1)
    (entry,) = read(written(tmp_path, encode_message(message)))
    assert entry.problem == "the body does not match its CRC"


@pytest.mark.parametrize("rest", [log([b"x" * (1 << 20)] * 3, len(record(0))), b"\x11" * (3 << 20)])
@pytest.mark.parametrize("left", [0, 200, (1 << 20) + 91])
def test_a_file_that_becomes_shorter_is_an_error(tmp_path: Path, rest: bytes, left: int) -> None:
    path = written(tmp_path, record(0) + rest)
    entries = entries_of(path)
    next(entries)
    os.truncate(path, left)
    with pytest.raises(CaptureError, match="became shorter"):
        list(entries)


def test_the_files_of_a_store(tmp_path: Path) -> None:
    (tmp_path / "commitlog").mkdir()
    with pytest.raises(CaptureError, match="no commit log files"):
        log_files(str(tmp_path))
    names = [written(tmp_path / "commitlog", b"", base) for base in (BASE, 0)]
    (tmp_path / "commitlog" / "notes.txt").touch()
    assert log_files(str(tmp_path)) == log_files(str(tmp_path / "commitlog")) == names[::-1]
    with pytest.raises(CaptureError, match="not a folder"):
        log_files(names[0])
    (tmp_path / "dledger-n0").mkdir()
    for name in names:
        Path(name).unlink()
    with pytest.raises(CaptureError, match="DLedger"):
        log_files(str(tmp_path))


def test_records_that_claim_to_be_large_take_no_more_time(tmp_path: Path) -> None:
    data = b""
    for _ in range(2000):
        data += struct.pack(">i", 60 << 20) + record(len(data))[4:]
    started = time.process_time()
    with open(tmp_path / f"{0:020d}", "wb") as file:
        file.write(data)
        file.truncate(70 << 20)
    entries = read(str(tmp_path / f"{0:020d}"))
    assert len(entries) >= 2000
    # Each of them used to be read whole: 60 MiB.
    assert time.process_time() - started < 20


@pytest.mark.parametrize("topic", ["Orders", "T" * 200])
def test_a_large_record_is_whole_or_cut(tmp_path: Path, topic: str) -> None:
    data = record(0, b"x" * 100_000, topic)
    path = written(tmp_path, data + record(len(data)))
    (large, small) = read(path)
    assert large.message is not None
    assert (large.problem, len(large.message.body)) == (None, 100_000)
    assert small.problem is None
    for size in (100_000, len(data) - 1):
        (cut,) = read(written(tmp_path, data[:size]))
        assert cut.message is not None
        assert cut.problem is not None
        assert cut.message.topic == ""
