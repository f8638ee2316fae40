"""The captures of the benchmark, generated once and kept under .cache/bench."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from .generate import generator_version, write_capture

CACHE = Path(__file__).resolve().parents[3] / ".cache" / "bench"


@dataclass(frozen=True, slots=True)
class Capture:
    """A capture and what is in it."""

    path: Path
    """The pcap file."""
    truth: dict[str, object]
    """The ground truth, as `Truth.as_dict` names it."""

    def count(self, name: str) -> int:
        """Return one of the plain counts of the ground truth."""
        value = self.truth[name]
        assert isinstance(value, int)
        return value

    def table(self, name: str) -> dict[str, int]:
        """Return one of the tables of the ground truth."""
        value = self.truth[name]
        assert isinstance(value, dict)
        return value


def capture_of(packets: int, seed: int = 1, mix: str = "json", cache: Path = CACHE) -> Capture:
    """Return the capture with these arguments; write it if it is absent or from other code."""
    path = cache / f"{mix}-{packets}-s{seed}.pcap"
    truth = _kept_truth(path)
    if truth is None:
        cache.mkdir(parents=True, exist_ok=True)
        truth = write_capture(path, packets, seed, mix)
    return Capture(path, truth)


def _kept_truth(path: Path) -> dict[str, object] | None:
    try:
        truth = json.loads(path.with_suffix(".json").read_text())
        whole = path.stat().st_size == truth["file_bytes"]
    except (OSError, ValueError, KeyError):
        return None
    return truth if whole and truth["version"] == generator_version() else None


def warm(path: Path) -> None:
    """Read the file once, so that the first measured run finds it in the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
