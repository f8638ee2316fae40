"""A log in columns is the one that its rows give."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import tempfile

from hypothesis import given
from hypothesis import strategies as st

from tests.traffic.captures import pcap_of
from tests.traffic.scripts import disturbed, scripts, talks

from .log_columns import assert_log

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
ALL = sorted(str(path) for path in SAMPLES.iterdir() if path.suffix in (".pcap", ".pcapng"))


@pytest.mark.parametrize("part", range(8))
def test_samples(part: int) -> None:
    for path in ALL[part::8]:
        assert_log([path])


def test_several_captures_in_one_run() -> None:
    assert_log(ALL[:40])


@given(st.data())
def test_any_traffic(data: st.DataObject) -> None:
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap_of(data.draw(disturbed(data.draw(talks(data.draw(scripts())))))))
        file.flush()
        assert_log([file.name])
