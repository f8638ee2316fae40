"""The expected decode of every sample: written by `python -m tests.expected`, compared by a test.

Beside `NAME.pcap` lies `NAME.pcap.expected.jsonl.gz`: one line per command as `--commands --format
jsonl` gives it, then one line per exchange, then a line with what was counted. What is expected was
checked before by other means: RocketMQ's own classes read every frame the same
(`test_java_oracle.py`), tshark sees the same streams, packets and times. Look at the difference
before you write them anew: `git diff` cannot, `--show NAME` prints what changed.
"""

from __future__ import annotations

import difflib
import gzip
import sys
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

import msgspec
import pytest
from _pytest.mark import ParameterSet

from dissectors.decode.command_row import CommandLineWriter
from dissectors.decode.pipeline import Decode
from dissectors.rows.tables import jsonl_of

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
WITHOUT_CALLS = ("grpc-wrong-port-5x",)
"""Samples named grpc-* in which no server speaks HTTP/2."""
SUFFIX = ".expected.jsonl.gz"
BODY_LIMIT = 512
"""bytes of a body that are in the expected decode: samples stay small"""


def captures() -> list[Path]:
    """All captures of samples/."""
    return sorted(path for path in SAMPLES.glob("*.pcap*") if not path.name.endswith(SUFFIX))


def spread(values: Sequence[Path] | Sequence[Enum], every: int = 8) -> list[ParameterSet]:
    """Return captures or codes as parameters: one of so many is fast, the others are slow."""
    return [
        pytest.param(one, marks=[pytest.mark.slow] if number % every else [], id=one.name)
        for number, one in enumerate(values)
    ]


def expected_path(capture: Path) -> Path:
    """Where the expected decode of a capture lies."""
    return capture.with_name(capture.name + SUFFIX)


def read_expected(capture: Path) -> list[bytes]:
    """The lines of the expected decode; none where there is none yet."""
    path = expected_path(capture)
    return gzip.decompress(path.read_bytes()).splitlines() if path.exists() else []


def decoded(capture: Path) -> list[bytes]:
    """The lines that the decode of now gives. Captures are named without their folder."""
    return [line.replace(str(capture).encode(), capture.name.encode()) for line in _lines(capture)]


def _lines(capture: Path) -> Iterator[bytes]:
    run = Decode([str(capture)])
    writer = CommandLineWriter(run.sources, BODY_LIMIT)
    for batch in run.commands():
        for seen in batch:
            yield writer.line_of(seen).rstrip()
    run = Decode([str(capture)])
    for records in run.records():
        yield from jsonl_of(records).splitlines()
    stats = run.stats
    yield msgspec.json.encode(
        {
            "packets": sum(one.packets for one in stats.captures),
            "skipped": dict(sorted(stats.captures[0].skipped.items())),
            "conversations": stats.conversations,
            "rocketmq_conversations": stats.rocketmq_conversations,
            "not_decoded": stats.not_decoded,
            "commands": stats.commands,
            "gaps": stats.gaps,
            "gap_bytes": stats.gap_bytes,
            "findings": _counts(run),
        }
    )


def _counts(run: Decode) -> dict[str, int]:
    counts = {kind.name: count for kind, count in run.stats.finding_counts.items()}
    return dict(sorted(counts.items()))


def difference(capture: Path) -> list[str]:
    """What changed against the expected decode, as lines of a unified diff."""
    before = [line.decode() for line in read_expected(capture)]
    after = [line.decode() for line in decoded(capture)]
    return list(difflib.unified_diff(before, after, "expected", "decoded", lineterm="", n=0))


def main(arguments: list[str]) -> int:
    """Writes the expected decodes of the named samples, or of all; `--show` prints differences."""
    show = "--show" in arguments
    names = [name for name in arguments if not name.startswith("-")]
    chosen = [path for path in captures() if not names or path.name.split(".")[0] in names]
    for capture in chosen:
        if show:
            print("\n".join([f"== {capture.name}", *difference(capture)[:40]]))
            continue
        data = b"\n".join(decoded(capture)) + b"\n"
        expected_path(capture).write_bytes(gzip.compress(data, 9, mtime=0))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
