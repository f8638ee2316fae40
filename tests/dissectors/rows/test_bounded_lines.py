"""Lines are bounded in bytes, and the same however the bytes come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissectors.rows.bounded_lines import BoundedLines, LineTooLong
from replay.captured.command_log import LogReader


@given(st.lists(st.sampled_from([b"", b"a", b"\n", b"bc\n", b"\n\nd"]), max_size=20))
def test_lines_are_those_of_split(parts: list[bytes]) -> None:
    lines = BoundedLines()
    found = [line for part in parts for line in lines.receive(part)]
    assert [*found, lines.finish()] == b"".join(parts).split(b"\n")


def test_a_line_beyond_the_bound_is_refused_before_its_end() -> None:
    lines = BoundedLines(1 << 20)
    for _ in range(16):
        assert lines.receive(bytes(1 << 16)) == []
    with pytest.raises(LineTooLong, match="more than 1 MiB"):
        lines.receive(b"x")


def test_a_log_with_such_a_line_is_an_error_with_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("replay.captured.command_log.BoundedLines", lambda: BoundedLines(1 << 20))
    reader = LogReader("x.jsonl", ValueError)
    assert list(reader.receive(b"\n\n")) == []
    with pytest.raises(ValueError, match="line 3: a line of more than 1 MiB"):
        list(reader.receive(bytes(1 << 20) + b"x"))


class _Counted(bytes):
    """Bytes that count what is split off them."""

    split_bytes = 0

    def split(self, *given: object) -> list[bytes]:  # type: ignore[override]
        _Counted.split_bytes += len(self)
        return super().split(*given)  # type: ignore[arg-type]


def test_a_line_in_many_chunks_is_looked_at_once() -> None:
    """Twice the line is twice the work: each byte is split once, and joined once at the end."""
    works = []
    for count in (100, 200, 400):
        _Counted.split_bytes = 0
        lines = BoundedLines()
        for _ in range(count):
            assert lines.receive(_Counted(b"x" * 1000)) == []
        assert len(lines.receive(_Counted(b"\n"))[0]) == count * 1000
        works.append(_Counted.split_bytes)
    assert works == [100_001, 200_001, 400_001]
