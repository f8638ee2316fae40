"""`rmqtool diagnose` run on samples."""

from __future__ import annotations

import json
from pathlib import Path

from ..command import ROOT, rmqtool

SAMPLES = ROOT / "samples"
KILL = SAMPLES / "fault-kill-5x.pcap"
HEALTHY = SAMPLES / "push-orderly-4x.pcap"


def found_in(*arguments: str | Path, status: int = 0) -> list[dict[str, object]]:
    """The problems that the command writes as JSON lines."""
    result = rmqtool("diagnose", *arguments, "-T", "jsonl", "-q")
    assert result.status == status, result.err
    return [json.loads(line) for line in result.out.splitlines()]
