"""Captures are told by their first bytes, whatever their name is."""

from __future__ import annotations

import gzip
from pathlib import Path

from dissectors.tcp.formats import is_capture
from tests.analytics.diagnosis.made_rows import SAMPLES


def test_what_is_a_capture(tmp_path: Path) -> None:
    sample = SAMPLES / "acl-4x.pcap"
    renamed = tmp_path / "rows.jsonl"
    renamed.write_bytes(sample.read_bytes())
    assert is_capture(str(sample))
    assert is_capture(str(renamed))


def test_what_is_none(tmp_path: Path) -> None:
    packed = tmp_path / "x.pcap"
    packed.write_bytes(gzip.compress(b"\xd4\xc3\xb2\xa1"))
    short = tmp_path / "y.pcap"
    short.write_bytes(b"\xd4\xc3")
    for path in (packed, short, tmp_path, tmp_path / "none"):
        assert not is_capture(str(path))
