"""Compressed captures: streams without content keep nothing, and few bytes become few."""

from __future__ import annotations

import gzip
import io
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from dissectors.budget import FREE_BYTES
from dissectors.decode.pipeline import Decode
from dissectors.findings import FindingKind
from dissectors.tcp import decompression
from dissectors.tcp.decompression import COMPRESSIONS, MOST_TIMES, DecompressedStream
from tests.rmqtool.command import rmqtool
from tests.traffic.commands import send

from .catalogue import one_way, zstd_runs
from .limited import MIB, limited

lz4_frame = pytest.importorskip("lz4.frame")
zstandard = pytest.importorskip("zstandard")

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "lz4": lz4_frame.compress,
    "xz": lzma.compress,
}
MEMBERS = 15_000


@pytest.mark.parametrize("which", range(len(COMPRESSIONS)), ids=list(COMPRESS))
def test_members_without_content_keep_nothing(which: int) -> None:
    compress = COMPRESS[COMPRESSIONS[which][1]]
    peaks = []
    for count in (10, MEMBERS, 2 * MEMBERS):
        stored = io.BytesIO(compress(b"") * count + compress(b"capture"))
        tracemalloc.start()
        try:
            stream = DecompressedStream(stored, which)
            assert stream.read(100) == b"capture"
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert stream.problem is None
    assert max(peaks) < 9_000_000  # xz has a window of 8 MiB
    assert peaks[2] < peaks[1] + 100_000


def _made(data: bytes, most_times: int) -> tuple[int, str | None]:
    (which,) = [at for at, one in enumerate(COMPRESSIONS) if data.startswith(one[0])]
    stream = DecompressedStream(io.BytesIO(data), which, most_times)
    made = 0
    while chunk := stream.read(MIB):
        made += len(chunk)
    return made, stream.problem


@pytest.mark.parametrize("count", [2000, 4000])
def test_runs_of_a_byte_become_no_more_than_their_size_pays_for(count: int) -> None:
    data = zstd_runs(count)
    assert len(data) < 5 * count
    made, problem = _made(data, MOST_TIMES)
    assert FREE_BYTES < made < FREE_BYTES + MOST_TIMES * len(data) + MIB
    assert problem is not None
    assert f"more than {MOST_TIMES} times its size" in problem
    more, problem = _made(data, 2 * MOST_TIMES)
    assert made < more <= made + MOST_TIMES * len(data) + MIB
    assert "more than 512 times" in (problem or "")


@pytest.mark.parametrize("name", COMPRESS)
def test_what_captures_shrink_to_is_read_whole(name: str) -> None:
    plain = one_way(send(number) for number in range(2000))
    made, problem = _made(COMPRESS[name](plain), MOST_TIMES)
    assert (made, problem) == (len(plain), None)


def test_a_capture_that_becomes_too_much_has_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "attack.pcap.zst"
    path.write_bytes(zstd_runs(1100))
    decode = Decode([str(path)])
    rows = [record for batch in decode.records() for record in batch]
    assert len(rows) == 1  # what stands before the runs
    assert decode.stats.finding_counts[FindingKind.CAPTURE_TRUNCATED] == 1
    said = [one.detail for one in decode.take_findings()]
    assert any("--max-ratio" in one for one in said)


@pytest.mark.slow
def test_a_capture_that_becomes_too_much_needs_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "attack.pcap.zst"
    path.write_bytes(zstd_runs(16_000))
    ended = limited(tmp_path, 400 * MIB, "decode", "pcap", path, "--summary")
    assert ended.status == 0, ended.err
    assert "CAPTURE_TRUNCATED" in (tmp_path / "stdout").read_text()
    assert ended.peak < 200 * MIB


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_ratio_is_an_option(tmp_path: Path, jobs: str) -> None:
    path = tmp_path / "attack.pcap.zst"
    path.write_bytes(zstd_runs(1030))
    arguments = ("decode", "pcap", path, "-T", "jsonl", "--jobs", jobs, "--max-ratio")
    less, more = rmqtool(*arguments, "1"), rmqtool(*arguments, "5000")
    assert less.status == more.status == 0, less.err + more.err
    assert "CAPTURE_TRUNCATED" in less.err
    assert "CAPTURE_TRUNCATED" not in more.err


LESS = "becomes more than 1 times its size"


@pytest.fixture
def attack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a small capture that becomes 5 MB; 1 MiB is free."""
    monkeypatch.setattr(decompression, "FREE_BYTES", MIB)
    path = tmp_path / "attack.pcap.zst"
    path.write_bytes(zstd_runs(40))
    return path


def test_a_replay_reads_as_far_as_the_ratio_allows_and_says_so(attack: Path) -> None:
    arguments = ("replay", attack, "--dry-run", "--max-ratio")
    less, more = rmqtool(*arguments, "1"), rmqtool(*arguments, "40000")
    assert less.status == more.status == 0, less.err + more.err
    assert f"not all of a source was read: {attack}: the zstd stream {LESS}" in less.err
    assert "decompress it first, or raise --max-ratio" in less.err
    assert "times its size" not in more.err
    assert less.out == more.out


@pytest.mark.usefixtures("attack")
def test_the_ratio_bounds_logs_of_commands_that_are_replayed(tmp_path: Path) -> None:
    capture, path = tmp_path / "one.pcap", tmp_path / "log.jsonl.zst"
    capture.write_bytes(one_way([send(1)]))
    log = rmqtool("decode", "pcap", capture, "--commands", "-T", "jsonl").out.encode()
    path.write_bytes(zstandard.compress(log) + zstandard.compress(b"\n" * (2 * MIB)))
    less = rmqtool("replay", path, "--dry-run", "--max-ratio", "1")
    assert LESS in less.err, less.err
    assert "1 message in 1 send would be replayed" in less.err


def test_tasks_of_spark_read_as_far_as_the_ratio_allows(attack: Path) -> None:
    pytest.importorskip("pyspark")
    from analytics.inputs.capture_source import CaptureOptionError, CaptureSource

    def found(ratio: str) -> str:
        options = {"path": str(attack), "table": "findings", "max_ratio": ratio}
        reader = CaptureSource(options).reader(CaptureSource(options).schema())
        (one,) = reader.partitions()
        rows = [row for batch in reader.read(one) for row in batch.to_pylist()]
        return str([row["detail"] for row in rows])

    assert LESS in found("1")
    assert "times its size" not in found("40000")
    with pytest.raises(CaptureOptionError, match="max_ratio is a whole number from 1, not '0'"):
        found("0")
