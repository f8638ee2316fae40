"""The dissector as a file, written once for all tests; crafted segments as a capture."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from dissectors.wireshark import lua_text
from tests.bench.tshark_baseline import BARE, lua_missing, lua_prefix
from tests.traffic.captures import pcap_of
from tests.traffic.talk import Tcp

from .crafted import Capture


@pytest.fixture(scope="session")
def dissector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dissector, alone in a folder that also stands for the user's home."""
    if reason := lua_missing():
        pytest.skip(reason)
    if lua_prefix() != BARE:
        pytest.skip("this tshark does not run Lua scripts for this user")
    path = tmp_path_factory.mktemp("wireshark") / "rocketmq.lua"
    path.write_text(lua_text("0.0.0-test"), encoding="utf-8")
    return path


@pytest.fixture
def capture(tmp_path: Path) -> Capture:
    """Writes segments as a capture."""

    def write(segments: Iterable[Tcp]) -> Path:
        path = tmp_path / "crafted.pcap"
        path.write_bytes(pcap_of(segments))
        return path

    return write
