"""The packet file of a live capture: secrets of a key log that grows and is rotated."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

from rmqtool.live.keeping import _KeptPackets


def test_a_key_log_that_is_truncated_or_rotated_is_read_from_its_start(tmp_path: Path) -> None:
    log, writer = tmp_path / "keys", Mock()
    kept = _KeptPackets(Mock(keep="x", secrets=str(log)), 1, False)

    def written() -> bytes | None:
        writer.reset_mock()
        kept._write_secrets(writer)
        return writer.write_secrets.call_args and writer.write_secrets.call_args.args[0]

    assert written() == b""  # readers wait for the first
    log.write_bytes(b"first\nsecond\nunfin")
    assert written() == b"first\nsecond\n"
    assert written() is None
    log.write_bytes(b"third\n")
    assert written() == b"third\n"
    log.rename(tmp_path / "keys.1")
    log.write_bytes(b"rotated, and longer\n")
    assert written() == b"rotated, and longer\n"
