"""The dissector as a file, written once for all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissectors.wireshark import lua_text
from tests.bench.tshark_baseline import lua_missing, lua_prefix


@pytest.fixture(scope="session")
def dissector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dissector, alone in a folder that also stands for the user's home."""
    if reason := lua_missing():
        pytest.skip(reason)
    if lua_prefix():
        pytest.skip("this tshark does not run Lua scripts for this user")
    path = tmp_path_factory.mktemp("wireshark") / "rocketmq.lua"
    path.write_text(lua_text("0.0.0-test"), encoding="utf-8")
    return path
