"""The capture that other Sparks report of, and the tables in what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.rmqtool.command import Result

CAPTURE = Path(__file__).resolve().parents[3] / "samples" / "fault-kill-5x.pcap"
Tables = dict[str, list[dict[str, Any]]]
"""table → its rows"""


def tables_in(result: Result) -> Tables:
    """Return the tables of a report that was written as JSON."""
    assert result.err == ""
    assert result.status == 0
    reports = json.loads(result.out)["reports"]
    return {name: one["rows"] for report in reports for name, one in report["tables"].items()}
